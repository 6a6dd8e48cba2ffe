"""From the vectors at the masked positions to what the tied output projection takes."""

import keras

from kctx.layers.activations import get_activation, truncated_normal
from kctx.layers.dense import Dense
from kctx.layers.part_call import call_part


@keras.saving.register_keras_serializable("kctx")
class MaskedLMHead(keras.layers.Layer):
    """Dense, activation and norm before the tied output projection.

    Source: Devlin et al., 2018, section 3.1, and its reference implementation. The projection
    itself is made by the objective, which holds the encoder and so the tied table.

    Args:
        activation: name, see `kctx.layers.activations`. Default "gelu_erf".
        layer_norm_epsilon: float. Default 1e-12.
        initializer: initialiser of the kernel. Default: truncated normal of 0.02.

    Call arguments:
        x: (B, M, D), the encoder's vectors at the masked positions.

    Returns:
        (B, M, D)
    """

    def __init__(self, activation="gelu_erf", layer_norm_epsilon=1e-12, initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.activation = activation
        self.activate = get_activation(activation)
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer = keras.initializers.get(initializer or truncated_normal())

    def build(self, input_shape):
        width = input_shape[-1]
        self.transform = Dense(
            width,
            activation=self.activate,
            kernel_initializer=self.initializer.clone(),
            name="transform",
            dtype=self.dtype_policy,
        )
        self.transform.build((None, width))
        self.transform_norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, name="transform_norm", dtype=self.dtype_policy
        )
        self.transform_norm.build((None, width))

    def call(self, x):
        transformed = call_part(self, self.transform, x)  # (B, M, D)
        return call_part(self, self.transform_norm, transformed)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer": keras.initializers.serialize(self.initializer),
        }
