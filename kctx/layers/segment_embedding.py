"""The embedding of segments."""

import keras

from kctx.layers.id_check import check_ids


@keras.saving.register_keras_serializable("kctx")
class SegmentEmbedding(keras.layers.Embedding):
    """A vector for each segment id (Devlin et al., 2018, section 3.2).

    Ids outside the table raise an error on every backend (see `kctx.layers.check_range`).

    Args:
        input_dim: int, number of segments.
        output_dim: int, D.
        **kwargs: as `keras.layers.Embedding`.

    Call arguments:
        inputs: int (B, T) segment ids.

    Returns:
        (B, T, D)
    """

    def call(self, inputs):
        return super().call(check_ids("segment_ids", inputs, self.input_dim, "segment"))
