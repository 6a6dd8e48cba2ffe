"""Adam with decoupled weight decay, as BERT and its kin use it."""

import math
import re

import keras
from keras import ops

from kctx.training.fused_updates import FUSED_UPDATES


@keras.saving.register_keras_serializable("kctx")
class AdamW(keras.optimizers.Optimizer):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019, algorithm 2).

    The defaults are the original BERT's: no bias correction, epsilon 1e-6 outside the root, no
    decay of biases and layer normalisations, gradients clipped by their global norm. With
    gradient g, rate r (from the schedule at this step, counted from 0) and decay d, a step is

        g <- g * min(1, clip_norm / |all g|)
        m <- beta_1 * m + (1 - beta_1) * g
        v <- beta_2 * v + (1 - beta_2) * g²
        w <- w - r * (m / (sqrt(v) + epsilon) + d * w)

    and with `bias_correction`, m and v are divided by 1 - beta^(step + 1) in the last line.
    Sparse gradients of embeddings count as dense: every row's moments decay at every step.

    Moments are float32 whatever the variables' dtype. Clipping, decay and update run in fused
    kernels of TensorFlow and torch where these fit (float32 variables, one replica); the plain
    form in `update_step` is what they are tested against, and XLA fuses it under JAX.

    Args:
        learning_rate: float, or a schedule such as `WarmupLinearDecay`.
        weight_decay: float >= 0 (d).
        beta_1, beta_2: floats in [0, 1), decay rates of the moments.
        epsilon: float > 0.
        bias_correction: whether the moments are corrected for their start at 0 (Kingma & Ba,
            2015, algorithm 1).
        clip_norm: float > 0, the greatest global norm of the gradients, or None.
        exclude: regular expressions; a variable is not decayed if one of them is found in its name
            or in that of its layer.
        gradient_accumulation_steps: int >= 2, over how many batches gradients are averaged, or
            None. The schedule counts batches all the same.
        fused: False takes the plain form on every backend.
    """

    def __init__(
        self,
        learning_rate,
        weight_decay=0.01,
        beta_1=0.9,
        beta_2=0.999,
        epsilon=1e-6,
        bias_correction=False,
        clip_norm=1.0,
        exclude=("bias", "norm"),
        gradient_accumulation_steps=None,
        fused=True,
        name="adamw",
    ):
        if isinstance(learning_rate, int) and not isinstance(learning_rate, bool):
            learning_rate = float(learning_rate)
        rate_fits = not isinstance(learning_rate, float) or 0 <= learning_rate < math.inf
        for argument, value, allowed in (
            ("learning_rate", learning_rate, rate_fits and not isinstance(learning_rate, bool)),
            ("weight_decay", weight_decay, weight_decay >= 0),
            ("beta_1", beta_1, 0 <= beta_1 < 1),
            ("beta_2", beta_2, 0 <= beta_2 < 1),
            ("epsilon", epsilon, epsilon > 0),
            ("clip_norm", clip_norm, clip_norm is None or clip_norm > 0),
        ):
            if not allowed:
                raise ValueError(f"`{argument}` is out of range. Received: {argument}={value}")
        super().__init__(
            learning_rate=learning_rate,
            weight_decay=weight_decay or None,
            gradient_accumulation_steps=gradient_accumulation_steps,
            name=name,
        )
        self.decay = weight_decay
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon
        self.bias_correction = bias_correction
        self.clip_norm = clip_norm
        self.exclude = (exclude,) if isinstance(exclude, str) else tuple(exclude)
        self.fused = fused

    def build(self, variables):
        if self.built:
            return
        self._decayed = [
            self.decay > 0
            # The name of the model, further up in the path, does not count.
            and not any(
                re.search(pattern, name)
                for pattern in self.exclude
                for name in v.path.split("/")[-2:]
            )
            for v in variables
        ]
        pairs = list(zip(variables, self._decayed, strict=True))
        self.exclude_from_weight_decay(var_list=[v for v, decayed in pairs if not decayed])
        super().build(variables)
        self._momentums, self._velocities = [], []
        for variable in variables:
            for moments, kind in ((self._momentums, "momentum"), (self._velocities, "velocity")):
                if variable.dtype == "float32":
                    moment = self.add_variable_from_reference(variable, name=kind)
                else:
                    name = f"{variable.path.replace('/', '_')}_{kind}"
                    moment = self.add_variable(variable.shape, dtype="float32", name=name)
                moments.append(moment)
        fits = all(variable.dtype == "float32" for variable in variables)
        if keras.config.backend() == "tensorflow":
            import tensorflow as tf

            fits = fits and tf.distribute.get_strategy().num_replicas_in_sync == 1
        elif keras.config.backend() == "torch":
            fits = fits and all(variable.value.is_contiguous() for variable in variables)
        self._fused_update = FUSED_UPDATES.get(keras.config.backend()) if fits else None

    def moments_of(self, variable):
        """The first and second moment, float32 variables of the shape of `variable`."""
        index = self._get_variable_index(variable)
        return self._momentums[index], self._velocities[index]

    def decays(self, variable):
        """Whether weight decay applies to `variable`."""
        return self._decayed[self._get_variable_index(variable)]

    def corrections(self, dtype):
        """Divisors of the first and second moment at this step; 1 without bias correction."""
        if not self.bias_correction:
            return ops.ones((), dtype), ops.ones((), dtype)
        step = ops.cast(self.iterations, dtype) + 1
        return tuple(
            1 - ops.power(ops.cast(beta, dtype), step) for beta in (self.beta_1, self.beta_2)
        )

    def update_step(self, gradient, variable, learning_rate):
        momentum, velocity = self.moments_of(variable)
        gradient = ops.cast(gradient, "float32")
        correction_1, correction_2 = self.corrections("float32")
        self.assign(momentum, momentum + (gradient - momentum) * (1 - self.beta_1))
        self.assign(velocity, velocity + (ops.square(gradient) - velocity) * (1 - self.beta_2))
        update = (momentum / correction_1) / (ops.sqrt(velocity / correction_2) + self.epsilon)
        update = update * ops.cast(learning_rate, "float32")
        self.assign_sub(variable, ops.cast(update, variable.dtype))

    # The three hooks below are where Keras' own backends put theirs: `apply` calls them in this
    # order with all gradients and variables. The fused update does the work of all three.

    def _clip_gradients(self, grads):
        if keras.config.backend() == "tensorflow":
            import tensorflow as tf

            grads = [tf.convert_to_tensor(grad) for grad in grads]  # dense
        if self.fused and self._fused_update:
            return grads
        grads = [ops.cast(grad, "float32") for grad in grads]
        if self.clip_norm is None:
            return grads
        norm = ops.sqrt(sum(ops.sum(ops.square(grad)) for grad in grads))
        scale = self.clip_norm / ops.maximum(norm, self.clip_norm)
        return [grad * scale for grad in grads]

    def _apply_weight_decay(self, variables):
        if not (self.fused and self._fused_update):
            super()._apply_weight_decay(variables)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if self.fused and self._fused_update:
            rate = ops.cast(learning_rate, "float32")
            self._fused_update(self, grads, trainable_variables, rate)
        else:
            super()._backend_update_step(grads, trainable_variables, learning_rate)

    def get_config(self):
        return {
            "learning_rate": super().get_config()["learning_rate"],
            "weight_decay": self.decay,
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
            "bias_correction": self.bias_correction,
            "clip_norm": self.clip_norm,
            "exclude": list(self.exclude),
            "gradient_accumulation_steps": self.gradient_accumulation_steps,
            "fused": self.fused,
            "name": self.name,
        }
