"""Scores, baselines and plots."""

from kctx.evaluation.analogies import analogies, read_analogies
from kctx.evaluation.answers import answer_report, answer_scores, best_threshold, normalised
from kctx.evaluation.baselines import (
    balanced_weights,
    closest_sentence,
    most_frequent_tags,
    word_overlap,
)
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
from kctx.evaluation.run_report import write_run_report
from kctx.evaluation.scatter import scatter
from kctx.evaluation.word_map import word_map
from kctx.evaluation.word_similarity import rare_word_pairs, read_word_pairs, word_similarity

__all__ = [
    "analogies",
    "answer_report",
    "answer_scores",
    "balanced_weights",
    "best_mixture_weight",
    "best_threshold",
    "calibration",
    "choice_report",
    "classification_report",
    "closest_sentence",
    "confusion_matrix",
    "draw",
    "entity_report",
    "entity_table",
    "learning_curves",
    "mixed",
    "most_frequent_tags",
    "normalised",
    "perplexity",
    "rare_word_pairs",
    "read_analogies",
    "read_word_pairs",
    "regression_report",
    "reliability",
    "scatter",
    "unigram_cross_entropy",
    "unigram_entropy",
    "word_map",
    "word_overlap",
    "word_similarity",
    "write_run_report",
]
