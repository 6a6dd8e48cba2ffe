"""What surrounds `model.fit`: settings, optimizer, schedule, exact resume, reports."""

from kctx.training.callbacks import (
    CSVLog,
    Progress,
    StopOnNonFinite,
    TensorBoardLog,
    tokens_per_batch,
)
from kctx.training.checkpoints import Checkpoints, refuse_used
from kctx.training.fit_steps import fit_steps
from kctx.training.init_from import init_from
from kctx.training.keep_best import KeepBest
from kctx.training.loss_scale import LossScale
from kctx.training.optimizers import AdamW
from kctx.training.reports import reports
from kctx.training.schedules import WarmupLinearDecay
from kctx.training.setup import Setup, default_jit, setup
from kctx.training.step_callback import StepCallback
from kctx.training.word_progress import WordProgress

__all__ = [
    "AdamW",
    "CSVLog",
    "Checkpoints",
    "KeepBest",
    "LossScale",
    "Progress",
    "Setup",
    "StepCallback",
    "StopOnNonFinite",
    "TensorBoardLog",
    "WarmupLinearDecay",
    "WordProgress",
    "default_jit",
    "fit_steps",
    "init_from",
    "refuse_used",
    "reports",
    "setup",
    "tokens_per_batch",
]
