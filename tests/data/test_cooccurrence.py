"""Counts of neighbouring words: by hand, against a plain count, within any memory, in files."""

import collections
import warnings

import numpy as np
import pytest

from kctx.data import (
    CooccurrenceStream,
    IdCorpus,
    WordVocabulary,
    cooccurrence,
    cooccurrence_records,
)
from kctx.data.cooccurrence import count_cooccurrences
from kctx.data.cooccurrence_records import RECORD, open_cooccurrences, shuffle_cooccurrences

pytestmark = pytest.mark.once

LINES = ["a b c a b", "b a d"]


def counts_of(records):
    return {(r["word1"].item(), r["word2"].item()): r["value"].item() for r in records}


def corpus_of(lines, min_count=1):
    vocabulary = WordVocabulary.train(
        lines=lines, min_count=min_count, order="bytes", progress=False
    )
    return vocabulary, IdCorpus.build(vocabulary, lines=lines, progress=False)


def plain_counts(ids, window, symmetric=True, weighted=True):
    """One pair after the other."""
    counts, line = collections.Counter(), []
    for word in ids.tolist():
        if word == -2:
            line = []
        elif word >= 0:
            for distance, left in enumerate(reversed(line[-window:]), 1):
                weight = 1 / distance if weighted else 1
                counts[left + 1, word + 1] += weight
                if symmetric:
                    counts[word + 1, left + 1] += weight
            line.append(word)
    return dict(counts)


def random_ids(size, vocabulary_size, seed=0, line=20):
    """Ids with unknown words, empty lines and words next to themselves."""
    rng = np.random.default_rng(seed)
    ids = np.minimum(rng.geometric(0.1, size) - 1, vocabulary_size - 1)
    ids[rng.random(size) < 0.1] = -1
    ids[rng.random(size) < 1 / line] = -2
    return ids.astype(np.int32)


def test_symmetric_counts_by_hand():
    vocabulary, corpus = corpus_of(LINES)
    assert vocabulary.words == ["a", "b", "c", "d"]
    assert vocabulary.counts.tolist() == [3, 3, 1, 1]
    records = count_cooccurrences(corpus, 4, window=2, progress=False)
    half = {(1, 2): 3.5, (1, 3): 1.5, (1, 4): 1.0, (2, 3): 1.5, (2, 4): 0.5}
    assert counts_of(records) == half | {(b, a): value for (a, b), value in half.items()}
    order = [(r["word1"], r["word2"]) for r in records]
    assert order == sorted(order)


def test_left_context_by_hand():
    _, corpus = corpus_of(LINES)
    records = count_cooccurrences(corpus, 4, window=2, symmetric=False, progress=False)
    assert counts_of(records) == {
        (1, 2): 2.0,
        (1, 3): 0.5,
        (1, 4): 1.0,
        (2, 1): 1.5,
        (2, 3): 1.0,
        (2, 4): 0.5,
        (3, 1): 1.0,
        (3, 2): 0.5,
    }


def test_a_word_next_to_itself_counts_once_in_each_direction():
    _, corpus = corpus_of(["a a a"])
    assert counts_of(count_cooccurrences(corpus, 1, window=2, progress=False)) == {(1, 1): 5.0}
    records = count_cooccurrences(corpus, 1, window=2, symmetric=False, progress=False)
    assert counts_of(records) == {(1, 1): 2.5}


def test_unknown_words_do_not_widen_distances():
    corpus = IdCorpus(np.array([0, -1, -1, 1, -2, 0, -2, 1, -2], np.int32))
    records = count_cooccurrences(corpus, 2, window=1, symmetric=False, progress=False)
    assert counts_of(records) == {(1, 2): 1.0}


@pytest.mark.parametrize(
    ("window", "symmetric", "weighted"),
    [(1, True, True), (5, True, True), (15, False, True), (30, True, True), (4, True, False)],
)
def test_equals_a_plain_count(window, symmetric, weighted):
    ids = random_ids(3000, 60)
    records = count_cooccurrences(
        IdCorpus(ids), 60, None, window, symmetric, weighted, progress=False
    )
    expected = plain_counts(ids, window, symmetric, weighted)
    found = counts_of(records)
    assert found.keys() == expected.keys()
    for pair, value in expected.items():
        assert found[pair] == pytest.approx(value, rel=1e-12), pair


