"""Analogies: hand-made questions, both forms of question files, and the search against a loop."""

import numpy as np
import pytest

from kctx import Vectors
from kctx.evaluation import analogies, read_analogies
from kctx.vectors import neighbours

pytestmark = pytest.mark.once

QUESTIONS = """: capital-world
Athens Greece Oslo Norway
Oslo Norway Athens Greece
Athens Greece Oslo Atlantis
: gram1-plural
cat cats dog dogs
"""


@pytest.fixture
def vectors():
    words = ["athens", "greece", "oslo", "norway", "cat", "cats", "dog", "dogs", "noise"]
    axes = np.eye(7, dtype="float32")
    rows = [axes[0], axes[0] + axes[6], axes[1], axes[1] + axes[6]]
    rows += [axes[2], axes[2] + axes[5], axes[3], 0.1 * axes[3] - axes[5], axes[4]]
    return Vectors(words, np.stack(rows))


def test_counts_by_section(vectors, tmp_path):
    (tmp_path / "q.txt").write_text(QUESTIONS)
    result = analogies(vectors, tmp_path / "q.txt", progress=False)
    assert result["sections"]["capital-world"] == {
        "correct": 2,
        "used": 2,
        "missing": 1,
        "accuracy": 1.0,
    }
    assert result["sections"]["gram1-plural"]["correct"] == 0
    assert result["semantic"]["accuracy"] == 1 and result["syntactic"]["accuracy"] == 0
    assert result["total"] == {"correct": 2, "used": 3, "missing": 1, "accuracy": 2 / 3}


def test_case(vectors, tmp_path):
    (tmp_path / "q.txt").write_text(QUESTIONS)
    result = analogies(vectors, tmp_path / "q.txt", fold_case=False, progress=False)
    assert result["semantic"] == {"correct": 0, "used": 0, "missing": 3, "accuracy": None}
    assert result["total"]["used"] == 1


def test_spellings_of_a_word_stand_for_each_other():
    """The first spelling is asked about, no spelling of a question is an answer, any is right."""
    rows = [[1, 0, 0], [1, 0, 1], [0, 1, 0], [0, 1, 1.2], [0, 1, 1], [0.1, 1, 1]]
    words = ["a", "b", "c", "C", "d", "D"]
    question = {"s": [("A", "B", "C", "D")]}
    result = analogies(Vectors(words, rows), question, progress=False)
    assert result["total"]["correct"] == 1
    words[4] = "other"
    result = analogies(Vectors(words, rows), question, progress=False)
    assert result["total"] == {"correct": 0, "used": 1, "missing": 0, "accuracy": 0.0}


def test_restricted_vocabulary(vectors, tmp_path):
    (tmp_path / "q.txt").write_text(QUESTIONS)
    result = analogies(vectors, tmp_path / "q.txt", restrict=5, progress=False)
    assert result["total"]["used"] == 2 and result["syntactic"]["missing"] == 1


def test_folder_of_sections(tmp_path):
    (tmp_path / "family.txt").write_text("he she his her\n")
    (tmp_path / "gram2-x.txt").write_text("a b c d\r\n\r\na b e f\r\n")
    assert read_analogies(tmp_path) == {
        "family": [("he", "she", "his", "her")],
        "gram2-x": [("a", "b", "c", "d"), ("a", "b", "e", "f")],
    }


def test_wrong_files(vectors, tmp_path):
    (tmp_path / "q.txt").write_text(": x\na b c d\na b c\n")
    with pytest.raises(ValueError, match="q.txt: line 3 is not four words: 'a b c'"):
        read_analogies(tmp_path / "q.txt")
    (tmp_path / "q.txt").write_text(": x\n")
    with pytest.raises(ValueError, match="holds no questions"):
        read_analogies(tmp_path)
    with pytest.raises(ValueError, match="`method` must be one of"):
        analogies(vectors, {}, method="best")


@pytest.mark.parametrize("method", neighbours.METHODS)
@pytest.mark.parametrize("columns", [7, 100, 4096])
def test_search_agrees_with_asking_one_by_one(monkeypatch, method, columns):
    draw = np.random.default_rng(0)
    table = draw.normal(size=(500, 6)).astype("float32")
    table[[20, 30]] = 0
    table[40] = np.nan
    vectors = Vectors([f"w{i}" for i in range(500)], table)
    questions = draw.integers(0, 50, size=(200, 3))
    questions[:5] = [[20, 1, 2], [1, 1, 1], [1, 2, 1], [40, 2, 3], [3, 2, 30]]
    monkeypatch.setattr(neighbours, "_BLOCK", 3 * columns)
    monkeypatch.setattr(neighbours, "_COLUMNS", (columns, columns))
    found = neighbours.answer_analogies(vectors.table, vectors.scales, questions, method, 400)
    for (a, b, c), answer in zip(questions.tolist(), found.tolist(), strict=True):
        words = [f"w{i}" for i in (a, b, c)]
        best = vectors.analogy(*words, top=2, restrict=400, method=method)
        expected = {word for word, score in best if score > best[0][1] - 1e-6}
        assert f"w{answer}" in expected or best[0][1] == pytest.approx(best[1][1], abs=1e-5)


def test_published_questions(kctx_data):
    """The first 5,000 words of GloVe 6B on the questions that they know."""
    from kctx.convert import load_vectors

    vectors, _ = load_vectors(kctx_data / "embeddings/glove.6B.50d.top5000.txt")
    path = kctx_data / "embeddings/questions-words.txt"
    result = analogies(vectors, path, progress=False)
    assert sum(row["used"] + row["missing"] for row in result["sections"].values()) == 19544
    assert len(result["sections"]) == 14
    assert result["sections"]["gram3-comparative"]["accuracy"] > 0.5
    small = analogies(vectors, path, method="3cosmul", restrict=3000, progress=False)
    assert small["total"]["used"] < result["total"]["used"]


def test_questions_that_are_not_utf8(tmp_path):
    (tmp_path / "q.txt").write_bytes("a b c caf\xe9\n".encode("latin-1"))
    with pytest.raises(ValueError, match="q.txt is not valid utf-8: the byte at offset 9"):
        read_analogies(tmp_path / "q.txt")
