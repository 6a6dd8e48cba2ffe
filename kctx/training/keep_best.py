"""Keeps the best epoch of a fine-tuning run."""

from pathlib import Path

from kctx.arguments import check_count
from kctx.files import read_json, write_json
from kctx.training.step_callback import StepCallback


class KeepBest(StepCallback):
    """Evaluates after each epoch, saves the model whenever it is better than before, may stop.

    Args:
        path: JSON file that remembers the best epoch, so that a resumed run knows it.
        evaluate: callable without arguments that gives a dict of metrics, higher is better; the
            first one decides.
        save: callable without arguments that saves the model.
        patience: int, steps without a better evaluation after which the run ends. Default: never.

    Adds its metrics to the logs as `val_<name>`.
    """

    def __init__(self, path, evaluate, save, patience=None):
        super().__init__()
        if patience is not None:
            check_count("patience", patience)
        self.path = Path(path)
        self.evaluate = evaluate
        self.save = save
        self.patience = patience
        self.best = None

    def on_train_begin(self, logs=None):
        if self.step and self.path.is_file():
            self.best = read_json(self.path)

    def on_epoch_end(self, epoch, logs=None):
        self.sync()
        metrics = self.evaluate()
        decisive = next(iter(metrics))
        if self.best is None or metrics[decisive] > self.best[decisive]:
            self.best = {**metrics, "step": self.step}
            self.save()
            write_json(self.path, self.best)
        elif self.patience is not None and self.step - self.best["step"] >= self.patience:
            self.model.stop_training = True
        if logs is not None:
            logs.update({f"val_{name}": value for name, value in metrics.items()})
