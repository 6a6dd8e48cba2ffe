"""Learning rate schedules of the papers."""

import math
import numbers

import keras
from keras import ops


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
        if not _is_number(peak) or not peak > 0:
            raise ValueError(f"`peak` must be finite and greater than 0. Received: peak={peak}")
        if not _is_number(warmup_steps) or warmup_steps % 1 or warmup_steps < 0:
            raise ValueError(
                f"`warmup_steps` must be an integer of at least 0. Received: {warmup_steps}"
            )
        if not _is_number(total_steps) or total_steps % 1 or total_steps <= warmup_steps:
            raise ValueError(
                "`total_steps` must be an integer greater than `warmup_steps`. "
                f"Received: total_steps={total_steps}, warmup_steps={warmup_steps}"
            )
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


def _is_number(value):
    return isinstance(value, numbers.Real) and math.isfinite(value)
