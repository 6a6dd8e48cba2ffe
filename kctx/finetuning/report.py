"""What a run of fine-tuning leaves behind: metrics, predictions, a plot, a table."""

import json
import statistics

from kctx import files


def write_report(work, answers, folder):
    """Writes metrics.json, predictions.jsonl and the plot of one run, and prints its table.

    Args:
        work: `FineTuning`.
        answers: list of dict, of the best epoch.
        folder: `pathlib.Path`.

    Returns:
        dict of float, the metrics.
    """
    metrics = work.metrics(answers)
    name, baseline = work.baseline()
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in work.rows(answers)]
    files.write_text(folder / "predictions.jsonl", "".join(lines))
    files.write_json(folder / "metrics.json", {**metrics, "baseline": {"name": name, **baseline}})
    work.plot(answers, folder)
    if remark := work.remark(answers):
        print(remark)
    print(table({"fine-tuned": metrics, name: baseline}))
    return metrics


def write_means(work, reports, folder):
    """Writes metrics.json over several runs and prints their table.

    Args:
        work: `FineTuning`.
        reports: dict of seed to dict of metrics.
        folder: `pathlib.Path`.
    """
    means = {name: statistics.mean(values) for name, values in _columns(reports)}
    deviations = {name: statistics.stdev(values) for name, values in _columns(reports)}
    name, baseline = work.baseline()
    written = {**means, "deviation": deviations, "seeds": reports}
    files.write_json(folder / "metrics.json", {**written, "baseline": {"name": name, **baseline}})
    runs = {f"seed {seed}": metrics for seed, metrics in reports.items()}
    print(table({"mean": means, "deviation": deviations, **runs, name: baseline}))


def _columns(reports):
    """(metric, its values in all runs) of every metric that all runs have."""
    first, *others = reports.values()
    for name in first:
        if all(name in other for other in others):
            yield name, [metrics[name] for metrics in reports.values()]


def table(columns):
    """Lines of a table of numbers: dict of title to dict of metric to number -> str."""
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    width = max(map(len, names))
    sizes = [max(len(title), 7) for title in columns]

    def line(name, cells):
        return "  ".join(
            [name.ljust(width), *(c.rjust(s) for c, s in zip(cells, sizes, strict=True))]
        )

    rows = [
        line(name, [f"{column[name]:.4f}" if name in column else "" for column in columns.values()])
        for name in names
    ]
    return "\n".join([line("", columns), *rows])
