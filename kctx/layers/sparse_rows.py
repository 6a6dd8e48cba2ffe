"""Reads and updates of a few rows of a table, without a gradient or a copy of the table's size."""

import keras
from keras import ops


def read_rows(variable, ids):
    """Rows of a table.

    Args:
        variable: `keras.Variable` (V, ...).
        ids: int32 (...), rows.

    Returns:
        (..., ...), the rows as they are now.
    """
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        # `ops.take` would read the whole variable, and TensorFlow copies a variable that is read
        # as a whole and changed in place in the same step.
        return tf.gather(variable.value, ids)
    return ops.take(variable, ids, axis=0)


def add_rows_plain(variable, ids, updates):
    """`add_rows` by the means of Keras alone, which may copy the table."""
    indices = ops.reshape(ids, (-1, 1))
    updates = ops.reshape(updates, (-1, *variable.shape[1:]))
    summed = ops.scatter(indices, ops.cast(updates, variable.dtype), variable.shape)
    variable.assign(variable + summed)


def add_rows(variable, ids, updates):
    """Adds updates to rows of a table, in place on every backend.

    A row that occurs several times gets the sum of its updates.

    Args:
        variable: `keras.Variable` (V, ...).
        ids: int32 (...), rows.
        updates: float (..., ...), one for each id.
    """
    backend = keras.config.backend()
    ids = ops.reshape(ids, (-1,))
    updates = ops.cast(ops.reshape(updates, (-1, *variable.shape[1:])), variable.dtype)
    if backend == "tensorflow":
        import tensorflow as tf

        variable.value.scatter_add(tf.IndexedSlices(updates, ids))
    elif backend == "torch":
        import torch

        with torch.no_grad():
            variable.value.index_add_(0, ids, updates)
    elif backend == "jax":
        # In place as well, where the buffer is donated, as it is in `fit`.
        variable.assign(ops.convert_to_tensor(variable).at[ids].add(updates))
    else:
        add_rows_plain(variable, ids, updates)
