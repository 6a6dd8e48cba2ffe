"""Pictures of training runs, of confusions and of confidence; they need the extra `plot`."""

import csv
import math

import numpy as np

from kctx.evaluation.metrics import calibration, integers
from kctx.files import whole_file

# With more classes no name and no count in a confusion matrix could be read.
MOST_NAMED = 60


def new_figure(width, height):
    """A matplotlib figure that needs no display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Plots need matplotlib, which comes with the extra `plot`: pip install 'kctx[plot]'"
        ) from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def draw(function, *arguments):
    """Draws with a function of this module; without matplotlib, says so and goes on.

    For the end of a run, whose results a missing plot must not cost.

    Returns:
        what the function returns, or None without matplotlib.
    """
    try:
        return function(*arguments)
    except ImportError as error:
        print(f"No plot: {error}")
        return None


def save(figure, path):
    """Writes a PNG, whole or not at all."""
    with whole_file(path) as file:
        figure.savefig(file, format="png", dpi=120)


def read_columns(csv_path):
    """Columns of a log with a `step` column: dict of name to (steps, values), empty cells left."""
    columns = {}
    with open(csv_path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if "step" not in (reader.fieldnames or ()):
            raise ValueError(f"`csv_path` must have a `step` column. Received: {csv_path}")
        for row in reader:
            for name, cell in row.items():
                if name and name != "step" and cell:
                    steps, values = columns.setdefault(name, ([], []))
                    steps.append(int(float(row["step"])))
                    values.append(float(cell))
    if not columns:
        raise ValueError(f"`csv_path` must hold at least one row of values. Received: {csv_path}")
    return columns


def learning_curves(csv_path, png_path):
    """Draws each quantity of a training log against the step, one panel for each kind.

    Columns that differ only in the prefix `val_` share a panel.

    Args:
        csv_path: log written by `kctx.training.CSVLog`.
        png_path: where the picture goes.
    """
    columns = read_columns(csv_path)
    panels = {}
    for name in columns:
        panels.setdefault(name.removeprefix("val_"), []).append(name)
    across = min(3, len(panels))
    down = math.ceil(len(panels) / across)
    figure = new_figure(4.2 * across, 3.0 * down)
    for i, (title, names) in enumerate(panels.items()):
        axes = figure.add_subplot(down, across, i + 1)
        for name in names:
            steps, values = columns[name]
            label = "held-out" if name.startswith("val_") else "training"
            axes.plot(steps, values, label=label, marker="." if len(steps) < 30 else None)
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.grid(alpha=0.3)
        if len(names) > 1:
            axes.legend()
    save(figure, png_path)


def confusion_matrix(labels, predictions, names, png_path):
    """Draws how often each class was taken for each.

    Of more than `MOST_NAMED` classes the colours alone are drawn, without names and counts.

    Args:
        labels: (N,) int, true classes, indices into `names`.
        predictions: (N,) int, predicted classes.
        names: list of str, one for each class.
        png_path: where the picture goes.

    Returns:
        (C, C) int array; row = true class, column = predicted class.
    """
    labels, predictions = integers("labels", labels), integers("predictions", predictions)
    if labels.ndim != 1 or labels.shape != predictions.shape or not len(labels):
        raise ValueError(
            "`labels` and `predictions` must both have shape (N,), N at least 1. "
            f"Received: shapes {labels.shape} and {predictions.shape}"
        )
    for argument, values in (("labels", labels), ("predictions", predictions)):
        if values.min() < 0 or values.max() >= len(names):
            raise ValueError(
                f"`{argument}` must be in [0, {len(names)}), the number of `names`. "
                f"Received: values from {values.min()} to {values.max()}"
            )
    counts = np.zeros((len(names), len(names)), "int64")
    np.add.at(counts, (labels, predictions), 1)
    size = max(3.5, 0.55 * len(names) + 2) if len(names) <= MOST_NAMED else 8
    figure = new_figure(size + 1, size)
    axes = figure.add_subplot()
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, vmin=0, vmax=1, cmap="Blues")
    figure.colorbar(image, label="share of the true class")
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    if len(names) > MOST_NAMED:
        save(figure, png_path)
        return counts
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
    axes.set_yticks(range(len(names)), names)
    for (row, column), count in np.ndenumerate(counts):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(count), ha="center", va="center", color=colour)
    save(figure, png_path)
    return counts


def reliability(confidences, correct, png_path, bins=10):
    """Draws how often answers of each confidence are right, beside how many there are.

    Args:
        confidences: (N,) float in [0, 1], probability that each answer was given.
        correct: (N,) bool, whether it is right.
        png_path: where the picture goes.
        bins: int, equal parts of [0, 1]. Default 10.

    Returns:
        float, the expected calibration error, see `kctx.evaluation.calibration`.
    """
    counts, means, accuracies, error = calibration(confidences, correct, bins)
    figure = new_figure(4.5, 5.5)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    filled, edges = counts > 0, np.arange(bins) / bins
    upper.bar(edges[filled], accuracies[filled], 1 / bins, align="edge", edgecolor="white")
    upper.plot((0, 1), (0, 1), color="black", linestyle="--", linewidth=1, label="calibrated")
    upper.plot(means[filled], accuracies[filled], color="tab:red", marker=".", label="mean of bin")
    upper.set_ylabel("share that is right")
    upper.set_ylim(0, 1)
    upper.set_title(f"expected calibration error {error:.3f}")
    upper.legend(loc="upper left")
    lower.bar(edges, counts, 1 / bins, align="edge", edgecolor="white")
    lower.set_xlim(0, 1)
    lower.set_xlabel("confidence")
    lower.set_ylabel("answers")
    save(figure, png_path)
    return error
