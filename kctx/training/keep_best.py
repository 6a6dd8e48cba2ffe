"""Keeps the best epoch of a fine-tuning run."""

import math
from pathlib import Path

from kctx.arguments import check_count, check_number
from kctx.files import read_json, write_json
from kctx.training.step_callback import StepCallback


class KeepBest(StepCallback):
    """Evaluates after each epoch, saves the model whenever it is better than before, may stop.

    Args:
        path: JSON file that remembers the best epoch, so that a resumed run knows it.
        evaluate: callable without arguments that gives a dict of metrics, higher is better; the
            first one decides. NaN is never better.
        save: callable without arguments that saves the model.
        patience: int, steps without a better evaluation after which the run ends (early stopping);
            resuming it then ends at once. Default: never.
        min_gain: float >= 0, by how much a metric must exceed the best one to be better. Default 0.

    Adds its metrics to the logs as `val_<name>`.
    """

    def __init__(self, path, evaluate, save, patience=None, min_gain=0.0):
        super().__init__()
        if patience is not None:
            check_count("patience", patience)
        check_number("min_gain", min_gain, least=0)
        self.path = Path(path)
        self.evaluate = evaluate
        self.save = save
        self.patience = patience
        self.min_gain = min_gain
        self.best = None

    def on_train_begin(self, logs=None):
        if self.step and self.path.is_file():
            self.best = read_json(self.path)

    def on_epoch_end(self, epoch, logs=None):
        self.sync()
        metrics = numbers_of(self.evaluate())
        if self._is_better(metrics):
            self.best = {**metrics, "step": self.step}
            self.save()
            write_json(self.path, self.best)
        elif self._is_exhausted():
            self.model.stop_training = True
            print(f"Stopped: nothing was better than step {self.best['step']:,}")
        if logs is not None:
            logs.update({f"val_{name}": value for name, value in metrics.items()})

    def _is_better(self, metrics):
        if self.best is None:
            return True
        decisive = next(iter(metrics))
        old, new = self.best[decisive], metrics[decisive]
        return new > old + self.min_gain or (math.isnan(old) and not math.isnan(new))

    def _is_exhausted(self):
        return self.patience is not None and self.step - self.best["step"] >= self.patience

    def is_over(self):
        self.on_train_begin()
        return self.best is not None and self._is_exhausted()


def numbers_of(metrics):
    """The metrics as dict of float, which JSON can hold, or a `ValueError`."""
    try:
        found = {name: float(value) for name, value in metrics.items()}
    except (AttributeError, TypeError, ValueError):
        found = {}
    if not found:
        raise ValueError(
            f"`evaluate` must give a dict of numbers, one at least. Received: {metrics!r}"
        )
    return found
