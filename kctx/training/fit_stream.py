"""`fit` of a table of words, as its recipes run it."""

import time
from pathlib import Path

from kctx.training.callbacks import CSVLog, TensorBoardLog
from kctx.training.checkpoints import Checkpoints
from kctx.training.fit_steps import fit_steps
from kctx.training.word_progress import WordProgress


def fit_stream(
    model,
    stream,
    folder,
    total_steps,
    words_per_step,
    what="words",
    save_every=1,
    log_every=None,
    fingerprint=None,
    resume=False,
):
    """Trains on a stream to its end, with checkpoints, progress, log.csv and tensorboard/.

    Args:
        model: `SparseModel` of `kctx.models`.
        stream: of `kctx.data`, with `steps_per_epoch`; what checkpoints need to begin it anew.
        folder: of the run.
        total_steps: int, batches of the whole run.
        words_per_step: float, words that a batch stands for.
        what: str, what is counted. Default "words".
        save_every: int, epochs between checkpoints. Default 1.
        log_every: int, batches between two rows of the log. Default: ten rows an epoch, or more, so
            that no more than 100 batches lie between them.
        fingerprint: dict, what must be equal for a run to be resumed, see `Checkpoints`.
        resume: bool, whether to go on from the newest checkpoint. Default False.

    Returns:
        dict: "loss", of the last row of the log, and "<what>_per_second" of all that was trained
        now, compilation and checkpoints included; empty if nothing was left to train.
    """
    folder, every = Path(folder), stream.steps_per_epoch
    shown = log_every or max(1, min(100, every // 10))
    began = time.perf_counter()
    history = fit_steps(
        model,
        lambda: stream,
        total_steps=total_steps,
        every=every,
        checkpoints=Checkpoints(
            folder / "checkpoints",
            every=every * save_every,
            stream=stream,
            fingerprint=fingerprint,
        ),
        resume=resume,
        callbacks=[
            WordProgress(words_per_step, total_steps, shown, what),
            CSVLog(folder / "log.csv", shown),
            TensorBoardLog(folder / "tensorboard", shown),
        ],
        verbose=0,
    )
    if not history:
        return {}
    losses = history.history["loss"]
    words = len(losses) * every * words_per_step
    return {"loss": losses[-1], f"{what}_per_second": words / (time.perf_counter() - began)}
