"""The token embedding, which also serves as the output projection."""

import keras

from kctx.layers.id_check import check_ids


@keras.saving.register_keras_serializable("kctx")
class TokenEmbedding(keras.layers.ReversibleEmbedding):
    """A vector for each token id, and the same table as output projection (Press & Wolf, 2016).

    Logits are computed in float32 whatever the dtype policy. Ids outside the table raise an error
    on every backend (see `kctx.layers.check_range`).

    Args:
        input_dim: int, V, vocabulary size.
        output_dim: int, D.
        reverse_dtype: dtype of the logits. Default "float32".
        **kwargs: as `keras.layers.ReversibleEmbedding`.

    Call arguments:
        inputs: int (B, T) token ids; or (B, T, D) with `reverse=True`.

    Returns:
        (B, T, D) vectors; or float32 (B, T, V) logits with `reverse=True`.
    """

    def __init__(self, input_dim, output_dim, reverse_dtype="float32", **kwargs):
        super().__init__(input_dim, output_dim, reverse_dtype=reverse_dtype, **kwargs)

    def call(self, inputs, reverse=False):
        if not reverse:
            inputs = check_ids("token_ids", inputs, self.input_dim, "token")
        return super().call(inputs, reverse=reverse)
