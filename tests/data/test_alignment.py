"""Words to pieces and back."""

import numpy as np
import pytest

from kctx.data import pieces_of_spans, spans_of_pieces

pytestmark = pytest.mark.once

# "unaffable ok!" in pieces un, ##aff, ##able, ok, !
PIECES = [(0, 2), (2, 5), (5, 9), (10, 12), (12, 13)]


def test_words_to_pieces():
    words = [(0, 9), (10, 13), (9, 10), (3, 6), (12, 12)]
    assert pieces_of_spans(words, PIECES).tolist() == [[0, 3], [3, 5], [3, 3], [1, 3], [4, 4]]
    assert pieces_of_spans([], PIECES).shape == (0, 2)
    assert pieces_of_spans([(0, 3)], []).tolist() == [[0, 0]]


def test_pieces_to_words():
    assert spans_of_pieces(PIECES, [(0, 9), (10, 13)]).tolist() == [0, 0, 0, 1, 1]
    assert spans_of_pieces(PIECES, [(10, 12)]).tolist() == [-1, -1, -1, 0, -1]
    assert spans_of_pieces([(0, 9)], [(0, 2), (3, 9)]).tolist() == [0]  # the first of several
    # several pieces of one character, as byte-level tokenizers make them
    assert spans_of_pieces([(0, 1), (0, 1), (1, 2)], [(0, 1), (1, 2)]).tolist() == [0, 0, 1]


def test_there_and_back_on_real_text(kctx_data):
    from kctx.tokenizers import WordPieceTokenizer

    tokenizer = WordPieceTokenizer(str(kctx_data / "tokenizers/bert-base-uncased/vocab.txt"))
    text = "  Überwältigende naïveté — 中国人 said: 'No way!' 😀x\u200b y"
    _, starts, ends = (np.asarray(part) for part in tokenizer.tokenize_with_offsets(text))
    pieces = np.stack([starts, ends], axis=1)
    words, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        words.append((place, place + len(word)))
        place += len(word)
    bounds = pieces_of_spans(words, pieces)
    assert bounds[0, 0] == 0 and bounds[-1, 1] == len(pieces)
    assert (bounds[1:, 0] == bounds[:-1, 1]).all() and (bounds[:, 0] < bounds[:, 1]).all()
    expected = np.repeat(np.arange(len(words)), bounds[:, 1] - bounds[:, 0])
    assert spans_of_pieces(pieces, words).tolist() == expected.tolist()
