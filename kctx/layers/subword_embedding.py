"""A vector for each token from the vectors of its parts."""

import keras
from keras import ops

from kctx.layers.id_check import check_ids


@keras.saving.register_keras_serializable("kctx")
class SubwordEmbedding(keras.layers.Layer):
    """The mean of the rows of a token's features: its own row and its n-grams' (Bojanowski et al.,
    2017, section 3.2; the paper writes a sum, the released code averages).

    Row 0 is padding and never counts. A token without features gets zeros. The mean is computed in
    float32 whatever the dtype policy. Ids outside the table raise an error on every backend (see
    `kctx.layers.check_range`).

    Args:
        input_dim: int, rows of the table, the row of padding included.
        output_dim: int, D.
        embeddings_initializer: Default "uniform".

    Call arguments:
        inputs: int (B, T, S), the features of each token, 0 behind the last of them.

    Returns:
        (B, T, D)
    """

    def __init__(self, input_dim, output_dim, embeddings_initializer="uniform", **kwargs):
        super().__init__(**kwargs)
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape=None):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.input_dim, self.output_dim),
            initializer=self.embeddings_initializer,
        )

    def call(self, inputs):
        inputs = check_ids("subword_ids", inputs, self.input_dim, "subword")
        real = ops.cast(ops.not_equal(inputs, 0), "float32")  # (B, T, S)
        rows = ops.take(ops.convert_to_tensor(self.embeddings), inputs, axis=0)  # (B, T, S, D)
        total = ops.sum(ops.cast(rows, "float32") * ops.expand_dims(real, -1), axis=2)
        count = ops.maximum(ops.sum(real, axis=2), 1.0)  # (B, T)
        return ops.cast(total / ops.expand_dims(count, -1), self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:2], self.output_dim)

    def get_config(self):
        return {
            **super().get_config(),
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
        }
