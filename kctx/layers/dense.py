"""The dense layer of all blocks."""

import keras
from keras import ops

from kctx.layers.fast_product import product


@keras.saving.register_keras_serializable("kctx")
class Dense(keras.layers.Dense):
    """`keras.layers.Dense`, with the fast matrix product of the backend where it has one.

    Same arguments, weights and names. All rows go into one product, not one for each text, and
    TensorFlow can fuse product, bias and activation, between which there is no change of shape.
    Quantised kernels and LoRA take the plain form.

    Call arguments:
        inputs: (..., D)

    Returns:
        (..., units)
    """

    def call(self, inputs, training=None):
        if isinstance(inputs, keras.KerasTensor):
            return super().call(inputs, training=training)
        if not self.lora_enabled and self.quantization_mode is None:
            x = product(
                inputs,
                ops.convert_to_tensor(self.kernel),
                None if self.bias is None else ops.convert_to_tensor(self.bias),
            )
            if x is not None:
                return x if self.activation is None else self.activation(x)
        if len(inputs.shape) == 2:
            return super().call(inputs, training=training)
        flat = ops.reshape(inputs, (-1, inputs.shape[-1]))
        outputs = super().call(flat, training=training)  # (N, units)
        return ops.reshape(outputs, (*ops.shape(inputs)[:-1], self.units))
