"""The dense layer of all blocks."""

import keras

from kctx.layers.fast_product import product


@keras.saving.register_keras_serializable("kctx")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, with the fast matrix product of the backend where it has one.

    Same arguments, weights and names. For inputs of two dimensions; others, quantised kernels and
    LoRA take the plain form.

    Call arguments:
        inputs: (N, D)

    Returns:
        (N, units)
    """

    def call(self, inputs, training=None):
        plain = len(inputs.shape) != 2 or self.lora_enabled or self.quantization_mode is not None
        if not plain and not isinstance(inputs, keras.KerasTensor):
            x = product(
                inputs,
                keras.ops.convert_to_tensor(self.kernel),
                None if self.bias is None else keras.ops.convert_to_tensor(self.bias),
            )  # (N, units)
            if x is not None:
                return x if self.activation is None else self.activation(x)
        return super().call(inputs, training=training)
