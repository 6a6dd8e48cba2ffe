"""The exponential moving average of the weights."""

from kctx.arguments import check_count, check_number
from kctx.training.averaged_weights import AveragedWeights


class ExponentialMovingAverage(AveragedWeights):
    """Keeps a <- d * a + (1 - d) * w over the steps (Polyak & Juditsky, 1992, in recursive form).

    With `warmup`, update number n (from 0) has d = min(decay, (1 + n) / (10 + n)), so that the
    random start of a head is soon forgotten.

    Args:
        decay: float in [0, 1), d. Default 0.999: about the last thousand updates count.
        every: int >= 1, steps from one update to the next. Default 1.
        warmup: bool, whether d is lower at first. Default True.
    """

    def __init__(self, decay=0.999, every=1, warmup=True):
        super().__init__()
        check_number("decay", decay, least=0)
        if decay >= 1:
            raise ValueError(f"`decay` must be in [0, 1). Received: decay={decay}")
        check_count("every", every)
        self.decay, self.every, self.warmup = decay, every, warmup

    def on_step(self, logs):
        if self.step // self.every > self.last_step // self.every:
            decay = self.decay
            if self.warmup:
                decay = min(decay, (1 + self.updates) / (10 + self.updates))
            self.add(1 - decay)

    def fingerprint(self):
        return {"decay": self.decay, "every": self.every, "warmup": self.warmup}
