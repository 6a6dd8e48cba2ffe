"""The position-wise feed-forward network."""

import keras

from kctx.layers.activations import get_activation, truncated_normal
from kctx.layers.dense import Dense
from kctx.layers.part_call import call_part


@keras.saving.register_keras_serializable("kctx")
class FeedForward(keras.layers.Layer):
    """activation(xW₁ + b₁)W₂ + b₂ at each position (Vaswani et al., 2017, equation 2).

    Args:
        intermediate_dim: int, I, width between the two products.
        activation: name, see `kctx.layers.activations`. Default "gelu_erf".
        initializer: initialiser of the kernels. Default: truncated normal of 0.02.

    Call arguments:
        x: (B, T, D)

    Returns:
        (B, T, D)
    """

    def __init__(self, intermediate_dim, activation="gelu_erf", initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.activate = get_activation(activation)
        self.initializer = keras.initializers.get(initializer or truncated_normal())

    def build(self, input_shape):
        width = input_shape[-1]
        self.inner = Dense(
            self.intermediate_dim,
            activation=self.activate,
            kernel_initializer=self.initializer.clone(),
            name="inner",
            dtype=self.dtype_policy,
        )
        self.inner.build((None, width))
        self.outer = Dense(
            width,
            kernel_initializer=self.initializer.clone(),
            name="outer",
            dtype=self.dtype_policy,
        )
        self.outer.build((None, self.intermediate_dim))

    def call(self, x):
        inner = call_part(self, self.inner, x)  # (B, T, I)
        return call_part(self, self.outer, inner)

    def compute_output_shape(self, input_shape):
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "initializer": keras.initializers.serialize(self.initializer),
        }
