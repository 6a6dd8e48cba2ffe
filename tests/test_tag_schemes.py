"""Entities from tags and tags from entities, in every scheme."""

import numpy as np
import pytest

from kctx.data import convert_tags, tag_spans, tags_of_spans
from kctx.tag_schemes import SCHEMES, all_tags, is_tag_of

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("O B-X I-X O", [("X", 1, 3)]),
        ("B-X B-X I-X", [("X", 0, 1), ("X", 1, 3)]),
        ("I-X I-X B-X", [("X", 0, 2), ("X", 2, 3)]),  # BIO1
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),
        ("B-X I-X E-X S-X E-X", [("X", 0, 3), ("X", 3, 4), ("X", 4, 5)]),
        ("B-X M-X E-X M-X", [("X", 0, 3), ("X", 3, 4)]),  # BMES
        ("B-X L-X U-X U-X I-X", [("X", 0, 2), ("X", 2, 3), ("X", 3, 4), ("X", 4, 5)]),  # BILOU
        ("B I O S", [("_", 0, 2), ("_", 3, 4)]),
        ("B-a-b I-a-b", [("a-b", 0, 2)]),
        ("", []),
    ],
)
def test_spans(tags, spans):
    assert tag_spans(tags.split()) == spans


def test_spans_are_those_of_seqeval():
    from seqeval.metrics.sequence_labeling import get_entities

    random = np.random.default_rng(0)
    tags = ["O", *(f"{prefix}-{label}" for prefix in "BIES" for label in "XY")]
    for _ in range(500):
        row = random.choice(tags, 12).tolist()
        assert tag_spans(row) == [(label, i, j + 1) for label, i, j in get_entities(row)]


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("BIO1", "I-X I-X B-X I-Y O I-X"),
        ("BIO", "B-X I-X B-X B-Y O B-X"),
        ("BIOES", "B-X E-X S-X S-Y O S-X"),
        ("BMES", "B-X E-X S-X S-Y O S-X"),
        ("BILOU", "B-X L-X U-X U-Y O U-X"),
    ],
)
def test_tags(scheme, expected):
    spans = [("X", 0, 2), ("X", 2, 3), ("Y", 3, 4), ("X", 5, 6)]
    assert " ".join(tags_of_spans(spans, 6, scheme)) == expected
    assert tags_of_spans([("X", 0, 4)], 4, "BMES") == ["B-X", "M-X", "M-X", "E-X"]
    assert tags_of_spans([("_", 0, 3)], 3, "BIO") == ["B", "I", "I"]


def test_every_scheme_holds_all_entities():
    random = np.random.default_rng(1)
    for _ in range(200):
        spans, place = [], 0
        while place < 12:
            end = min(place + int(random.integers(1, 4)), 12)
            if random.random() < 0.7:
                spans.append((str(random.choice(["X", "Y", "_"])), place, end))
            place = end
        for first in SCHEMES:
            tags = tags_of_spans(spans, 12, first)
            assert tag_spans(tags) == spans and all(is_tag_of(tag, first) for tag in tags)
            for second in SCHEMES:
                assert convert_tags(tags, second) == tags_of_spans(spans, 12, second)


def test_all_tags():
    assert all_tags({"B", "A"}, "BIO") == ["O", "B-A", "I-A", "B-B", "I-B"]
    assert all_tags({"A", "_"}, "BMES") == "O B-A M-A E-A S-A B M E S".split()
    assert all_tags({"A"}, "BIO1") == ["O", "B-A", "I-A"]
    assert not is_tag_of("E-A", "BIO") and not is_tag_of("PER", "BIO") and is_tag_of("O", "BIO")
    with pytest.raises(ValueError, match="`scheme` must be one of .*Received: scheme='IO'"):
        tags_of_spans([], 1, "IO")
