"""Picks the positions that are to be predicted."""

import keras
from keras import ops

from kctx.layers.id_check import check_positions


def at_positions(x, positions, name="mask_positions"):
    """The vectors of x (B, T, D) at positions, int (B, M), called `name`, as (B, M, D)."""
    batch, length, width = ops.shape(x)
    positions = check_positions(positions, length, name)
    starts = ops.arange(batch, dtype=positions.dtype) * length  # (B,)
    flat = ops.reshape(x, (-1, width))  # (B·T, D)
    gathered = ops.take(flat, positions + ops.expand_dims(starts, 1), axis=0)  # (B, M, D)
    # Says the shape again, since JAX loses it for an empty batch.
    return ops.reshape(gathered, (*ops.shape(positions), width))


def first_and_chosen(x, positions):
    """Rows of x (B, T, D) that a last block must compute: see `kctx.models.Encoder.call`.

    Args:
        positions: None, "cls" or int (B, P).

    Returns:
        None for all, the first row (B, 1, D), or (B, 1 + P, D), the first row before the chosen.
    """
    if positions is None:
        return None
    if isinstance(positions, str):
        if positions != "cls":
            raise ValueError(f'`positions` must be "cls" or int (B, P). Received: {positions!r}')
        return x[:, :1]
    return ops.concatenate([x[:, :1], at_positions(x, positions)], axis=1)


@keras.saving.register_keras_serializable("kctx")
class GatherPositions(keras.layers.Layer):
    """The vectors at given positions: (B, T, D), int (B, M) -> (B, M, D).

    So that only these rows reach the vocabulary projection, which saves most of its work: 20 of
    128 positions in BERT's pretraining.

    Call arguments:
        x: (B, T, D)
        positions: int (B, M), each in [0, T). Others raise an error (see
            `kctx.layers.check_range`), rather than reach into the next row.

    Returns:
        (B, M, D)
    """

    def call(self, x, positions):
        return at_positions(x, positions)

    def compute_output_shape(self, x_shape, positions_shape):
        return (*positions_shape, x_shape[-1])
