"""Scores, baselines and plots."""

from kctx.evaluation.analogies import analogies, read_analogies
from kctx.evaluation.metrics import (
    classification_report,
    regression_report,
    unigram_cross_entropy,
    unigram_entropy,
)
from kctx.evaluation.mixture import best_mixture_weight, mixed, perplexity
from kctx.evaluation.plots import confusion_matrix, draw, learning_curves
from kctx.evaluation.word_map import word_map
from kctx.evaluation.word_similarity import read_word_pairs, word_similarity

__all__ = [
    "analogies",
    "best_mixture_weight",
    "classification_report",
    "confusion_matrix",
    "draw",
    "learning_curves",
    "mixed",
    "perplexity",
    "read_analogies",
    "read_word_pairs",
    "regression_report",
    "unigram_cross_entropy",
    "unigram_entropy",
    "word_map",
    "word_similarity",
]
