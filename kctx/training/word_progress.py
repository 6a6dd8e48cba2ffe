"""Progress of a run that is counted in words."""

import sys
import time

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from kctx.arguments import check_count
from kctx.training.step_callback import StepCallback


class WordProgress(StepCallback):
    """Shows words done, words/s and the loss of the last interval: a bar, or lines.

    The loss is the mean since the last time it was shown, not since the beginning of the epoch: as
    `CSVLog` does, the metrics are reset after each interval, so give both the same `every`. To be
    used with `verbose=0`, which takes Keras' own bar away, and before callbacks that write logs.

    Adds to the logs:
        words_per_second: over the last interval, named after `what`. The first batch of a run is
            left out: it holds the compilation.

    Args:
        words_per_step: float, words that a batch stands for: `words_per_batch` of the streams of
            `kctx.data`. Records or lines where there are no words.
        total_steps: int, batches of the whole run. Default: what Keras knows of it.
        every: int, batches of an interval. Default 50.
        what: str, what is counted. Default "words".
        seconds: float, shortest time between two lines where the output is no terminal.
            Default 5.
        progress: bool, whether to show anything. Default True.
    """

    _bar = None  # there from the start, for `__del__` after an error

    def __init__(
        self, words_per_step, total_steps=None, every=50, what="words", seconds=5.0, progress=True
    ):
        super().__init__()
        if not words_per_step > 0:
            raise ValueError(f"`words_per_step` must be above 0. Received: {words_per_step}")
        check_count("every", every)
        if total_steps is not None:
            check_count("total_steps", total_steps)
        self.words_per_step, self.total_steps = words_per_step, total_steps
        self.every, self.what, self.seconds, self.progress = every, what, seconds, progress

    def on_train_begin(self, logs=None):
        self._total = self.total_steps
        if self._total is None and self.params.get("steps"):
            self._total = self.params["steps"] * self.params.get("epochs", 1)
        self._since = self._first = self._line_at = None
        self._speed = self._loss = self._reset_pending = None
        if self.progress and sys.stdout.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
            )
            words = None if self._total is None else self._total * self.words_per_step
            self._task = self._bar.add_task("", total=words)
            self._bar.start()

    def on_train_batch_begin(self, batch, logs=None):
        if self._reset_pending:
            self.sync()
            self.model.reset_metrics()
            self._reset_pending = False

    def on_step(self, logs):
        if self._since is None:
            self._since = self._first = (self.step, time.perf_counter())
        if self.step % self.every == 0 or self.step == self._total:
            self._renew(logs)
            self._show()
            # Not now: at the end of an epoch Keras still reads them.
            self._reset_pending = True
        if self._speed is not None:
            logs[f"{self.what}_per_second"] = self._speed

    def _renew(self, logs):
        now = time.perf_counter()
        self._loss = logs.get("loss")
        if self.step > self._since[0]:
            words = (self.step - self._since[0]) * self.words_per_step
            self._speed = words / (now - self._since[1])
        self._since = (self.step, now)

    def description(self):
        """The line that is shown."""
        done = f"{self.step * self.words_per_step:,.0f}"
        if self._total is not None:
            done += f" of {self._total * self.words_per_step:,.0f}"
        parts = [f"{done} {self.what}"]
        if self._speed is not None:
            parts.append(f"{self._speed:,.0f} {self.what}/s")
        if self._loss is not None:
            parts.append(f"loss {self._loss:.4f}")
        return ", ".join(parts)

    def _show(self):
        if self._bar is not None:
            done = self.step * self.words_per_step
            self._bar.update(self._task, completed=done, description=self.description())
            return
        now = time.perf_counter()
        due = self._line_at is None or now - self._line_at >= self.seconds
        if self.progress and (due or self.step == self._total):
            print(self.description(), flush=True)
            self._line_at = now

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        # Time spent on evaluation and checkpoints is not training time.
        if self._since is not None:
            self._since = (self.step, time.perf_counter())

    def on_epoch_end(self, epoch, logs=None):
        if logs is not None and self._speed is not None:
            logs[f"{self.what}_per_second"] = self._speed

    def on_train_end(self, logs=None):
        self.close()

    def close(self):
        """Takes the bar off the terminal; needed only after an error in `fit`."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def __del__(self):
        self.close()
