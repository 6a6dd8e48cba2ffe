"""`model.fit` counted in steps, resumable in the middle of an epoch."""

import math
import sys

from kctx.arguments import check_count
from kctx.training.step_callback import StepCallback


class StopAt(StepCallback):
    """Stops the run after batch number `total_steps`."""

    def __init__(self, total_steps):
        super().__init__()
        self.total_steps = total_steps

    def on_step(self, logs):
        if self.step >= self.total_steps:
            self.model.stop_training = True


def fit_steps(
    model, dataset, total_steps, every, callbacks=(), checkpoints=None, resume=False, **kwargs
):
    """Trains for `total_steps` batches in all; a Keras epoch is an interval of `every` batches.

    Keras begins no epoch in its middle, so the epoch is made as long as the interval between two
    reports (and validations, and checkpoints). The last interval may be shorter.

    Args:
        model: compiled Keras model.
        dataset: endless dataset of batches. On resume it must begin with the batch after the
            last one seen; with a stream in `checkpoints`, give a callable that makes the dataset,
            which is called after the stream has been restored.
        total_steps: int >= 1, batches over the whole run, before and after a resume.
        every: int >= 1, batches in an interval.
        callbacks: list of Keras callbacks.
        checkpoints: `Checkpoints`, or None. They hold what the `StepCallback`s remember as well.
        resume: whether to go on from the newest checkpoint if there is one.
        **kwargs: as `model.fit`, for instance `verbose`, `validation_data`.

    Returns:
        the Keras `History`, one row for each interval; None if there is nothing left to do, all
        steps being done or a callback, such as `KeepBest`, having ended the run.

    Raises:
        ValueError: the dataset ended early, or the intervals of reports and checkpoints do not
            fit each other.
    """
    for name, value in (("total_steps", total_steps), ("every", every)):
        check_count(name, value)
    if resume and checkpoints is None:
        raise ValueError("`resume` needs `checkpoints`. Received: resume=True, checkpoints=None")
    if checkpoints is not None and checkpoints.every % every:
        # Else a resumed run would begin in the middle of an interval and shift all later ones.
        raise ValueError(
            "Checkpoints must be a whole number of intervals apart. "
            f"Received: every={every}, checkpoints.every={checkpoints.every}"
        )
    own = [callback for callback in callbacks if isinstance(callback, StepCallback)]
    if checkpoints is not None:
        checkpoints.callbacks = own
    start = checkpoints.resume(model) if resume else 0
    if checkpoints is not None:
        # Before other callbacks begin files of theirs anew.
        checkpoints.on_train_begin()
    if resume:
        found = f"Going on at step {start:,}" if start else "No checkpoint yet: beginning at step 0"
        print(f"{found} of {total_steps:,}" if start < total_steps else "All steps are done")
    stop = StopAt(total_steps)
    for callback in (*own, stop, *([checkpoints] if checkpoints else [])):
        callback.step = start
    over = [type(callback).__name__ for callback in own if start and callback.is_over()]
    if over and start < total_steps:
        print(f"The run was ended by {', '.join(over)}")
    if start >= total_steps or over:
        return None
    callbacks = [*callbacks, stop, *([checkpoints] if checkpoints else [])]
    # A moving bar on a terminal, one line for each interval elsewhere.
    kwargs.setdefault("shuffle", False)  # the stream has its own order
    kwargs.setdefault("verbose", 1 if sys.stdout.isatty() else 2)
    first = start // every
    history = model.fit(
        dataset() if callable(dataset) else dataset,
        steps_per_epoch=min(every, total_steps),
        initial_epoch=first,
        epochs=first + math.ceil((total_steps - start) / every),
        callbacks=callbacks,
        **kwargs,
    )
    if stop.step < total_steps and not model.stop_training:
        raise ValueError(
            "`dataset` must be endless, or at least as long as the run. "
            f"Received: one that ended before total_steps={total_steps}"
        )
    return history
