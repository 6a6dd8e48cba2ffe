"""Phrases, with scores by hand."""

import collections
import functools
import itertools

import numpy as np
import pytest

from kctx.data import phrases as phrases_module
from kctx.data.phrases import PairCounts, Phrases, join_phrases
from kctx.data.text_blocks import text_blocks

pytestmark = pytest.mark.once


def test_scores_by_hand():
    """new 4, york 3, city 2, a 1: 10 words; new york 3, york city 2, new a 1."""
    lines = ["new york city", "new york city", "new york", "new a"]
    found = Phrases.find(lines=lines, min_count=1, threshold=1.5, delta=1)
    # (3 - 1) / (4 * 3) * 10 and (2 - 1) / (3 * 2) * 10; the pair of the last line has 0.
    assert found.words == [("new", "york"), ("york", "city")]
    assert found.scores.tolist() == pytest.approx([20 / 12, 10 / 6])
    assert len(Phrases.find(lines=lines, min_count=1, threshold=10 / 6, delta=1)) == 0
    # The default: threshold 100, and the smallest count is taken off.
    assert len(Phrases.find(lines=lines, min_count=1)) == 0
    # Rare words count, but are in no phrase.
    found = Phrases.find(lines=lines, min_count=2, threshold=0.5)
    assert found.words == [("new", "york")]
    assert found.scores.tolist() == pytest.approx([(3 - 2) / 12 * 10])


def phrases_of(*pairs):
    """All other words are unknown."""
    lines = [f"{a} {b}" for a, b in pairs]
    return Phrases.find(lines=lines * 3, min_count=1, threshold=0)


def test_joins_from_the_left():
    phrases = phrases_of("ab", "bc", "cd")
    for text, expected in [
        (b"a b c d\n", b"a_b c_d\n"),
        (b"a b c\n", b"a_b c\n"),
        (b"b c d\n", b"b_c d\n"),
        (b"c b c d x a b\n", b"c b_c d x a_b\n"),
        (b"a\nb\n", b"a\nb\n"),
        (b"a x b\n", b"a x b\n"),
        (b"\n\n a\t b \r\n\nb  c\r\n", b"\n\na_b\n\nb_c\n"),
        (b"", b""),
        (b"\n", b"\n"),
        (b"x\n", b"x\n"),
    ]:
        assert phrases.join_block(text) == expected


@pytest.mark.parametrize("block_bytes", [1, 8, 11, 1000])
def test_long_lines_in_parts(tmp_path, monkeypatch, block_bytes):
    """All pairs count; what comes out is as the text, but for phrases across two parts."""
    text = "new york is new york as new york and\nyork a new york"
    (tmp_path / "text").write_text(text, encoding="utf-8")
    small = functools.partial(text_blocks, block_bytes=block_bytes)
    monkeypatch.setattr(phrases_module, "text_blocks", small)
    found = Phrases.find(tmp_path / "text", min_count=2, threshold=0.1)
    expected = Phrases.find(lines=text.split("\n"), min_count=2, threshold=0.1)
    assert found.words == expected.words == [("new", "york")]
    assert found.scores.tolist() == expected.scores.tolist()
    found.join(tmp_path / "text", tmp_path / "out")
    joined = (tmp_path / "out").read_text(encoding="utf-8")
    assert joined.replace("_", " ") == text + "\n"
    assert (joined.count("_") == 4) == (block_bytes == 1000)


def plain(lines, min_count, threshold):
    """The tool's two passes, word after word."""
    words = collections.Counter(word for line in lines for word in line)
    pairs = collections.Counter(pair for line in lines for pair in itertools.pairwise(line))
    total, joined = words.total(), []
    for line in lines:
        out, before = [], None
        for word in line:
            score = 0
            pair = (before, word)
            if pairs[pair] >= min_count <= min(words[before], words[word]):
                score = (pairs[pair] - min_count) / words[before] / words[word] * total
            if score > threshold:
                out[-1] += f"_{word}"
                before = None
            else:
                out.append(word)
                before = word
        joined.append(out)
    return joined


@pytest.mark.parametrize("threshold", [0.3, 1.0, 2.0])
def test_equals_a_loop(tmp_path, threshold):
    rng = np.random.default_rng(0)
    lines = []
    for size in rng.integers(0, 12, 800):
        ids = rng.zipf(1.4, size).clip(max=30)
        ids[1:] = np.where(rng.random(max(size - 1, 0)) < 0.3, ids[:-1] + 1, ids[1:])
        lines.append([f"w{i}" for i in ids])
    path = tmp_path / "text"
    path.write_text("\n".join(map(" ".join, lines)) + "\n", encoding="utf-8")
    found = join_phrases(path, tmp_path / "out", [threshold], min_count=4)
    expected = plain(lines, 4, threshold)
    made = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
    assert made == [*map(" ".join, expected), ""]
    assert len(found) == 1 and "_" in str(made)
    # A second pass joins phrases with each other.
    join_phrases(path, tmp_path / "out2", [threshold, threshold], min_count=4)
    made = (tmp_path / "out2").read_text(encoding="utf-8").split("\n")
    assert made == [*map(" ".join, plain(expected, 4, threshold)), ""]
    assert sorted(x.name for x in tmp_path.iterdir()) == ["out", "out2", "text"]


def test_any_bytes(tmp_path):
    (tmp_path / "text").write_bytes(b"\xff b\r\n" * 9 + b"x" * 100_000 + b" \xe4 </s>\0")
    phrases = Phrases.find(tmp_path / "text", threshold=0.1)
    assert phrases.words == [("\udcff", "b")]
    phrases.join(tmp_path / "text", tmp_path / "out")
    expected = b"\xff_b\n" * 9 + b"x" * 100_000 + b" \xe4 </s>\0\n"
    assert (tmp_path / "out").read_bytes() == expected


@pytest.mark.parametrize("most", [10, 50, 10**6])
def test_bounded_memory(most):
    """Frequent pairs keep their counts when rare ones are forgotten."""
    rng, counts = np.random.default_rng(0), PairCounts(most)
    rare = rng.permutation(5000)
    for part in np.split(rare, 100):
        counts.add(np.concatenate([part, [-1] * 5 + [-2] * 3]))
        counts.merge()
        assert len(counts.keys) <= most
    found = dict(zip(counts.keys.tolist(), counts.counts.tolist(), strict=True))
    assert (found[-1], found[-2]) == (500, 300)
    assert (len(found) == 5002) == (most == 10**6)
    assert (np.diff(counts.keys) > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_count": 0}, "`min_count` must be an integer of at least 1"),
        ({"threshold": -1}, "`threshold` must be at least 0. Received: threshold=-1"),
        ({"delta": float("nan")}, "`delta` must be at least 0. Received: delta=nan"),
        ({"min_count": 9}, "No word of the corpus occurs min_count=9 times"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        Phrases.find(lines=["a b"], **options)


def test_no_pass(tmp_path):
    with pytest.raises(ValueError, match="`thresholds` must hold"):
        join_phrases(tmp_path, tmp_path / "out", [])
