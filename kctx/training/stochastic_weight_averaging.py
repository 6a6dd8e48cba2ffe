"""The plain mean of the weights at several points of a run."""

from kctx.arguments import check_count
from kctx.training.averaged_weights import AveragedWeights


class StochasticWeightAveraging(AveragedWeights):
    """Keeps the mean of the weights after every so many steps (Izmailov et al., 2018, algorithm 1).

    It gains most with a learning rate that stays up to the end, so that the points differ.

    Args:
        start: int >= 1, step after which the weights are first taken.
        every: int >= 1, steps from there to the next ones; the paper's choice is an epoch.
    """

    def __init__(self, start, every):
        super().__init__()
        for name, value in (("start", start), ("every", every)):
            check_count(name, value)
        self.start, self.every = start, every

    def _points_until(self, step):
        return 0 if step < self.start else 1 + (step - self.start) // self.every

    def on_step(self, logs):
        if self._points_until(self.step) > self._points_until(self.last_step):
            self.add(1 / (self.updates + 1))

    def fingerprint(self):
        return {"start": self.start, "every": self.every}
