"""fastText's hashing: golden values of the reference, and the fast form against the plain one."""

import itertools
import random

import numpy as np
import pytest

from kctx.vectors import Subwords, hash_tokens, word_ngram_ids
from kctx.vectors.subwords import fnv1a
from kctx.words import to_bytes, to_text

pytestmark = pytest.mark.once

BUCKETS = 2_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 2166136261),
        ("a", 3826002220),
        ("<", 957132539),
        ("<ap", 1520206650),
        ("apple", 280767167),
        ("</s>", 3617362777),
        ("__label__en", 3409607150),
        ("é", 1023043777),
        ("<ü", 990811388),
        ("日本", 4164387409),
        ("ß>", 2103418763),
        ("ł", 1443366822),
    ],
)
def test_hash(text, expected):
    assert Subwords.hash(text) == Subwords.hash(text.encode("utf-8")) == expected
    assert hash_tokens([text]).view(np.uint32)[0] == expected


@pytest.mark.parametrize(
    ("word", "min_n", "max_n", "expected"),
    [
        (
            "where",
            3,
            6,
            "<wh 167652 <whe 989715 <wher 1526707 <where 1071586 whe 420941 wher 312621 "
            "where 969176 where> 121234 her 1473420 here 1540811 here> 114991 ere 1529033 "
            "ere> 1568469 re> 867498",
        ),
        ("über", 3, 3, "<üb 1793082 übe 255527 ber 485366 er> 742840"),
        ("a", 1, 3, "<a 1008750 <a> 1087600 a 2220 a> 1614806"),
    ],
)
def test_ngrams_of_a_word(word, min_n, max_n, expected):
    fields = expected.split()
    subwords = Subwords(min_n, max_n, BUCKETS)
    assert subwords.ngrams(word) == fields[::2]
    assert subwords.ids(word) == [int(field) for field in fields[1::2]]


def test_end_of_sentence_has_no_ngrams():
    subwords = Subwords(1, 4, 100)
    assert subwords.ids("</s>") == [] and subwords.ngrams("</s>") == []
    ids, offsets = subwords.ids_of(["a", "</s>", "b"])
    assert offsets[2] == offsets[1] > 0
    assert ids[offsets[2] :].tolist() == subwords.ids("b")


def test_no_ngrams_at_all():
    for subwords in (Subwords(0, 0, 0), Subwords(4, 0, 10)):
        assert subwords.ids("word") == []
        ids, offsets = subwords.ids_of(["word", "other"])
        assert len(ids) == 0 and offsets.tolist() == [0, 0, 0]
    ids, offsets = Subwords(3, 6, 10).ids_of([])
    assert len(ids) == 0 and offsets.tolist() == [0]


@pytest.mark.parametrize(
    ("min_n", "max_n"), [(3, 6), (1, 3), (0, 2), (5, 5), (2, 4), (1, 1), (2, 2)]
)
def test_whole_vocabulary_as_word_by_word(min_n, max_n):
    """Also with bytes that are no UTF-8, empty words, and words that hold "<" and ">"."""
    draw = random.Random(0)
    alphabet = [b"a", b"b", b"<", b">", b"\x80", b"\xff", b"\xc3", *(c.encode() for c in "é日😀")]
    words = [b"".join(draw.choices(alphabet, k=draw.randrange(9))) for _ in range(9000)]
    words += [b"</s>", b"", b"\x80" * 9, b"x\x80\x80\x80\x80\x80y", b"\xbf"]
    words = [to_text(word) for word in words]
    subwords = Subwords(min_n, max_n, 1_000_003)
    ids, offsets = subwords.ids_of(words)
    assert ids.dtype == np.int32 and offsets.dtype == np.int64
    for word, (first, last) in zip(words, itertools.pairwise(offsets), strict=True):
        assert ids[first:last].tolist() == subwords.ids(word), word


