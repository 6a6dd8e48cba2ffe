import json

import pytest

from kctx.finetuning import FineTuning
from kctx.finetuning.report import table, write_means

pytestmark = pytest.mark.once


class Guessing(FineTuning):
    def baseline(self):
        return "majority", {"accuracy": 0.5}


def test_a_table_lines_up_and_leaves_what_is_missing_empty():
    found = table({"fine-tuned": {"accuracy": 0.875, "f1": 0.5}, "none": {"accuracy": 0.25}})
    assert found.split("\n") == [
        "          fine-tuned     none",
        "accuracy      0.8750   0.2500",
        "f1            0.5000         ",
    ]


def test_means_and_deviations_over_seeds(tmp_path, capsys):
    reports = {0: {"accuracy": 0.5, "f1_answerable": 1.0}, 1: {"accuracy": 0.7}}
    write_means(Guessing(), reports, tmp_path)
    found = json.loads((tmp_path / "metrics.json").read_text(encoding="utf-8"))
    assert found["accuracy"] == pytest.approx(0.6)
    assert found["deviation"] == {"accuracy": pytest.approx(0.02**0.5)}
    assert found["seeds"]["1"] == {"accuracy": 0.7} and "f1_answerable" not in found
    assert found["baseline"] == {"name": "majority", "accuracy": 0.5}
    assert "0.6000" in capsys.readouterr().out
