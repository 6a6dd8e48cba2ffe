"""Scores of predictions against labels, and the unigram baseline of language models."""

import warnings

import numpy as np
from scipy import stats
from sklearn import metrics

from kctx.arguments import check_count


def paired(labels, predictions):
    """Two non-empty arrays of shape (N,), or an error."""
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    if labels.ndim != 1 or predictions.shape != labels.shape:
        raise ValueError(
            "`labels` and `predictions` must both have shape (N,). "
            f"Received: shapes {labels.shape} and {predictions.shape}"
        )
    if not len(labels):
        raise ValueError("`labels` must hold at least one row. Received: 0 rows")
    return labels, predictions


def integers(name, values):
    """An array, or a `ValueError` unless it holds integers of at least 0."""
    values = np.asarray(values)
    if not values.size:
        return values.astype(int)
    if values.dtype.kind not in "iu":
        raise ValueError(f"`{name}` must be integers. Received: {values.dtype} values")
    if values.min() < 0:
        raise ValueError(f"`{name}` must be at least 0. Received: {values.min()}")
    return values


def classification_report(labels, predictions):
    """Scores of predicted classes.

    Args:
        labels: (N,) true classes, integers or strings.
        predictions: (N,) predicted classes, of the same kind.

    Returns:
        dict of float: "accuracy"; "macro_f1", the mean F1 over the classes that occur in either;
        "matthews", Matthews' correlation in [-1, 1], 0 where labels or predictions are all of one
        class.

    Raises:
        ValueError: for no rows, unequal numbers, or values that are no classes of one kind.
    """
    labels, predictions = paired(labels, predictions)
    for kinds in ("iub", "U"):
        if labels.dtype.kind in kinds and predictions.dtype.kind in kinds:
            break
    else:
        raise ValueError(
            "`labels` and `predictions` must both be integers, or both strings. "
            f"Received: {labels.dtype} and {predictions.dtype}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "accuracy": float(metrics.accuracy_score(labels, predictions)),
            "macro_f1": float(
                metrics.f1_score(labels, predictions, average="macro", zero_division=0)
            ),
            "matthews": float(metrics.matthews_corrcoef(labels, predictions)),
        }


