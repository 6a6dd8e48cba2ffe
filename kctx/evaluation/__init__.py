"""Scores, baselines and plots."""

from kctx.evaluation.metrics import (
    classification_report,
    regression_report,
    unigram_cross_entropy,
    unigram_entropy,
)
from kctx.evaluation.plots import confusion_matrix, draw, learning_curves

__all__ = [
    "classification_report",
    "confusion_matrix",
    "draw",
    "learning_curves",
    "regression_report",
    "unigram_cross_entropy",
    "unigram_entropy",
]
