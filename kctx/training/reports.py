"""The usual reports of a run in one call."""

from pathlib import Path

from kctx.training.callbacks import CSVLog, Progress, StopOnNonFinite, TensorBoardLog


def reports(folder, tokens_per_batch=None, every=10):
    """Progress bar with learning rate and tokens/s, log.csv, tensorboard/, a stop on NaN.

    Args:
        folder: of the run.
        tokens_per_batch: int, or None where it varies.
        every: int, steps between two rows of the log. Default 10.

    Returns:
        list of callbacks.
    """
    folder = Path(folder)
    return [
        StopOnNonFinite(),
        Progress(tokens_per_batch, every),
        CSVLog(folder / "log.csv", every),
        TensorBoardLog(folder / "tensorboard", every),
    ]
