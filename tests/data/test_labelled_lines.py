"""Labelled lines read as fastText's, with all that a file may hold."""

import numpy as np
import pytest

from kctx.data import LabelledLines, count_labelled_lines, read_labelled_lines
from kctx.vectors import LineFeatures, Subwords

pytestmark = pytest.mark.once


def read(tmp_path, data, **options):
    (tmp_path / "lines.txt").write_bytes(data)
    return read_labelled_lines(tmp_path / "lines.txt", progress=False, **options)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"__label__a x y\n", [(["__label__a"], ["x", "y"])]),
        (b"__label__a x y", [(["__label__a"], ["x", "y"])]),  # no line end
        (b"__label__a x\r\n__label__b y\r\n", [(["__label__a"], ["x"]), (["__label__b"], ["y"])]),
        # Several labels, wherever they stand; one inside a word is none.
        (b"__label__a x __label__b\n", [(["__label__a", "__label__b"], ["x"])]),
        (b"__label__a x__label__b\n", [(["__label__a"], ["x__label__b"])]),
        (b"__label__a\n", [(["__label__a"], [])]),  # no text
        (b"x y\n__label__a z\n", [([], ["x", "y"]), (["__label__a"], ["z"])]),  # no label
        (b"\n__label__a\n", [([], []), (["__label__a"], [])]),
        # White space of fastText; others are parts of words.
        (b"__label__a\tx\vy\fz\0w\n", [(["__label__a"], ["x", "y", "z", "w"])]),
        ("__label__a x\u3000y\u00a0z\n".encode(), [(["__label__a"], ["x\u3000y\u00a0z"])]),
        (b"__label__\xff \xfe\xc3\n", [(["__label__\udcff"], ["\udcfe\udcc3"])]),
        (b"__label__ x\n", [(["__label__"], ["x"])]),  # an empty name
        # The token for a line's end ends it.
        (b"__label__a x </s> __label__b y\n", [(["__label__a"], ["x"]), (["__label__b"], ["y"])]),
    ],
)
def test_reads(tmp_path, data, expected):
    assert read(tmp_path, data) == expected


def test_a_very_long_word(tmp_path):
    ((labels, words),) = read(tmp_path, b"__label__a " + b"x" * 100_000 + b"\n")
    assert words == ["x" * 100_000]
    vocabulary = count_labelled_lines([(labels, words)])
    features = LineFeatures(vocabulary.words, Subwords(3, 4, 50), 2)
    lines = LabelledLines([(labels, words)], vocabulary.labels, features)
    # Its row, `</s>`, n-grams of 3 and 4 characters, and one pair of words.
    assert len(lines.rows) == 2 + 100_000 + 99_999 + 1


def test_another_prefix(tmp_path):
    lines = read(tmp_path, "#α x __label__b\n".encode(), label_prefix="#")
    assert lines == [(["#α"], ["x", "__label__b"])]
    with pytest.raises(ValueError, match="No line has a label.* 1 lines .*'__label__'"):
        read(tmp_path, b"# x\n")


def test_counts():
    lines = [(["b"], ["x", "y"]), (["a", "b"], ["x"]), ([], ["z", "x"]), (["c"], [])]
    words, counts, labels, label_counts, num_tokens = count_labelled_lines(lines)
    assert dict(zip(words, counts.tolist(), strict=True)) == {"</s>": 4, "x": 3, "y": 1, "z": 1}
    assert words[:2] == ["</s>", "x"] and labels == ["b", "a", "c"]
    assert label_counts.tolist() == [2, 1, 1] and num_tokens == 13
    words, _, labels, _, num_tokens = count_labelled_lines(lines, 3, 2)
    assert (words, labels, num_tokens) == (["</s>", "x"], ["b"], 13)
    with pytest.raises(ValueError, match=r"None of 4 words occurs min_count=5 times.* 4 times"):
        count_labelled_lines(lines, 5)
    with pytest.raises(ValueError, match=r"None of 3 labels occurs min_count_label=3 times"):
        count_labelled_lines(lines, 1, 3)
    with pytest.raises(ValueError, match="`min_count` must be an integer.*min_count=-1"):
        count_labelled_lines(lines, -1)


def test_rows_of_lines():
    """Lines without a known label or feature are left out; unknown words make pairs."""
    features = LineFeatures(["</s>", "x"], Subwords(0, 0, 100), 2)
    lines = [
        (["a"], ["x"]),
        ([], ["x"]),
        (["rare"], ["x"]),
        (["b", "a", "rare"], ["new", "x"]),
        (["b"], []),
    ]
    made = LabelledLines(lines, ["a", "b"], features)
    assert len(made) == 3 and made.num_skipped == 2
    assert made.label_ids.tolist() == [0, 1, 0, 1]
    assert made.label_offsets.tolist() == [0, 1, 3, 4]
    assert np.diff(made.offsets).tolist() == [3, 4, 1]
    assert made.rows[:2].tolist() == [1, 0] and made.rows[2] >= 2
    assert made.rows[3:5].tolist() == [1, 0] and (made.rows[5:7] >= 2).all()
    assert made.rows[7:].tolist() == [0]
    # All labels of a line count as tokens, known or not.
    assert made.num_tokens == 3 + 6 + 2


def test_without_a_line_end_in_the_vocabulary():
    features = LineFeatures(["x"], Subwords(0, 0, 0))
    made = LabelledLines([(["a"], ["x"]), (["a"], ["new"])], ["a"], features)
    assert len(made) == 1 and made.num_skipped == 1


def test_an_empty_prefix_would_make_labels_of_all_words(tmp_path):
    (tmp_path / "x").write_text("a b\n")
    for prefix in ("", 5):
        with pytest.raises(ValueError, match=f"`label_prefix` must be .* Received: {prefix!r}"):
            read_labelled_lines(tmp_path / "x", prefix, progress=False)


def test_word_ngrams_need_buckets():
    with pytest.raises(ValueError, match="N-grams of words need buckets. Received: word_ngrams=2"):
        LineFeatures(["x"], Subwords(0, 0, 0), 2)
    with pytest.raises(ValueError, match="`word_ngrams` must be an integer"):
        LineFeatures(["x"], Subwords(0, 0, 0), 0)
