"""Sentences of words to rows, with every word in some window."""

import numpy as np
import pytest
import tensorflow as tf

from kctx.preprocessors import BERTPreprocessor, SubwordsPreprocessor, WordsPreprocessor
from kctx.preprocessors.word_windows import best_windows, window_bounds, word_windows
from kctx.tokenizers import WordPieceTokenizer, WordTokenizer
from kctx.vectors import Subwords

pytestmark = pytest.mark.once

PAD, UNK, CLS, SEP = 0, 1, 2, 3
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef", "##x"]
A, B, X = 5, 6, 11


def make(length=12, **options):
    return BERTPreprocessor(WordPieceTokenizer(VOCABULARY), length, **options)


def make_words(length=12, **options):
    return WordsPreprocessor(WordTokenizer(["a", "b", "c"]), sequence_length=length, **options)


def make_subwords(length=12, **options):
    tokenizer = WordTokenizer(["a", "b", "c"])
    return SubwordsPreprocessor(tokenizer, Subwords(2, 3, 50), sequence_length=length, **options)


MAKERS = {"bert": make, "words": make_words, "subwords": make_subwords}


def lists(values):
    return np.asarray(values).tolist()


def test_by_hand():
    inputs, index, starts = make().words([["a", "bx", "\x01", "a"], [], ["a b"]])
    assert lists(inputs["token_ids"]) == [
        [CLS, A, B, X, UNK, A, SEP],
        [CLS, SEP, PAD, PAD, PAD, PAD, PAD],
        [CLS, A, B, SEP, PAD, PAD, PAD],
    ]
    assert lists(inputs["word_positions"]) == [[1, 2, 4, 5], [0] * 4, [1, 0, 0, 0]]
    assert lists(inputs["word_mask"]) == [[True] * 4, [False] * 4, [True, False, False, False]]
    assert lists(index) == [0, 1, 2] and lists(starts) == [0, 0, 0]
    assert {key: value.dtype.name for key, value in inputs.items()} == {
        "token_ids": "int32",
        "segment_ids": "int32",
        "padding_mask": "bool",
        "word_positions": "int32",
        "word_mask": "bool",
    }
    found = word_windows(make(), [["a", "bx"], ["bxx"]])
    assert lists(found.word_ends) == [[2, 4], [4, 0]]


def test_windows_by_hand():
    """Room for 4 tokens, half of it anew in each window; a word is never cut in two."""
    inputs, index, starts = make(6).words([["a", "bx", "ax", "b", "c"], ["a"]])
    assert lists(inputs["token_ids"]) == [
        [CLS, A, B, X, SEP, PAD],
        [CLS, B, X, A, X, SEP],
        [CLS, A, X, B, 7, SEP],
        [CLS, A, SEP, PAD, PAD, PAD],
    ]
    assert lists(index) == [0, 0, 0, 1] and lists(starts) == [0, 1, 2, 0]
    assert lists(inputs["word_positions"]) == [[1, 2, 0], [1, 3, 0], [1, 3, 4], [1, 0, 0]]


