"""What a run of pretraining says at its end."""

from pathlib import Path

from kctx.evaluation.plots import draw, learning_curves
from kctx.files import write_json


def write_run_report(folder, metrics):
    """Prints metrics and writes metrics.json and, from log.csv, learning_curves.png.

    Args:
        folder: of the run.
        metrics: dict of name to number, or None where there is none.
    """
    folder = Path(folder)
    width = max(map(len, metrics), default=0)
    for name, value in metrics.items():
        print(f"{name:<{width}} {'-' if value is None else f'{value:,.6g}'}")
    write_json(folder / "metrics.json", metrics)
    draw(learning_curves, folder / "log.csv", folder / "learning_curves.png")
