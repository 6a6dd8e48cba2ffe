"""Rows of tables between variables and NumPy, for steps that are computed on the CPU."""

import contextlib

import keras
import numpy as np

_ROWS_AT_ONCE = 2048  # JAX compiles for each shape: numbers of rows are rounded up to it


def computes_on_cpu():
    """Whether Keras computes on a CPU, whose memory NumPy reads as well."""
    backend = keras.config.backend()
    if backend == "torch":
        import torch

        return not torch.cuda.is_available()
    if backend == "jax":
        import jax

        return jax.default_backend() == "cpu"
    if backend == "tensorflow":
        import tensorflow as tf

        return not tf.config.list_logical_devices("GPU") + tf.config.list_logical_devices("TPU")
    return False


def host_array(x):
    """A tensor in a CPU's memory as a NumPy array, without a copy where that is possible."""
    if keras.config.backend() == "torch" and hasattr(x, "detach"):
        return x.detach().numpy()
    return np.asarray(x)


def take_rows(variable, ids):
    """Rows of a table, a copy that may be written to.

    Args:
        variable: `keras.Variable` (V, ...), outside of graphs.
        ids: int32 array (N,).

    Returns:
        NumPy array (N, ...).
    """
    backend = keras.config.backend()
    if backend == "torch":
        return np.take(variable.value.detach().numpy(), ids, axis=0)
    if backend == "jax":
        return np.array(_jax_functions()[0](variable.value, _rounded_up(ids, 0))[: len(ids)])
    import tensorflow as tf

    return tf.gather(variable.value, ids).numpy()


@contextlib.contextmanager
def changed_rows(variables, ids):
    """Gives NumPy arrays to change some rows of tables in; the tables follow at the end.

    After an error the tables may hold what was changed before it.

    Args:
        variables: list of (table, another table of its shape), `keras.Variable` (V, ...).
        ids: list of int32 arrays (N,), rows of each two tables, all different.

    Yields:
        first tables, second tables, where the rows lie in them: the tables themselves and `ids`
        where NumPy can write to them; else copies of the rows, from 0 on.
    """
    if keras.config.backend() == "torch":
        firsts, seconds = zip(
            *[[x.value.detach().numpy() for x in pair] for pair in variables], strict=True
        )
        yield firsts, seconds, ids
        return
    firsts, seconds = (
        [take_rows(pair[i], places) for pair, places in zip(variables, ids, strict=True)]
        for i in (0, 1)
    )
    yield firsts, seconds, [np.arange(len(places)) for places in ids]
    for pair, places, first, second in zip(variables, ids, firsts, seconds, strict=True):
        set_rows(pair[0], places, first)
        set_rows(pair[1], places, second)


def set_rows(variable, ids, rows):
    """Writes rows of a table, in place on every backend.

    Args:
        variable: `keras.Variable` (V, ...), outside of graphs.
        ids: int32 array (N,), different from each other.
        rows: NumPy array (N, ...).
    """
    backend = keras.config.backend()
    if backend == "torch":
        variable.value.detach().numpy()[ids] = rows
    elif backend == "jax":
        # The buffer is given away and used again; rows beyond the table are left out.
        rows = np.pad(rows, [(0, -len(rows) % _ROWS_AT_ONCE), *[(0, 0)] * (rows.ndim - 1)])
        ids = _rounded_up(ids, variable.shape[0])
        variable.assign(_jax_functions()[1](variable.value, ids, rows))
    else:
        import tensorflow as tf

        variable.value.scatter_update(tf.IndexedSlices(rows, ids))


def _rounded_up(ids, filling):
    return np.pad(ids, (0, -len(ids) % _ROWS_AT_ONCE), constant_values=filling)


_compiled = []


def _jax_functions():
    if not _compiled:
        import jax

        _compiled.append(jax.jit(lambda table, ids: table[ids]))
        _compiled.append(
            jax.jit(lambda table, ids, rows: table.at[ids].set(rows, mode="drop"), donate_argnums=0)
        )
    return _compiled