def regression_report(labels, predictions):
    """Correlations of predicted values.

    Args:
        labels: (N,) true values.
        predictions: (N,) predicted values.

    Returns:
        dict of float: "pearson" and "spearman", in [-1, 1]; both 0 where they are not defined:
        fewer than two rows, or all labels or all predictions equal.

    Raises:
        ValueError: for no rows, or values that are not finite.
    """
    labels, predictions = paired(labels, predictions)
    labels, predictions = labels.astype("float64"), predictions.astype("float64")
    for name, values in (("labels", labels), ("predictions", predictions)):
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values)))
            raise ValueError(f"`{name}` must be finite. Received: {values[row]} in row {row}")
    if np.ptp(labels) == 0 or np.ptp(predictions) == 0:
        return {"pearson": 0.0, "spearman": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nearly constant values
        pearson = stats.pearsonr(labels, predictions).statistic
        spearman = stats.spearmanr(labels, predictions).statistic
    return {
        "pearson": float(np.nan_to_num(pearson)),
        "spearman": float(np.nan_to_num(spearman)),
    }


def choice_report(labels, predictions, num_choices):
    """Scores of answers chosen among a few.

    Args:
        labels: (N,) int, places of the right choices.
        predictions: (N,) int, places of the chosen ones.
        num_choices: (N,) int, how many there were.

    Returns:
        dict of float: "accuracy"; "chance", the accuracy that guessing gives on average.

    Raises:
        ValueError: for no rows, unequal numbers, or values that are no places of choices.
    """
    labels, predictions = paired(integers("labels", labels), integers("predictions", predictions))
    labels, num_choices = paired(labels, integers("num_choices", num_choices))
    if (num_choices <= np.maximum(labels, predictions)).any():
        row = int(np.argmax(num_choices <= np.maximum(labels, predictions)))
        raise ValueError(
            "`labels` and `predictions` must be below `num_choices`. Received: "
            f"{labels[row]} and {predictions[row]} of {num_choices[row]} choices in row {row}"
        )
    return {
        "accuracy": float(np.mean(labels == predictions)),
        "chance": float(np.mean(1 / num_choices)),
    }


def calibration(confidences, correct, bins=10):
    """How often answers of a confidence are right (Guo et al., 2017, section 2).

    Args:
        confidences: (N,) float in [0, 1], probability that each answer was given.
        correct: (N,) bool, whether it is right.
        bins: int, equal parts of [0, 1]. Default 10.

    Returns:
        (counts, mean confidences, accuracies, error): int (bins,); float (bins,) twice, 0 in empty
        bins; float, the expected calibration error, the mean over the answers of the distance
        between accuracy and mean confidence of their bin.

    Raises:
        ValueError: for no rows, unequal numbers, or values that are not as above.
    """
    check_count("bins", bins)
    correct, confidences = paired(correct, confidences)
    if not np.isin(correct, (0, 1)).all():
        raise ValueError(f"`correct` must be bools. Received: {correct.dtype} values")
    if confidences.dtype.kind not in "fiub":
        raise ValueError(f"`confidences` must be numbers. Received: {confidences.dtype} values")
    if not ((confidences >= 0) & (confidences <= 1)).all():
        raise ValueError(
            "`confidences` must lie in [0, 1]. Received: values from "
            f"{confidences.min()} to {confidences.max()}"
        )
    # Bin i holds (i / bins, (i + 1) / bins], the first 0 as well.
    places = np.clip(np.ceil(confidences * bins).astype(int) - 1, 0, bins - 1)
    counts = np.bincount(places, minlength=bins)
    divisor = np.maximum(counts, 1)
    means = np.bincount(places, confidences, bins) / divisor
    accuracies = np.bincount(places, correct, bins) / divisor
    error = float((counts * np.abs(accuracies - means)).sum() / len(places))
    return counts, means, accuracies, error


def counted(counts, name):
    """Counts as (V,) float64, or an error."""
    counts = np.asarray(counts, "float64")
    if counts.ndim != 1 or not (counts >= 0).all() or not 0 < counts.sum() < np.inf:
        raise ValueError(
            f"`{name}` must have shape (V,), no negative value and a finite sum above 0. "
            f"Received: shape {counts.shape}, sum {counts.sum() if counts.size else 0}"
        )
    return counts


def unigram_entropy(counts):
    """Entropy -Σ p log p of the tokens' own distribution, in nats.

    No model that ignores context has a lower loss on the text that was counted.

    Args:
        counts: (V,) number of times each token occurs.
    """
    counts = counted(counts, "counts")
    probabilities = counts[counts > 0] / counts.sum()
    return float(-(probabilities * np.log(probabilities)).sum() + 0.0)


def unigram_cross_entropy(train_counts, held_out_counts):
    """Loss per token, in nats, of the unigram model of one text on another.

    The model is smoothed by adding one: p(w) = (train_counts[w] + 1) / (Σ train_counts + V).

    Args:
        train_counts: (V,) number of times each token occurs in the training text.
        held_out_counts: (V,) the same for the held-out text.
    """
    train_counts = counted(train_counts, "train_counts")
    held_out_counts = counted(held_out_counts, "held_out_counts")
    if train_counts.shape != held_out_counts.shape:
        raise ValueError(
            "`train_counts` and `held_out_counts` must be of one vocabulary. "
            f"Received: shapes {train_counts.shape} and {held_out_counts.shape}"
        )
    log_probabilities = np.log(train_counts + 1) - np.log(train_counts.sum() + len(train_counts))
    return float(-(held_out_counts * log_probabilities).sum() / held_out_counts.sum())
