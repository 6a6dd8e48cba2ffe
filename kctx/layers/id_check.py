"""One guard for ids and lengths that lie outside a table, on every backend.

Left alone, a lookup out of range raises under TensorFlow on a CPU, gives zeros on a GPU, and gives
NaN or another row's vector under JAX. This is one of the few places that must know the backend.
"""

import os

import keras
import numpy as np

from kctx.layers.devices import on_cpu


def check_range(values, limit, message, always=False):
    """`values`, after a check that all of them lie in [0, limit).

    Use what it returns: in a compiled graph that is how a lookup waits for the check.

    Numbers, and arrays in the memory of a CPU, are checked at once; in a graph for a CPU the check
    becomes part of the graph. Values on an accelerator, or in a graph for one, would cost a
    transfer each step: the environment variable `KCTX_CHECK_IDS=1` asks for it (`0` turns the
    checks off everywhere, those of `always` excepted).

    Args:
        values: int tensor of any shape, or int.
        limit: int, or in a compiled graph an int tensor.
        message: str, what is expected; the value received is added to it.
        always: bool, for a single number, whose check costs nothing: neither device nor variable
            turns it off. Default False.

    Returns:
        `values`

    Raises:
        ValueError, or from a compiled graph the backend's own error with the same message. Graphs
        that XLA compiles for TensorFlow raise nothing: it leaves assertions out.
    """
    setting = "1" if always else os.environ.get("KCTX_CHECK_IDS", "auto")
    if setting == "0" or isinstance(values, keras.KerasTensor):
        return values

    def check(lowest, highest):
        for value in (int(lowest), int(highest)):
            if not 0 <= value < limit:
                raise ValueError(f"{message} Received: {value}")

    if isinstance(values, int):
        check(values, values)
        return values
    if setting != "1" and not on_cpu(values):
        return values
    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if tf.is_tensor(values) and not hasattr(values, "numpy"):
            inside = tf.reduce_all((values >= 0) & (values < limit))
            extremes = [tf.reduce_min(values), tf.reduce_max(values)]
            described = [f"{message} Received, lowest and highest:", *extremes]
            with tf.control_dependencies([tf.debugging.Assert(inside, described)]):
                return tf.identity(values)
    elif backend == "jax":
        import jax

        if isinstance(values, jax.core.Tracer):
            if values.size:
                jax.debug.callback(check, values.min(), values.max())
            return values
    elif backend == "torch":
        import torch

        if torch.is_tensor(values):
            if values.device.type == "meta" or torch.compiler.is_compiling():
                return values
            array = values.cpu().numpy()
            if array.size:
                check(array.min(), array.max())
            return values
    array = np.asarray(values)
    if array.size:
        check(array.min(), array.max())
    return values


def check_ids(name, ids, limit, table):
    """`check_range` of the ids called `name` against the `limit` rows of a table."""
    return check_range(
        ids, limit, f"`{name}` must lie in [0, {limit}), the rows of the {table} table."
    )


def check_length(length, limit):
    """`check_range`, always, of a sequence length against the `limit` rows of a position table."""
    return check_range(
        length,
        limit + 1,
        f"The sequence length must be at most {limit}, the rows of the position table. Truncate "
        "or window the text, or build the model with a greater `max_sequence_length`.",
        always=True,
    )


def check_positions(positions, length, name="mask_positions"):
    """`check_range` of places, called `name`, within sequences of a length."""
    return check_range(positions, length, f"`{name}` must lie within the length of the sequences.")
