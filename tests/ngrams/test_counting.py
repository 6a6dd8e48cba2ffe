import numpy as np
import pytest

from kctx.ngrams import NGramCounts, count_ngrams
from kctx.ngrams.beam_counts import padded_ngrams
from kctx.ngrams.suffix_order import find, sort, sorted_rows
from tests.ngrams.texts import CATS, plain_counts, random_lines

pytestmark = pytest.mark.once


def same(a, b):
    assert a.words == b.words and a.sizes == b.sizes
    for one, two in zip(a.orders, b.orders, strict=True):
        for part in ("suffix", "word", "count"):
            x, y = getattr(one, part), getattr(two, part)
            assert x.dtype == y.dtype and np.array_equal(x, y)


@pytest.mark.parametrize("order", range(1, 7))
def test_counts_are_those_of_plain_counting(order):
    for lines in (CATS, random_lines(0, 300), ["a"], ["a a a a a a a a"]):
        counts = count_ngrams(lines=lines, order=order, progress=False)
        for k, expected in enumerate(plain_counts(lines, order), 1):
            assert dict(counts.items(k)) == expected
        assert counts.tokens == sum(len(line.split()) + 1 for line in lines)


def test_tables_are_sorted_and_name_their_parts():
    counts = count_ngrams(lines=random_lines(1, 200), order=4, progress=False)
    for k in range(2, 5):
        assert (np.diff(counts.keys[k - 1]) > 0).all()
        rows, lower = counts.ids_of(k), counts.ids_of(k - 1)
        assert np.array_equal(lower[counts.orders[k - 1].suffix], rows[:, 1:])
        assert np.array_equal(lower[counts.prefixes[k - 1]], rows[:, :-1])


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_spilling_changes_no_bit(tmp_path, order):
    lines = [*random_lines(2, 20_000, words=300), " ".join(["long"] * 30_000), "end"]
    whole = count_ngrams(lines=lines, order=order, progress=False)
    folder = tmp_path / "spill"
    spilled = count_ngrams(
        lines=lines, order=order, memory_limit=1, temporary_folder=folder, progress=False
    )
    same(whole, spilled)
    assert folder.is_dir() and not list(folder.iterdir())


def test_many_runs_are_merged_in_between(monkeypatch):
    from kctx.ngrams import counting, sorted_runs

    lines = random_lines(3, 3000, words=50)
    whole = count_ngrams(lines=lines, order=3, progress=False)
    monkeypatch.setattr(counting, "_LEAST_TOKENS", 100)
    monkeypatch.setattr(sorted_runs, "_MOST_RUNS", 3)
    same(whole, count_ngrams(lines=lines, order=3, memory_limit=1, progress=False))


def test_temporary_files_go_after_an_error(tmp_path):
    lines = [*random_lines(4, 3000), "<s>"]
    with pytest.raises(ValueError, match="line 3001 holds"):
        count_ngrams(
            lines=lines, memory_limit=1, temporary_folder=tmp_path / "spill", progress=False
        )
    assert not (tmp_path / "spill").exists() or not list((tmp_path / "spill").iterdir())


def test_more_ngrams_than_places_are_refused(monkeypatch):
    monkeypatch.setattr("kctx.ngrams.counts._MOST_NGRAMS", 3)
    with pytest.raises(ValueError, match="at most 3 different n-grams .* Received: "):
        count_ngrams(lines=["a b c d e"], order=3)


def test_a_given_vocabulary_clips_to_unknown():
    counts = count_ngrams(lines=CATS, order=2, vocabulary=["cat", "the", "cow"], progress=False)
    assert counts.words == [b"<unk>", b"<s>", b"</s>", b"cat", b"the", b"cow"]
    assert counts.count("the", "<unk>") == 5 and counts.count("cow") == 0
    assert counts.count("<unk>") == 15


def test_count_of_one_ngram():
    counts = count_ngrams(lines=CATS, order=3, progress=False)
    assert counts.count("the") == 7 and counts.count("the", "cat") == 2
    assert counts.count("<s>", "the", "cat") == 2 and counts.count("zebra") == 0
    assert counts.count("cat", "the") == 0
    with pytest.raises(ValueError, match="Give 1 to 3 words"):
        counts.count(*"the cat sat on".split())


def test_lower_orders_alone():
    counts = count_ngrams(lines=CATS, order=4, progress=False)
    for order in (1, 2, 4):
        same(counts.up_to(order), count_ngrams(lines=CATS, order=order, progress=False))


def test_counts_from_items():
    grams = [gram for line in CATS for gram in padded_ngrams(line, 3)]
    counts = NGramCounts.from_items(((gram, 1) for gram in grams), 3)
    whole = count_ngrams(lines=CATS, order=3, progress=False)
    for k in (1, 2, 3):
        assert dict(counts.items(k)) == dict(whole.items(k))
    same(NGramCounts.from_items([(gram, 1) for gram in grams], 3, _words(whole)), whole)
    with pytest.raises(ValueError, match="n-grams of 2 words with counts of at least 1"):
        NGramCounts.from_items([(("a",), 1)], 2)
    with pytest.raises(ValueError, match="at least one n-gram"):
        NGramCounts.from_items([], 2)


def _words(counts):
    return [word.decode() for word in counts.words[3:]]


@pytest.mark.parametrize("sizes", [[5, 7, 3], [2**20, 2**21, 2**22], [2**30, 2**31, 2**25]])
def test_sorted_rows(sizes):
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, size, 500).astype(np.int32) for size in sizes]
    columns = [np.concatenate([column, column[:100]]) for column in columns]
    order, new = sorted_rows(columns, sizes)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    found = [rows[place] for place in order]
    assert found == sorted(rows) and sorted(order) == list(range(600))
    assert new.sum() == len(set(rows))
    assert [x for x, fresh in zip(found, new, strict=True) if fresh] == sorted(set(rows))


def test_large_sorts_and_searches_in_threads():
    values = np.random.default_rng(0).integers(0, 1 << 20, 600_000)
    values[:300_000] = 7  # one value weighs as much as all others
    expected = np.sort(values)
    assert np.array_equal(sort(values.copy()), expected)
    keys = np.unique(expected)
    places = find(keys, values)
    assert np.array_equal(keys[places], values)
    for top in (1 << 30, 1 << 60):  # too large to be sorted with their places
        wanted = np.concatenate([values[:5000], [-1, top]])
        assert np.array_equal(find(keys, wanted)[:-2], places[:5000])
        assert find(keys, wanted)[-2:].tolist() == [-1, -1]
    assert find(keys, np.array([-1, 1 << 21])).tolist() == [-1, -1]
    assert find(keys[:0], values[:2]).tolist() == [-1, -1]
