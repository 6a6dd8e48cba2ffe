"""Reports of a run: progress bar, CSV, TensorBoard, and a stop when the loss is not finite."""

import csv
import io
import math
import time
from pathlib import Path

from kctx.arguments import check_count
from kctx.files import write_text
from kctx.training.step_callback import StepCallback


def tokens_per_batch(dataset):
    """Number of tokens in a batch, padding included, from the static shape of `padding_mask`.

    Args:
        dataset: `tf.data.Dataset` whose elements, or the first parts of whose elements, are
            dicts with `padding_mask` (B, T).
    """
    spec = dataset.element_spec
    inputs = spec[0] if isinstance(spec, tuple) else spec
    shape = inputs["padding_mask"].shape
    if None in tuple(shape):
        raise ValueError(
            "`dataset` must have batches of one static shape; give the number of tokens instead. "
            f"Received: padding_mask of shape {tuple(shape)}"
        )
    return math.prod(shape)


class Progress(StepCallback):
    """Adds the learning rate and the throughput to what the progress bar and the logs show.

    Losses and accuracies of each objective come from Keras itself. Callbacks that write logs go
    after this one.

    Adds:
        learning_rate: of the next step.
        tokens_per_second: over the last `every` batches, the first batch of the run left out.

    Args:
        tokens_per_batch: int, for instance from `tokens_per_batch(dataset)`, or None for no
            throughput.
        every: int >= 1, how often the two are renewed, in batches.
    """

    def __init__(self, tokens_per_batch=None, every=10):
        super().__init__()
        check_count("every", every)
        self.tokens_per_batch = tokens_per_batch
        self.every = every
        self._values = {}
        self._since = self._stepped = None

    def _renew(self, now=None):
        self.sync()
        self._values["learning_rate"] = float(self.model.optimizer.learning_rate)
        now = time.perf_counter() if now is None else now
        if self.tokens_per_batch and self._since is not None and self.step > self._since[0]:
            steps, seconds = self.step - self._since[0], now - self._since[1]
            self._values["tokens_per_second"] = steps * self.tokens_per_batch / seconds
        self._since = (self.step, now)

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        # Time spent on validation and checkpoints is not training time.
        if self._since is not None:
            self._since = (self.step, time.perf_counter())

    def on_step(self, logs):
        if self._since is None or self.step % self.every == 0:
            self._renew()
        self._stepped = time.perf_counter()
        logs.update(self._values)

    def on_epoch_end(self, epoch, logs=None):
        # The row of a log that ends here must not show an earlier step's rate, nor the time of an
        # evaluation that a callback made since.
        self._renew(self._stepped)
        logs.update(self._values)


class CSVLog(StepCallback):
    """Writes a row of all logs every so many steps, each the mean over its own interval.

    Metrics are reset after each row, so the progress bar shows the present interval too. A row
    also ends each Keras epoch; validation results get rows of their own. When a run is resumed,
    rows after the resumed step are dropped; a run from step 0 starts the file anew.

    Args:
        path: the file; columns `step` and one for each log.
        every: int >= 1, in batches.
    """

    def __init__(self, path, every=10):
        super().__init__()
        check_count("every", every)
        self.path = Path(path)
        self.every = every
        self._fields = ["step"]
        self._reset_pending = False
        self._row_step = None

    def _read(self):
        if not self.path.exists():
            return []
        with open(self.path, encoding="utf-8", newline="") as file:
            # A row that a kill cut short has a missing cell.
            return [row for row in csv.DictReader(file) if None not in row.values()]

    def _rewrite(self, rows):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self._fields, restval="")
        writer.writeheader()
        writer.writerows(rows)
        write_text(self.path, text.getvalue())

    def _write(self, values):
        new = [name for name in values if name not in self._fields]
        if new:
            rows = self._read() if len(self._fields) > 1 else []
            self._fields += new
            self._rewrite([*rows, {"step": self.step, **values}])
            return
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            row = {"step": self.step, **values}
            csv.DictWriter(file, self._fields, restval="").writerow(row)

    def on_train_begin(self, logs=None):
        self._fields = ["step"]
        rows = [row for row in self._read() if int(row["step"]) <= self.step] if self.step else []
        if rows:
            self._fields = list(rows[0])
        self._rewrite(rows)

    def on_train_batch_begin(self, batch, logs=None):
        if self._reset_pending:
            self.sync()
            self.model.reset_metrics()
            self._reset_pending = False

    def on_step(self, logs):
        if self.step % self.every == 0:
            self._write(logs)
            self._row_step = self.step
            # Not now: at the end of an epoch Keras still reads them.
            self._reset_pending = True

    def on_epoch_end(self, epoch, logs=None):
        validation = {name: v for name, v in logs.items() if name.startswith("val_")}
        if self._row_step != self.step:
            self._write({name: v for name, v in logs.items() if name not in validation})
        if validation:
            self._write(validation)


class TensorBoardLog(StepCallback):
    """Writes all logs as TensorBoard scalars every so many steps, on every backend.

    Args:
        folder: of the run; TensorBoard's curves go on there after a resume.
        every: int >= 1, in batches.
    """

    def __init__(self, folder, every=10):
        super().__init__()
        check_count("every", every)
        self.folder = str(folder)
        self.every = every

    def on_train_begin(self, logs=None):
        import tensorflow as tf

        self._writer = tf.summary.create_file_writer(self.folder)

    def _write(self, values):
        import tensorflow as tf

        with self._writer.as_default(step=self.step):
            for name, value in values.items():
                tf.summary.scalar(name, value)

    def on_step(self, logs):
        if self.step % self.every == 0:
            self._write(logs)

    def on_epoch_end(self, epoch, logs=None):
        self._write({name: v for name, v in logs.items() if name.startswith("val_")})
        self._writer.flush()

    def on_train_end(self, logs=None):
        self._writer.close()


class StopOnNonFinite(StepCallback):
    """Ends the run with an error as soon as a loss is NaN or infinite.

    Raises:
        FloatingPointError: with the step, the losses and the learning rate. Checkpoints that
            were saved before stay as they are.
    """

    def on_step(self, logs):
        bad = {k: v for k, v in logs.items() if "loss" in k and not math.isfinite(v)}
        if bad:
            self.sync()
            raise FloatingPointError(
                f"The loss is not finite at step {self.step}: "
                + ", ".join(f"{name}={value}" for name, value in bad.items())
                + f", learning_rate={float(self.model.optimizer.learning_rate):.4g}. Try a lower "
                "peak rate, a longer warm-up, or mixed_bfloat16 instead of float16."
            )
