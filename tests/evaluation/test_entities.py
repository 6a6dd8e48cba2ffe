"""Scores of entities, worked out by hand."""

import pytest

from kctx.evaluation import entity_report, entity_table

pytestmark = pytest.mark.once

GOLD = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC", "B-LOC"]]
FOUND = [["B-PER", "O", "O", "B-LOC"], ["B-ORG", "B-LOC", "I-LOC"]]


def test_report():
    """4 true, 4 found (PER 0-1, LOC 3; ORG 0, LOC 1-3), 1 right."""
    report = entity_report(GOLD, FOUND)
    assert report == pytest.approx(
        {
            "f1": 0.25,
            "precision": 0.25,
            "recall": 0.25,
            "macro_f1": (2 * 0.5 * (1 / 3) / (5 / 6)) / 3,
            "accuracy": 4 / 7,
        }
    )
    assert next(iter(report)) == "f1"  # what `KeepBest` decides by
    assert entity_table(GOLD, FOUND) == {
        "LOC": {"f1": pytest.approx(0.4), "precision": 0.5, "recall": pytest.approx(1 / 3)}
        | {"support": 3},
        "ORG": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "support": 0},
        "PER": {"f1": 0.0, "precision": 0.0, "recall": 0.0, "support": 1},
    }


@pytest.mark.parametrize(
    ("gold", "found", "f1"),
    [
        ("O O", "O O", 0.0),  # no entity anywhere
        ("O O", "B-X O", 0.0),
        ("B-X I-X", "I-X I-X", 1.0),  # I at the start begins one, as the CoNLL scorer reads it
        ("B-X I-X", "B-X I-Y", 0.0),
        ("B-X M-X E-X S-Y", "B-X M-X E-X S-Y", 1.0),  # BMES
        ("B-X I-X E-X S-Y", "B-X M-X E-X O", 2 / 3),
        ("B-X L-X U-X U-X", "B-X L-X U-X L-X", 1.0),  # BILOU
        ("B-X L-X U-X U-Y", "B-X I-X L-X U-Y", 0.4),
        ("B-X E-X B-X", "B-X E-X S-X", 1.0),
        ("B I O", "B I O", 1.0),  # without labels
    ],
)
def test_schemes(gold, found, f1):
    assert entity_report([gold.split()], [found.split()])["f1"] == pytest.approx(f1)


def test_no_entities_have_no_table():
    assert entity_table([["O"]], [["O"]]) == {}


def test_errors():
    with pytest.raises(ValueError, match="same number of sentences. Received: 1 and 2"):
        entity_report([["O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="Received: 1 tags for the 2 words of sentence 0"):
        entity_report([["O", "O"]], [["O"]])
    with pytest.raises(ValueError, match="at least one word. Received: 0 sentences"):
        entity_report([], [])


@pytest.mark.parametrize("tags", [["B-PER", "O"], [["B-PER", None]], [["O", ""]]])
@pytest.mark.parametrize("report", [entity_report, entity_table])
def test_what_is_no_list_of_tags(report, tags):
    with pytest.raises(ValueError, match=r"`tags\[0\]` must be a list of strings, none of them"):
        report(tags, tags)
