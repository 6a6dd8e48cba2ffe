"""Adam with decoupled weight decay, as BERT and its kin use it."""

import math
import re

import keras
from keras import ops

from kctx.arguments import check_pattern
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
    A variable may have a rate of its own, `rates` times r. After `make_freezable`, variables can be
    switched off and on while training goes on, which `GradualUnfreezing` does: one that is off
    keeps its value and its moments bit for bit, and its gradient does not count in the norm.

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
        rates: factors of the learning rate, floats >= 0: a list with one for each trainable
            variable, as `layerwise_rates` makes it; or a dict of regular expression to factor, of
            which the first that is found in the path of a variable counts, else 1. Default: 1.
        gradient_accumulation_steps: int >= 2, over how many batches gradients are averaged, or
            None. The schedule counts batches all the same.
        fused: False takes the plain form on every backend.
        freezable: as after `make_freezable`. Default False.
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
        rates=None,
        freezable=False,
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
        for pattern in self.exclude:
            check_pattern("exclude", pattern)
        self.fused = fused
        if isinstance(rates, dict):
            for pattern in rates:
                check_pattern("rates", pattern)
            rates = {pattern: float(factor) for pattern, factor in rates.items()}
        elif rates is not None:
            rates = [float(factor) for factor in rates]
        factors = list(rates.values()) if isinstance(rates, dict) else rates or []
        if not all(0 <= factor < math.inf for factor in factors):
            raise ValueError(f"`rates` must be finite and at least 0. Received: {factors}")
        self.rates = rates
        self.freezable = freezable

    def make_freezable(self):
        """Makes `set_active` possible. Call it before the first step, and before a resume.

        Raises:
            ValueError: the optimizer is built.
        """
        if self.built and not self.freezable:
            raise ValueError(
                "The optimizer must become freezable before it is built: before the first step "
                "and before a resume. Received: one that is built"
            )
        self.freezable = True

    def set_active(self, active):
        """Switches variables on and off.

        Args:
            active: list of bool, one for each trainable variable, True = it is trained.
        """
        self._active.assign(ops.convert_to_tensor([float(flag) for flag in active], "float32"))

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
        self._factors = self._factors_of(variables)
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
        if self.freezable:
            self._active = self.add_variable(
                (len(variables),), initializer="ones", dtype="float32", name="active"
            )
        fits = all(variable.dtype == "float32" for variable in variables)
        if keras.config.backend() == "tensorflow":
            import tensorflow as tf

            fits = fits and tf.distribute.get_strategy().num_replicas_in_sync == 1
        elif keras.config.backend() == "torch":
            fits = fits and all(variable.value.is_contiguous() for variable in variables)
        self._fused_update = FUSED_UPDATES.get(keras.config.backend()) if fits else None

    def _factors_of(self, variables):
        if isinstance(self.rates, list):
            if len(self.rates) != len(variables):
                raise ValueError(
                    "`rates` must hold a factor for each trainable variable. "
                    f"Received: {len(self.rates)} for {len(variables)}"
                )
            return [float(factor) for factor in self.rates]
        patterns = (self.rates or {}).items()
        return [
            next((float(rate) for pattern, rate in patterns if re.search(pattern, v.path)), 1.0)
            for v in variables
        ]

    def factor_of(self, variable):
        """float, the factor of the learning rate of `variable`, whether it is switched on or off.

        Raises:
            ValueError: the optimizer is not built yet.
        """
        return self._factors[self._get_variable_index(variable)]

    def is_active(self, variable):
        """Scalar tensor, 1.0 where `variable` is switched on, else 0.0; 1.0 if not freezable."""
        if not self.freezable:
            return 1.0
        return self._active[self._get_variable_index(variable)]

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
        rate = ops.cast(learning_rate, "float32") * self.factor_of(variable)
        new_momentum = momentum + (gradient - momentum) * (1 - self.beta_1)
        new_velocity = velocity + (ops.square(gradient) - velocity) * (1 - self.beta_2)
        update = new_momentum / correction_1
        update = rate * (update / (ops.sqrt(new_velocity / correction_2) + self.epsilon))
        value = ops.cast(variable, "float32")
        if self.decays(variable):
            value = value - value * (rate * self.decay)
        value = ops.cast(value - update, variable.dtype)
        if self.freezable:
            active = self.is_active(variable) > 0
            value, new_momentum, new_velocity = (
                ops.where(active, new, ops.convert_to_tensor(old))
                for new, old in (
                    (value, variable),
                    (new_momentum, momentum),
                    (new_velocity, velocity),
                )
            )
        self.assign(momentum, new_momentum)
        self.assign(velocity, new_velocity)
        self.assign(variable, value)

    def apply(self, grads, trainable_variables=None):
        if self.freezable:
            variables = trainable_variables
            if variables is None:
                variables = self._trainable_variables
            variables = list(variables)
            self.build(variables)
            grads = [
                grad if grad is None else self._of_active(grad, variable)
                for grad, variable in zip(grads, variables, strict=True)
            ]
        super().apply(grads, trainable_variables)

    def _of_active(self, gradient, variable):
        """The gradient, 0 where `variable` is switched off."""
        if keras.config.backend() == "tensorflow":
            import tensorflow as tf

            gradient = tf.convert_to_tensor(gradient)  # dense
        return ops.where(self.is_active(variable) > 0, gradient, ops.zeros_like(gradient))

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
        pass  # a part of the update

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        if self.fused and self._fused_update:
            rate = ops.cast(learning_rate, "float32")
            self._fused_update(self, grads, trainable_variables, rate)
        else:
            super()._backend_update_step(grads, trainable_variables, learning_rate)

    def get_config(self):
        rates = dict(self.rates) if isinstance(self.rates, dict) else self.rates and [*self.rates]
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
            "rates": rates,
            "freezable": self.freezable,
            "name": self.name,
        }
