"""What surrounds `model.fit`: settings, optimizer, schedule, exact resume, reports."""

from kctx.training.loss_scale import LossScale
from kctx.training.optimizers import AdamW
from kctx.training.schedules import WarmupLinearDecay
from kctx.training.setup import Setup, setup

__all__ = ["AdamW", "LossScale", "Setup", "WarmupLinearDecay", "setup"]
