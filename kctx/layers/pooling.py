"""One vector for a whole sequence."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("kctx")
class Pooling(keras.layers.Layer):
    """Reduces a sequence of vectors to one.

    Args:
        kind: "cls" (the first vector), "mean" or "max", both over real tokens only. A sequence of
            nothing but padding gives zeros.

    Call arguments:
        x: (B, T, D)
        padding_mask: bool (B, T), True = a real token. Default: all are real.

    Returns:
        (B, D)
    """

    def __init__(self, kind="mean", **kwargs):
        super().__init__(**kwargs)
        if kind not in ("cls", "mean", "max"):
            raise ValueError(f'`kind` must be "cls", "mean" or "max". Received: {kind!r}')
        self.kind = kind

    def call(self, x, padding_mask=None):
        if self.kind == "cls":
            return x[:, 0]
        if padding_mask is None:
            padding_mask = ops.ones(ops.shape(x)[:2], dtype="bool")
        mask = ops.expand_dims(padding_mask, -1)  # (B, T, 1)
        if self.kind == "mean":
            # Summed in float32: hundreds of half-precision terms would lose digits.
            weights = ops.cast(mask, "float32")
            total = ops.sum(ops.cast(x, "float32") * weights, axis=1)  # (B, D)
            return ops.cast(total / ops.maximum(ops.sum(weights, axis=1), 1.0), x.dtype)
        lowest = -6e4 if keras.backend.standardize_dtype(x.dtype) == "float16" else -1e30
        masked = ops.where(mask, x, ops.cast(lowest, x.dtype))  # (B, T, D)
        # One row more and off again, since there is no maximum over a batch of 0.
        highest = ops.max(ops.pad(masked, ((0, 1), (0, 0), (0, 0))), axis=1)[:-1]  # (B, D)
        return ops.where(ops.any(mask, axis=1), highest, ops.zeros_like(highest))

    def compute_output_shape(self, x_shape, padding_mask_shape=None):
        return (x_shape[0], x_shape[-1])

    def get_config(self):
        return {**super().get_config(), "kind": self.kind}