@pytest.mark.parametrize("line", [7, 100_000])
def test_where_pieces_end_changes_nothing(line, monkeypatch):
    """Lines that go on over several pieces, too, one of them the whole text."""
    ids = random_ids(5000, 50, seed=1, line=line)
    whole = count_cooccurrences(IdCorpus(ids), 50, window=9, progress=False)
    monkeypatch.setattr(cooccurrence, "_PIECE", 257)
    for threads in (1, 3):
        cut = count_cooccurrences(IdCorpus(ids), 50, window=9, threads=threads, progress=False)
        np.testing.assert_array_equal(cut, whole)


def test_memory_changes_nothing(tmp_path, monkeypatch):
    ids = random_ids(60_000, 3000, seed=2)
    ids[ids >= 0] = np.random.default_rng(3).integers(0, 3000, np.count_nonzero(ids >= 0))
    whole = count_cooccurrences(IdCorpus(ids), 3000, progress=False)
    assert len(whole) > 500_000
    written = []
    write = cooccurrence.Shards.write
    monkeypatch.setattr(
        cooccurrence.Shards, "write", lambda *arguments: (written.append(1), write(*arguments))
    )
    path = tmp_path / "cooccurrence.bin"
    spilled = count_cooccurrences(IdCorpus(ids), 3000, path, memory_limit=1 << 20, progress=False)
    assert len(written) > 5
    np.testing.assert_array_equal(spilled, whole)
    assert [entry.name for entry in tmp_path.iterdir()] == ["cooccurrence.bin"]


def test_file_in_the_format_of_the_tools(tmp_path):
    _, corpus = corpus_of(LINES)
    path = tmp_path / "cooccurrence.bin"
    records = count_cooccurrences(corpus, 4, path, window=2, progress=False)
    data = path.read_bytes()
    assert len(data) == 16 * 10
    assert data[:16] == b"\1\0\0\0\2\0\0\0" + np.float64(3.5).tobytes()
    np.testing.assert_array_equal(open_cooccurrences(path, 4), records)


@pytest.mark.parametrize("memory_limit", [1 << 30, 1 << 16])
def test_shuffle_is_a_permutation_by_seed(tmp_path, memory_limit):
    records = np.zeros(20_000, RECORD)
    records["word1"] = np.arange(1, 20_001)
    records["word2"], records["value"] = 1, 0.5
    orders = []
    for seed in (0, 0, 1):
        shuffle_cooccurrences(records, tmp_path / "x.shuf.bin", seed, memory_limit, progress=False)
        orders.append(np.fromfile(tmp_path / "x.shuf.bin", RECORD)["word1"])
    np.testing.assert_array_equal(np.sort(orders[0]), records["word1"])
    np.testing.assert_array_equal(orders[0], orders[1])
    assert (orders[0] == orders[2]).mean() < 0.01
    # Records from everywhere come everywhere: the first tenth has the mean of all.
    assert abs(orders[0][:2000].mean() / 10_000 - 1) < 0.1
    assert np.abs(np.diff(orders[0].astype(int))).mean() > 5000


