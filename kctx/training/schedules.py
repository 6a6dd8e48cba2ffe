"""Learning rate schedules of the papers."""

import keras
from keras import ops

from kctx.arguments import check_number


@keras.saving.register_keras_serializable("kctx")
class WarmupLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then linear decay to 0, as the original BERT trains.

    The decay counts from step 0, not from the end of the warm-up (Devlin et al., 2018, appendix
    A.2, and their released code), so the rate drops a little where the warm-up ends:

        rate(s) = peak * s / W          for s < W
        rate(s) = peak * (T - s) / T    for W <= s < T
        rate(s) = 0                     for s >= T

    The first step, s = 0, has rate 0 if there is a warm-up.

    Args:
        peak: float > 0, the rate that the warm-up aims at; 1e-4 in the paper.
        warmup_steps: int >= 0, W, in steps; 10,000 in the paper.
        total_steps: int > W, T, in steps; 1,000,000 in the paper.

    Returns:
        float32 scalar for an integer (or float) step.
    """

    def __init__(self, peak, warmup_steps, total_steps):
        super().__init__()
        check_number("peak", peak, above=0)
        check_number("warmup_steps", warmup_steps, least=0)
        check_number("total_steps", total_steps, above=warmup_steps)
        for name, steps in (("warmup_steps", warmup_steps), ("total_steps", total_steps)):
            if steps % 1:
                raise ValueError(f"`{name}` must be an integer. Received: {name}={steps}")
        self.peak = float(peak)
        self.warmup_steps = int(warmup_steps)
        self.total_steps = int(total_steps)

    def __call__(self, step):
        # T - s is an exact integer: 1 - s / T in float32 would lose 6% of the last step of 1e6.
        step = ops.cast(step, "int32")
        remaining = ops.cast(ops.maximum(self.total_steps - step, 0), "float32")
        decay = self.peak * (remaining / self.total_steps)
        if self.warmup_steps == 0:
            return decay
        warmup = self.peak * (ops.cast(step, "float32") / self.warmup_steps)
        return ops.where(step < self.warmup_steps, warmup, decay)

    def get_config(self):
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
        }
