"""Blocks of centres with their windows, against a plain loop."""

import numpy as np
import pytest

from kctx.data.id_corpus import LINE_END, UNKNOWN
from kctx.data.window_blocks import expected_words, no_window, window_blocks

pytestmark = pytest.mark.once


def pairs_of(blocks, window):
    """(centre, [context]) for each centre with a place in the text, in order."""
    found = []
    for words, firsts, lasts in zip(*blocks, strict=True):
        for place, (first, last) in enumerate(zip(firsts, lasts, strict=True), start=window):
            if first <= last:
                context = [int(words[i]) for i in range(first, last + 1) if i != place]
                found.append((int(words[place]), context))
    return found


def plain_pairs(ids, keep, window, max_sentence_words, generator, line_end_id=None):
    """The same by a loop over words, with the same draws."""
    luck = generator.random(len(ids), np.float32)
    sentences, sentence = [], []
    for word, draw in zip(ids.tolist(), luck, strict=True):
        ends = word == LINE_END
        word = line_end_id if ends and line_end_id is not None else word
        if word >= 0 and draw < keep[word]:
            sentence.append(word)
        if ends or len(sentence) == max_sentence_words:
            sentences.append(sentence)
            sentence = []
    sentences.append(sentence)
    reaches = iter(generator.integers(1, window + 1, sum(map(len, sentences)), np.int32))
    found = []
    for sentence in sentences:
        for i, word in enumerate(sentence):
            reach = next(reaches)
            found.append((word, sentence[max(0, i - reach) : i] + sentence[i + 1 : i + reach + 1]))
    return found


def text(rng, size=500, words=20):
    ids = rng.integers(0, words, size)
    ids[rng.random(size) < 0.1] = UNKNOWN
    ids[rng.random(size) < 0.1] = LINE_END
    return ids.astype(np.int32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("block_words", [1, 7, 16])
@pytest.mark.parametrize("longest", [3, 1000])
@pytest.mark.parametrize("line_end_id", [None, 0])
def test_equals_a_plain_loop(seed, window, block_words, longest, line_end_id):
    rng = np.random.default_rng(seed)
    ids, keep = text(rng), rng.random(20).astype(np.float32)
    if line_end_id is not None and longest == 3:
        # A line's end that would begin a piece of a cut line is a matter of taste.
        ids[ids == LINE_END] = UNKNOWN
    made = window_blocks(
        ids, keep, window, block_words, longest, np.random.default_rng(9), line_end_id
    )
    assert made.words.shape[1:] == (block_words + 2 * window,)
    assert made.first.shape == made.last.shape == (len(made.words), block_words)
    assert {array.dtype for array in made} == {np.dtype(np.int32)}
    expected = plain_pairs(ids, keep, window, longest, np.random.default_rng(9), line_end_id)
    assert pairs_of(made, window) == expected
    # Windows never lie outside of the block.
    inside = made.first <= made.last
    assert made.first[inside].min() >= 0 and made.last.max() < made.words.shape[1]


def blocks(ids, window=1, block_words=4, longest=1000, keep=None, **options):
    keep = np.ones(10, np.float32) if keep is None else np.float32(keep)
    generator = np.random.default_rng(0)
    return window_blocks(np.int32(ids), keep, window, block_words, longest, generator, **options)


def test_blocks_by_hand():
    """Two sentences over two blocks, the second of which is filled up."""
    made = blocks([1, 2, 3, -2, 4, 5, -2])
    assert made.words.tolist() == [[0, 1, 2, 3, 4, 5], [4, 5, 0, 0, 0, 0]]
    assert made.first.tolist() == [[1, 1, 2, 4], [0, 1, 1, 1]]
    assert made.last.tolist() == [[2, 3, 3, 5], [1, 0, 0, 0]]


def test_left_out_words_take_no_place():
    """Unknown ones and those that the draw leaves out: windows reach over them."""
    keep = np.ones(10)
    keep[7] = 0
    for between in ([], [-1, -1], [7, 7, 7], [7, -1]):
        made = blocks([1, *between, 2, *between, 3, -2], keep=keep)
        assert pairs_of(made, 1) == [(1, [2]), (2, [1, 3]), (3, [2])]


def test_sentences():
    assert pairs_of(blocks([1, -2, 2, 3, -2, -2, 4]), 1) == [(1, []), (2, [3]), (3, [2]), (4, [])]
    cut = blocks([1, 2, 3, 4, 5, -2, 6, 7], longest=2)
    assert pairs_of(cut, 1) == [(1, [2]), (2, [1]), (3, [4]), (4, [3]), (5, []), (6, [7]), (7, [6])]
    # The end of a line as a word, as fastText has it.
    ends = blocks([1, 2, -2, 3, -2], line_end_id=9)
    assert pairs_of(ends, 1) == [(1, [2]), (2, [1, 9]), (9, [2]), (3, [9]), (9, [3])]


@pytest.mark.parametrize("ids", [[], [-2], [-1, -2, -1], [1, -2, 1]])
def test_no_word_is_kept(ids):
    made = blocks(ids, keep=np.zeros(10))
    assert [array.shape for array in made] == [(0, 6), (0, 4), (0, 4)]


def test_windows_are_drawn_evenly():
    made = blocks([1] * 5000, window=4, block_words=16)
    sizes = [len(context) // 2 for _, context in pairs_of(made, 4)[10:-10]]
    np.testing.assert_allclose(
        np.bincount(sizes, minlength=5) / len(sizes), [0, *[0.25] * 4], atol=0.03
    )


def test_no_window():
    made = no_window(3, 4, 2)
    assert made.words.shape == (3, 8) and pairs_of(made, 2) == []


@pytest.mark.parametrize("line_end_id", [None, 3])
def test_expected_words(line_end_id):
    rng = np.random.default_rng(1)
    ids, keep = text(rng, 3000), rng.random(20).astype(np.float32)
    mean, deviation = expected_words(ids, keep, line_end_id)
    numbers = [
        len(pairs_of(window_blocks(ids, keep, 1, 16, 1000, rng, line_end_id), 1)) for _ in range(60)
    ]
    assert abs(np.mean(numbers) - mean) < 4 * deviation / 60**0.5
    assert 0.7 * deviation < np.std(numbers) < 1.4 * deviation
