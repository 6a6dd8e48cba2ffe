"""The recipe that evaluates vectors, as a user runs it."""

import json

import numpy as np
import pytest

from kctx import Vectors
from kctx.convert import save_vectors
from kctx.words import to_text
from recipes.evaluate_vectors import Config, main

pytestmark = pytest.mark.once


@pytest.fixture
def folder(tmp_path):
    words = ["athens", "greece", "oslo", "norway", to_text(b"odd\xff"), "cat", "dog"]
    table = np.random.default_rng(0).normal(size=(7, 6)).astype("float32")
    table[3] = table[2] + table[1] - table[0]
    table[4] = np.nan
    save_vectors(Vectors(words, table), tmp_path / "v.bin", "word2vec")
    (tmp_path / "pairs.tsv").write_text("cat\tdog\t9\nathens\tdog\t1\nathens\tcat\t2\n")
    (tmp_path / "questions.txt").write_text(
        ": capital\nathens greece oslo norway\n: gram1\na b c d"
    )
    return tmp_path


def test_report(folder, capsys):
    main(
        Config(
            vectors=folder / "v.bin",
            similarity=(folder / "pairs.tsv",),
            analogies=(folder / "questions.txt",),
            neighbours=("cat", "unheard"),
            rare=5,
            save_native=folder / "native",
            output=folder / "run",
        )
    )
    report = json.loads((folder / "run/report.json").read_text())
    assert report["vectors"]["words"] == 7
    assert report["vectors"]["nan_rows"] == {"count": 1, "some": ["odd\\udcff"]}
    assert [row["used"] for row in report["similarity"].values()] == [3, 3]
    (questions,) = report["analogies"].values()
    assert questions["semantic"]["accuracy"] == 1 and questions["syntactic"]["accuracy"] is None
    assert len(report["neighbours"]["cat"]) == 6 and "unheard" not in report["neighbours"]
    assert len(Vectors.load(folder / "native")) == 7
    printed = capsys.readouterr().out
    for text in ("Word similarity", "syntactic", "no subwords", "nan rows"):
        assert text in printed
    if "No plot" not in printed:
        assert (folder / "run/map.png").read_bytes().startswith(b"\x89PNG")


def test_errors_reach_the_user(folder):
    (folder / "v.bin").write_bytes(b"9 6\na ")
    with pytest.raises(ValueError, match="v.bin is truncated or its header is wrong"):
        main(Config(vectors=folder / "v.bin", output=folder / "run"))
    assert not (folder / "run").exists()
