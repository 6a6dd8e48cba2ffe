"""Learned absolute positions."""

import keras
from keras import ops

from kctx.layers.activations import truncated_normal
from kctx.layers.id_check import check_length


@keras.saving.register_keras_serializable("kctx")
class PositionEmbedding(keras.layers.Layer):
    """A learned vector for each absolute position (Devlin et al., 2018, section 3.1).

    Args:
        max_sequence_length: int, number of positions in the table.
        initializer: initialiser of the table. Default: truncated normal of 0.02.

    Call arguments:
        x: (B, T, D), only its shape is used.
        positions: int (B, T), where they do not count from 0, each below `max_sequence_length`.

    Returns:
        (T, D), or (B, T, D) for given `positions`; to be added to `x`.

    Raises:
        ValueError: T is greater than `max_sequence_length`.
    """

    def __init__(self, max_sequence_length, initializer=None, **kwargs):
        super().__init__(**kwargs)
        if max_sequence_length < 1:
            raise ValueError(
                f"`max_sequence_length` must be at least 1. Received: {max_sequence_length}"
            )
        self.max_sequence_length = max_sequence_length
        self.initializer = keras.initializers.get(initializer or truncated_normal())

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.max_sequence_length, input_shape[-1]),
            initializer=self.initializer,
        )

    def call(self, x, positions=None):
        if positions is not None:
            return ops.take(self.embeddings, positions, axis=0)  # (B, T, D)
        length = ops.shape(x)[1]
        if x.shape[1] is not None and not isinstance(x, keras.KerasTensor):
            length = x.shape[1]
        length = check_length(length, self.max_sequence_length)
        if isinstance(length, int):
            return ops.convert_to_tensor(self.embeddings)[:length]
        # A gather rather than a slice: it keeps the length free in exported graphs.
        return ops.take(self.embeddings, ops.arange(length), axis=0)

    def compute_output_shape(self, x_shape, positions_shape=None):
        return tuple(x_shape[1:]) if positions_shape is None else tuple(x_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "max_sequence_length": self.max_sequence_length,
            "initializer": keras.initializers.serialize(self.initializer),
        }
