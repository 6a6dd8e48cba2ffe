"""What surrounds `model.fit`: settings, optimizer, schedule, exact resume, reports."""

from kctx.training.averaged_weights import AveragedWeights
from kctx.training.callbacks import (
    CSVLog,
    Progress,
    StopOnNonFinite,
    TensorBoardLog,
    tokens_per_batch,
)
from kctx.training.checkpoints import Checkpoints, has_checkpoint, refuse_used
from kctx.training.exponential_moving_average import ExponentialMovingAverage
from kctx.training.fit_steps import fit_steps
from kctx.training.fit_stream import fit_stream
from kctx.training.gradual_unfreezing import GradualUnfreezing
from kctx.training.init_from import init_from
from kctx.training.keep_best import KeepBest
from kctx.training.layer_groups import LayerGroup, layer_groups, layerwise_rates
from kctx.training.loss_scale import LossScale
from kctx.training.optimizers import AdamW
from kctx.training.reports import reports
from kctx.training.schedules import WarmupLinearDecay
from kctx.training.setup import Setup, default_jit, setup
from kctx.training.step_callback import StepCallback
from kctx.training.stochastic_weight_averaging import StochasticWeightAveraging
from kctx.training.word_progress import WordProgress

__all__ = [
    "AdamW",
    "AveragedWeights",
    "CSVLog",
    "Checkpoints",
    "ExponentialMovingAverage",
    "GradualUnfreezing",
    "KeepBest",
    "LayerGroup",
    "LossScale",
    "Progress",
    "Setup",
    "StepCallback",
    "StochasticWeightAveraging",
    "StopOnNonFinite",
    "TensorBoardLog",
    "WarmupLinearDecay",
    "WordProgress",
    "default_jit",
    "fit_steps",
    "fit_stream",
    "has_checkpoint",
    "init_from",
    "layer_groups",
    "layerwise_rates",
    "refuse_used",
    "reports",
    "setup",
    "tokens_per_batch",
]
