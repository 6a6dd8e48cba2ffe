"""Scores, baselines and plots."""

from kctx.evaluation.analogies import analogies, read_analogies
from kctx.evaluation.answers import answer_report, answer_scores, best_threshold, normalised
from kctx.evaluation.entities import entity_report, entity_table
from kctx.evaluation.metrics import (
    calibration,
    choice_report,
    classification_report,
    regression_report,
    unigram_cross_entropy,
    unigram_entropy,
)
from kctx.evaluation.mixture import best_mixture_weight, mixed, perplexity
from kctx.evaluation.plots import confusion_matrix, draw, learning_curves, reliability
from kctx.evaluation.word_map import word_map
from kctx.evaluation.word_similarity import read_word_pairs, word_similarity

__all__ = [
    "analogies",
    "answer_report",
    "answer_scores",
    "best_mixture_weight",
    "best_threshold",
    "calibration",
    "choice_report",
    "classification_report",
    "confusion_matrix",
    "draw",
    "entity_report",
    "entity_table",
    "learning_curves",
    "mixed",
    "normalised",
    "perplexity",
    "read_analogies",
    "read_word_pairs",
    "regression_report",
    "reliability",
    "unigram_cross_entropy",
    "unigram_entropy",
    "word_map",
    "word_similarity",
]