def test_words_of_more_tokens_than_a_window():
    inputs, _, starts = make(5).words([["a" + "x" * 40, "b", "c" + "x" * 9]])
    assert lists(starts) == [0, 1, 2]
    assert lists(inputs["token_ids"]) == [
        [CLS, A, X, X, SEP],
        [CLS, B, SEP, PAD, PAD],
        [CLS, 7, X, X, SEP],
    ]


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("stride", [None, 1, 3, 100])
def test_every_word_is_seen_in_order(kind, stride):
    generator = np.random.default_rng(3)
    options = ["a", "b", "cx", "axxx", "zzz", "", "\x00", "bxxxxxxxxxxxx"]
    sentences = [list(generator.choice(options, size)) for size in (0, 1, 5, 17, 60, 0)]
    preprocessor = MAKERS[kind](length=9)
    inputs, index, starts = preprocessor.words(sentences, stride)
    assert next(iter(inputs.values())).shape[1] <= 9
    mask, positions = inputs["word_mask"].numpy(), inputs["word_positions"].numpy()
    seen = [set() for _ in sentences]
    for row, (sentence, start) in enumerate(zip(index.numpy(), starts.numpy(), strict=True)):
        count = mask[row].sum()
        assert mask[row, :count].all()
        seen[sentence] |= set(range(start, start + count))
        assert (np.diff(positions[row, :count]) > 0).all()
        assert inputs["padding_mask"].numpy()[row, positions[row, :count]].all()
    assert seen == [set(range(len(words))) for words in sentences]
    chosen = best_windows(mask, index, starts, len(sentences)).to_list()
    width = mask.shape[1]
    for sentence, places in enumerate(chosen):
        assert len(places) == len(sentences[sentence])
        for word, place in enumerate(places):
            row, column = divmod(place, width)
            assert index[row] == sentence and starts[row] + column == word


def test_best_windows_by_hand():
    mask = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 0, 0, 0]], bool)
    chosen = best_windows(mask, np.array([0, 0, 1]), np.array([0, 2, 0]), 3).to_list()
    # Words 2 and 3 stand in both: at 2 and 3 of the first, at 0 and 1 of the second.
    assert chosen == [[0, 1, 2, 5, 6, 7], [8], []]
    assert best_windows(np.zeros([0, 1], bool), [], [], 0).to_list() == []


def test_bounds_in_closed_cases():
    places = tf.constant([0, 2, 4, 6, 8], tf.int64)
    splits = tf.constant([0, 4], tf.int64)

    def found(room, stride):
        return [lists(x) for x in window_bounds(places, splits, room, stride)[1:]]

    assert found(8, 4) == [[0], [4]]
    assert found(7, 4) == [[0, 2], [3, 4]]
    assert found(4, 99) == [[0, 2], [2, 4]]
    assert found(4, 1) == [[0, 1, 2], [2, 3, 4]]


def test_shapes():
    inputs = make(12, pad_to_length=True).words([["a"]])[0]
    assert {value.shape[1] for value in inputs.values()} == {12}
    inputs = make(12, pad_to_multiple=4).words([["a"] * 5])[0]
    assert {value.shape[1] for value in inputs.values()} == {8}
    for maker in MAKERS.values():
        inputs, index, starts = maker().words([])
        assert {value.shape[0] for value in (*inputs.values(), index, starts)} == {0}


@pytest.mark.parametrize("kind", MAKERS)
def test_same_in_a_graph(kind):
    preprocessor = MAKERS[kind](length=8)
    words = tf.ragged.constant([["a", "bx", "zz"] * 5, [], ["c"]])
    spec = tf.RaggedTensorSpec([None, None], tf.string, 1)
    graph = tf.function(preprocessor.words, input_signature=[spec], autograph=False)
    for made, expected in zip(
        tf.nest.flatten(graph(words)), tf.nest.flatten(preprocessor.words(words)), strict=True
    ):
        np.testing.assert_array_equal(made, expected)


def test_static_words_by_hand():
    inputs = make_words().words([["a", "zz", "a b"], ["c"]])[0]
    assert lists(inputs["token_ids"]) == [[2, 1, 1], [4, 0, 0]]
    assert lists(inputs["word_positions"]) == [[0, 1, 2], [0, 0, 0]]
    inputs = make_subwords().words([["a", "zz"]])[0]
    assert inputs["subword_ids"].numpy()[0, 0, 0] == 1


def test_errors():
    with pytest.raises(TypeError, match=r"`word_lists\[1\]` must be a list of words.*'a b'"):
        make().words([["a"], "a b"])
    with pytest.raises(TypeError, match=r"`word_lists\[0\]` must be a list of words.*None"):
        make().words([["a", None]])
    with pytest.raises(ValueError, match="`stride` must be at least 1. Received: 0"):
        make().words([["a"]], stride=0)
