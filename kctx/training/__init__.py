"""What surrounds `model.fit`: settings, optimizer, schedule, exact resume, reports."""

from kctx.training.optimizers import AdamW
from kctx.training.schedules import WarmupLinearDecay

__all__ = ["AdamW", "WarmupLinearDecay"]
