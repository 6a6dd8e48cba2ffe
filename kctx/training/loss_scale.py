"""Loss scaling for float16."""

import keras


@keras.saving.register_keras_serializable("kctx")
class LossScale(keras.optimizers.LossScaleOptimizer):
    """Keras' dynamic loss scaling that sees every overflow.

    Under mixed_float16 Keras wraps an optimizer by itself, but under TensorFlow that wrapper
    misses an overflow in the sparse gradient of an embedding when a later position of the batch
    holds the same token with a finite gradient: the embedding then becomes NaN for good. An
    optimizer wrapped in `LossScale` beforehand is left as it is.

    Args:
        inner_optimizer, initial_scale, dynamic_growth_steps: as `LossScaleOptimizer`: the scale
            starts at `initial_scale` (2**15), doubles after `dynamic_growth_steps` (2000) finite
            steps, and halves on an overflow, whose step is skipped.
    """

    def check_finite(self, grads):
        if keras.config.backend() == "tensorflow":
            import tensorflow as tf

            grads = [g.values if isinstance(g, tf.IndexedSlices) else g for g in grads]
        return super().check_finite(grads)
