"""Sums of bags of rows: a word as its n-grams, a text as its words."""

import keras
from keras import ops

from kctx.layers.sparse_rows import read_rows


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

        rows = ops.convert_to_tensor(table)[ids]
        return jax.ops.segment_sum(rows, bags, num_bags, indices_are_sorted=True)
    if keras.config.backend() == "tensorflow":
        import tensorflow as tf

        rows = read_rows(table, ids)
        return tf.math.unsorted_segment_sum(rows, bags, num_bags + 1)[:num_bags]
    return bag_sums_plain(table, ids, bags, num_bags)
