"""Keeps the best epoch of a fine-tuning run."""

import json
import os
from pathlib import Path

from kctx.training.step_callback import StepCallback


class KeepBest(StepCallback):
    """Evaluates after each epoch and saves the model whenever it is better than before.

    Args:
        path: JSON file that remembers the best epoch, so that a resumed run knows it.
        evaluate: callable without arguments that gives a dict of metrics, higher is better; the
            first one decides.
        save: callable without arguments that saves the model.

    Adds its metrics to the logs as `val_<name>`.
    """

    def __init__(self, path, evaluate, save):
        super().__init__()
        self.path = Path(path)
        self.evaluate = evaluate
        self.save = save
        self.best = None

    def on_train_begin(self, logs=None):
        if self.step and self.path.is_file():
            self.best = json.loads(self.path.read_text(encoding="utf-8"))

    def on_epoch_end(self, epoch, logs=None):
        self.sync()
        metrics = self.evaluate()
        decisive = next(iter(metrics))
        if self.best is None or metrics[decisive] > self.best[decisive]:
            self.best = {**metrics, "step": self.step}
            self.save()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = self.path.with_name(f".{self.path.name}.partial")
            partial.write_text(json.dumps(self.best, indent=2), encoding="utf-8")
            os.replace(partial, self.path)
        if logs is not None:
            logs.update({f"val_{name}": value for name, value in metrics.items()})
