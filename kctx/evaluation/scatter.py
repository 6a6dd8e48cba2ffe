"""A picture of numbers against the numbers that were to be found."""

import numpy as np

from kctx.evaluation.metrics import regression_report
from kctx.evaluation.plots import new_figure, save


def scatter(labels, predictions, png_path):
    """Draws each predicted number over the true one; it needs the extra `plot`.

    Args:
        labels: (N,) true numbers.
        predictions: (N,) predicted numbers.
        png_path: where the picture goes.
    """
    report = regression_report(labels, predictions)
    figure = new_figure(4.5, 4.5)
    axes = figure.add_subplot()
    size = float(np.clip(2000 / len(labels), 2, 20))
    axes.scatter(labels, predictions, s=size, alpha=0.4, linewidths=0)
    axes.set_xlabel("true")
    axes.set_ylabel("predicted")
    axes.set_title(f"Pearson {report['pearson']:.3f}, Spearman {report['spearman']:.3f}")
    axes.grid(alpha=0.3)
    save(figure, png_path)