@pytest.mark.parametrize("places", [[0], [3], [9], [0, 1, 4, 5, 9]])
def test_records_of_no_word_are_left_out(tmp_path, monkeypatch, places):
    """As the filler (0, 0, 0) that the C tool may write; blocks of several sizes are looked at."""
    _, corpus = corpus_of(LINES)
    records = count_cooccurrences(corpus, 4, window=2, progress=False)
    filled = np.insert(records, np.array(places) - np.arange(len(places)), np.zeros(1, RECORD))
    assert np.flatnonzero(filled["word1"] == 0).tolist() == places
    filled["value"][places[-1]] = np.nan
    filled.tofile(tmp_path / "filled.bin")
    message = f"filled.bin: {len(places)} of {len(filled)} records.*The first is record {places[0]}"
    for size in (1 << 20, 3):
        monkeypatch.setattr(cooccurrence_records, "_AT_ONCE", size)
        with pytest.warns(UserWarning, match=message) as found:
            kept = open_cooccurrences(tmp_path / "filled.bin", 4)
        assert len(found) == 1
        assert len(kept) == len(records) == 10 and kept.nbytes == records.nbytes
        np.testing.assert_array_equal(np.asarray(kept), records)
        for begin in range(11):
            for end in range(11):
                np.testing.assert_array_equal(kept[begin:end], records[begin:end])
    with pytest.raises(ValueError, match="Only slices of step 1"):
        kept[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stream = CooccurrenceStream(kept, 4, batch_size=3)
        shuffle_cooccurrences(kept, tmp_path / "shuffled.bin", progress=False)
    expected = CooccurrenceStream(records, 4, batch_size=3)
    assert stream.fingerprint() == expected.fingerprint()
    for (one,), (other,), _ in zip(stream.batches(), expected.batches(), range(4), strict=False):
        for name in other:
            np.testing.assert_array_equal(one[name], other[name])
    shuffled = np.sort(np.fromfile(tmp_path / "shuffled.bin", RECORD), order=["word1", "word2"])
    np.testing.assert_array_equal(shuffled, records)
    with pytest.warns(UserWarning, match="`records`"):
        assert len(CooccurrenceStream(filled, 4).records) == 10


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.tobytes()[:-3], "157 bytes, 13 too many"),
        (lambda r: b"", "holds no records"),
        (lambda r: with_value(r, 3, "value", np.nan), r"record 3 .*word1=2 \('b'\).*value=nan"),
        (lambda r: with_value(r, 3, "value", 0.0), "record 3 .*value=0.0"),
        (lambda r: with_value(r, 9, "value", -1.5), "record 9 .*value=-1.5"),
        (lambda r: with_value(r, 0, "value", np.inf), "record 0 .*value=inf"),
        (lambda r: with_value(r, slice(None), "word1", 0), "holds no records of words"),
        (lambda r: with_value(r, 4, "word2", 5), "record 4 .*ids from 1 to 4.*word2=5"),
    ],
)
def test_broken_files_name_the_record(tmp_path, change, message):
    vocabulary, corpus = corpus_of(LINES)
    records = count_cooccurrences(corpus, 4, window=2, progress=False)
    path = tmp_path / "broken.bin"
    path.write_bytes(change(records))
    with warnings.catch_warnings(), pytest.raises(ValueError, match=message):
        warnings.simplefilter("ignore")  # of the records that are left out
        open_cooccurrences(path, 4, vocabulary.words)


def with_value(records, place, field, value):
    records = records.copy()
    records[field][place] = value
    return records.tobytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"window": 0}, "`window` must be an integer of at least 1. Received: window=0"),
        ({"memory_limit": 1000}, "`memory_limit` must be an integer of at least 1048576"),
        ({"threads": 0}, "`threads`"),
        ({"vocabulary_size": 3}, "ids below `vocabulary_size`.*vocabulary_size=3, an id of 3"),
    ],
)
def test_bad_arguments(arguments, message):
    _, corpus = corpus_of(LINES)
    with pytest.raises(ValueError, match=message):
        count_cooccurrences(**{"corpus": corpus, "vocabulary_size": 4, **arguments})


def test_a_corpus_without_pairs(tmp_path):
    corpus = IdCorpus(np.array([0, -2, 1, -2, -1, 0, -2], np.int32))
    with pytest.raises(ValueError, match="two known words in one line"):
        count_cooccurrences(corpus, 2, tmp_path / "x.bin", progress=False)
    assert not (tmp_path / "x.bin").exists()
    with pytest.raises(ValueError, match="two known words in one line"):
        count_cooccurrences(IdCorpus(np.zeros(0, np.int32)), 2, progress=False)
