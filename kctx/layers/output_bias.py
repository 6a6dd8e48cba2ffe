"""The bias of a tied output projection."""

import keras


@keras.saving.register_keras_serializable("kctx")
class OutputBias(keras.layers.Layer):
    """Adds a trained bias of the vocabulary's size to logits, in float32.

    A layer of its own since the projection's kernel belongs to the token embedding.

    Call arguments:
        logits: float32 (B, M, V)

    Returns:
        float32 (B, M, V)
    """

    def __init__(self, **kwargs):
        kwargs["dtype"] = "float32"
        super().__init__(**kwargs)

    def build(self, input_shape):
        self.bias = self.add_weight(name="bias", shape=(input_shape[-1],), initializer="zeros")

    def call(self, logits):
        return logits + self.bias

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)