def test_invalid_bytes_as_the_reference_cuts_them():
    """Characters begin at bytes that are no continuation bytes; others belong to the one before."""
    subwords = Subwords(1, 2, BUCKETS)
    word = to_text(b"\x80a\xff\x80")
    expected = [b"<\x80a", b"a", b"a\xff\x80", b"\xff\x80", b"\xff\x80>"]
    assert [to_bytes(ngram) for ngram in subwords.ngrams(word)] == expected
    assert subwords.ids(word) == [fnv1a(ngram) % BUCKETS for ngram in expected]


def test_very_long_words():
    words = ["x" * 100_000, "é" * 50_000, to_text(b"\x80" * 100_000)]
    subwords = Subwords(3, 4, 1000)
    ids, offsets = subwords.ids_of(words)
    assert np.diff(offsets).tolist() == [100_000 + 99_999, 50_000 + 49_999, 0]
    assert ids[:2].tolist() == [fnv1a(b"<xx") % 1000, fnv1a(b"<xxx") % 1000]
    assert (hash_tokens(words).view(np.uint32) == [fnv1a(to_bytes(word)) for word in words]).all()


def test_ngrams_of_words():
    hashes = hash_tokens(["new", "york", "city", "</s>"])
    assert hashes.tolist() == [681154065, -504465594, 230981954, -677604519]
    expected = [877521, 398989, 1692196, 488613, 446415]
    assert word_ngram_ids(hashes, 3, BUCKETS).tolist() == expected
    assert word_ngram_ids(hashes, 2, BUCKETS).tolist() == [877521, 1692196, 446415]
    assert word_ngram_ids(hashes, 1, BUCKETS).tolist() == []
    assert word_ngram_ids(hashes[:0], 5, BUCKETS).tolist() == []


def test_ngrams_of_words_stay_in_their_lines():
    draw = np.random.default_rng(0)
    lengths = [0, 1, 2, 7, 0, 3, 1, 0]
    lines = [draw.integers(-(2**31), 2**31, n).astype(np.int32) for n in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids, splits = word_ngram_ids(np.concatenate(lines), 4, 977, offsets)
    for i, line in enumerate(lines):
        assert ids[splits[i] : splits[i + 1]].tolist() == word_ngram_ids(line, 4, 977).tolist()
    assert splits[-1] == len(ids)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`buckets` must be an integer of at least 1.*=0"):
        Subwords(3, 6, 0)
    with pytest.raises(ValueError, match="`max_n` must be an integer of at least 0.*=-1"):
        Subwords(0, -1, 1)
    with pytest.raises(ValueError, match="must not be above `max_n`. Received: min_n=4, max_n=3"):
        Subwords(4, 3, 10)
    with pytest.raises(ValueError, match="`min_n` must be an integer"):
        Subwords(2.0, 3, 1)
    with pytest.raises(ValueError, match="`buckets` must be at most 2,147,483,647"):
        Subwords(3, 6, 2**31)
    with pytest.raises(ValueError, match="`n` must be"):
        word_ngram_ids(np.zeros(3, np.int32), 0, 10)
    with pytest.raises(ValueError, match="`offsets` must run from 0.*0 to 2, 3 hashes"):
        word_ngram_ids(np.zeros(3, np.int32), 2, 10, [0, 2])


def test_huge_lengths_cost_nothing():
    """A file's header may ask for them."""
    ids, offsets = Subwords(10**9, 10**9, 10).ids_of(["abc", "日本"])
    assert len(ids) == 0 and offsets.tolist() == [0, 0, 0]
    hashes = np.arange(5, dtype=np.int32)
    assert word_ngram_ids(hashes, 2**31 - 1, 99).tolist() == word_ngram_ids(hashes, 5, 99).tolist()
    assert word_ngram_ids(hashes[:0], 2**31 - 1, 99).tolist() == []


def test_configuration():
    subwords = Subwords(2, 4, 50)
    assert Subwords(**subwords.get_config()) == subwords != Subwords(2, 5, 50)
    assert repr(subwords) == "Subwords(min_n=2, max_n=4, buckets=50)"
