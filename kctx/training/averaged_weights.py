"""Averages of the weights along a run, put into the model to evaluate and to save."""

import contextlib
import functools

import keras
import numpy as np
from keras import ops

from kctx.training.step_callback import StepCallback


def plain_blend(averages, weights, share):
    """a + share * (w - a), which is a where both are equal."""
    pairs = zip(averages, weights, strict=True)
    return [average + (weight - average) * share for average, weight in pairs]


@functools.cache
def _blend():
    """`plain_blend` in one pass over the memory; plain it costs a tenth of a step on a CPU."""
    if keras.config.backend() == "jax":
        import jax

        return jax.jit(plain_blend, donate_argnums=0)
    if keras.config.backend() == "torch":
        import torch

        def lerp(averages, weights, share):
            torch._foreach_lerp_(averages, weights, share)
            return averages

        return lerp
    import tensorflow as tf

    compiled = tf.function(plain_blend, jit_compile=True, reduce_retracing=True)
    return lambda averages, weights, share: compiled(averages, weights, tf.constant(share))


class AveragedWeights(StepCallback):
    """Base of callbacks that keep an average of the trainable weights, in float32.

    Training goes on with the weights themselves; the average is swapped in for a while:

        average = ExponentialMovingAverage(0.999)
        best = KeepBest(path, average.averaged(evaluate), average.averaged(save))
        fit_steps(..., callbacks=[average, best], checkpoints=checkpoints)

    A resume goes on with the average that the checkpoint holds.

    Attributes:
        updates: int, how often weights were added to the average.
    """

    def __init__(self):
        super().__init__()
        self.updates = 0
        self._averages = None

    def add(self, share):
        """Moves the average towards the present weights: a <- a + share * (w - a).

        Args:
            share: float in (0, 1]. The first time the average becomes the weights.
        """
        self.sync()
        weights = [
            ops.stop_gradient(ops.cast(variable, "float32"))
            for variable in self.model.trainable_variables
        ]
        if self._averages is None:
            # Copies: the next step changes the weights in place on some backends.
            self._averages = [ops.copy(weight) for weight in weights]
        else:
            self._averages = _blend()(self._averages, weights, share)
        self.updates += 1

    @contextlib.contextmanager
    def swapped(self):
        """The model has the averaged weights within, and its own again, bit for bit, behind.

        Without an average yet it keeps its own.
        """
        self.sync()
        if self._averages is None:
            yield
            return
        variables = self.model.trainable_variables
        own = [ops.copy(ops.stop_gradient(ops.convert_to_tensor(v))) for v in variables]
        try:
            for variable, average in zip(variables, self._averages, strict=True):
                variable.assign(ops.cast(average, variable.dtype))
            yield
        finally:
            for variable, value in zip(variables, own, strict=True):
                variable.assign(value)

    def averaged(self, function):
        """`function` under the averaged weights, for instance the `evaluate` of `KeepBest`."""

        @functools.wraps(function)
        def under_average(*args, **kwargs):
            with self.swapped():
                return function(*args, **kwargs)

        return under_average

    def state(self):
        averages = () if self._averages is None else self._averages
        arrays = {str(i): ops.convert_to_numpy(average) for i, average in enumerate(averages)}
        return {"updates": np.int64(self.updates), **arrays}

    def restore(self, state):
        self.updates = int(state["updates"])
        count = len(state) - 1
        self._averages = None
        if count:
            self._averages = [ops.convert_to_tensor(state[str(i)]) for i in range(count)]

    def set_model(self, model):
        super().set_model(model)
        if self._averages is not None and len(self._averages) != len(model.trainable_variables):
            raise ValueError(
                "The average belongs to a model of other trainable weights. Received: "
                f"{len(self._averages)} averages, {len(model.trainable_variables)} weights"
            )
