"""Sums of bags of rows: a word as its n-grams, a text as its words."""

import math

import keras
from keras import ops

from kctx.layers.sparse_rows import add_rows, read_rows

_PIECE = 1024  # rows


def bag_sums_plain(table, ids, bags, num_bags):
    """`bag_sums` by the means of Keras alone."""
    # One more bag takes what is to be dropped.
    return ops.segment_sum(ops.take(table, ids, axis=0), bags, num_bags + 1)[:num_bags]


def bag_sums(table, ids, bags, num_bags):
    """Sum of the rows of each bag.

    Args:
        table: `keras.Variable` (V, D).
        ids: int32 (E,), rows of all bags, one bag after the other.
        bags: int32 (E,), in rising order: the bag of each; `num_bags` drops it.
        num_bags: int, static.

    Returns:
        (num_bags, D); zeros for an empty bag.
    """
    if keras.config.backend() == "torch":
        import torch

        ends = torch.arange(num_bags + 1, dtype=bags.dtype, device=bags.device)
        offsets = torch.searchsorted(bags, ends)
        # One more bag takes what is to be dropped.
        return torch.nn.functional.embedding_bag(
            ids.long(), ops.convert_to_tensor(table), offsets, mode="sum"
        )[:num_bags]
    if keras.config.backend() == "jax":
        import jax

        table = ops.convert_to_tensor(table)
        sums = jax.numpy.zeros((num_bags, table.shape[1]), table.dtype)
        return _in_pieces(
            lambda sums, ids, bags: sums.at[bags].add(table[ids], mode="drop"), sums, ids, bags
        )
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        rows = read_rows(table, ids)
        return tf.math.unsorted_segment_sum(rows, bags, num_bags + 1)[:num_bags]
    return bag_sums_plain(table, ids, bags, num_bags)


def add_to_bags(table, ids, bags, changes, scales=None):
    """Adds the change of each bag to all its rows, in place.

    Args:
        table: `keras.Variable` (V, D).
        ids, bags: as in `bag_sums`.
        changes: float (num_bags, D).
        scales: float (E,), what to multiply the change by for each of the rows. Default: 1.
    """
    arrays = (ids, bags) if scales is None else (ids, bags, scales)
    if keras.config.backend() == "jax":
        table.assign(
            _in_pieces(
                lambda rows, ids, *rest: rows.at[ids].add(_of_rows(changes, *rest)),
                ops.convert_to_tensor(table),
                *arrays,
            )
        )
    else:
        add_rows(table, ids, _of_rows(changes, *arrays[1:]))


def _of_rows(changes, bags, scales=1.0):
    """The change of each row's bag, 0 for a row without one."""
    last = ops.shape(changes)[0] - 1
    scales = ops.where(bags <= last, scales, 0.0)
    return ops.take(changes, ops.minimum(bags, last), axis=0) * ops.expand_dims(scales, -1)


def _in_pieces(function, value, *arrays):
    """Under JAX: `value = function(value, *pieces)` over pieces of arrays, one after the other.

    Pieces of rows stay in the processor's cache; all rows of a large batch at once were seen to
    take five times as long.
    """
    import jax

    number = arrays[0].shape[0]
    size = math.gcd(number, _PIECE)
    if size < _PIECE // 4 or number == size:
        return function(value, *arrays)
    pieces = tuple(array.reshape(-1, size) for array in arrays)
    return jax.lax.scan(lambda value, piece: (function(value, *piece), None), value, pieces)[0]
