"""Raw text to BERT's inputs."""

import warnings

import numpy as np
import pytest
import tensorflow as tf

from kctx import preprocessors
from kctx.preprocessors import BERTPreprocessor
from kctx.preprocessors.bert import longest_first, only_second, window_starts
from kctx.tokenizers import WordPieceTokenizer

pytestmark = pytest.mark.once

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefghij"]
PAD, UNK, CLS, SEP = range(4)


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(VOCABULARY)


def arrays(inputs):
    return {key: value.numpy().tolist() for key, value in inputs.items()}


def test_single_texts(tokenizer):
    made = arrays(BERTPreprocessor(tokenizer, 8)(["a b", "", "c"]))
    assert made["token_ids"] == [[CLS, 5, 6, SEP], [CLS, SEP, PAD, PAD], [CLS, 7, SEP, PAD]]
    assert made["segment_ids"] == [[0] * 4] * 3
    assert made["padding_mask"] == [[True] * 4, [True, True, False, False], [True] * 3 + [False]]


def test_pairs(tokenizer):
    made = arrays(BERTPreprocessor(tokenizer, 10)(["a b", "c"], ["d", ""]))
    assert made["token_ids"] == [[CLS, 5, 6, SEP, 8, SEP], [CLS, 7, SEP, SEP, PAD, PAD]]
    assert made["segment_ids"] == [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0]]


def test_dtypes_and_padding_to_length(tokenizer):
    inputs = BERTPreprocessor(tokenizer, 8, pad_to_length=True)(["a"])
    assert {key: value.dtype.name for key, value in inputs.items()} == {
        "token_ids": "int32",
        "segment_ids": "int32",
        "padding_mask": "bool",
    }
    assert all(value.shape == (1, 8) for value in inputs.values())


def test_padding_to_a_multiple(tokenizer):
    """Rounded up, but never beyond the sequence length."""
    preprocessor = BERTPreprocessor(tokenizer, 10, pad_to_multiple=4)
    assert preprocessor(["a"])["token_ids"].shape == (1, 4)
    assert preprocessor(["a b c"])["token_ids"].shape == (1, 8)
    assert preprocessor(["a b c d e f g h"])["token_ids"].shape == (1, 10)
    assert preprocessor([])["token_ids"].shape == (0, 0)


def test_a_real_padding_token_in_the_text_is_not_padding(tokenizer):
    """The mask comes from lengths, not from ids."""
    special = tokenizer.with_options(special_tokens_in_text=True)
    made = arrays(BERTPreprocessor(special)(["[PAD] a"]))
    assert made["token_ids"] == [[CLS, PAD, 5, SEP]]
    assert made["padding_mask"] == [[True] * 4]


@pytest.mark.parametrize("budget", range(12))
def test_longest_first_as_popping_one_by_one(budget):
    """The closed form against the loop that it stands for."""
    for first in range(14):
        for second in range(14):
            a, b = first, second
            while a + b > budget:
                a, b = (a - 1, b) if a > b else (a, b - 1)
            assert tuple(map(int, longest_first(first, second, budget))) == (a, b)


def test_only_second():
    assert tuple(map(int, only_second(4, 9, 10))) == (4, 6)
    assert tuple(map(int, only_second(12, 9, 10))) == (10, 0)
    assert tuple(map(int, only_second(1, 2, 10))) == (1, 2)


def test_truncation(tokenizer):
    text, pair = "a b c d e f", "g h i j"
    single = arrays(BERTPreprocessor(tokenizer, 5)([text]))["token_ids"]
    assert single == [[CLS, 5, 6, 7, SEP]]
    longest = arrays(BERTPreprocessor(tokenizer, 8)([text], [pair]))["token_ids"]
    assert longest == [[CLS, 5, 6, 7, SEP, 11, 12, SEP]]
    second = arrays(BERTPreprocessor(tokenizer, 10, "only_second")([text], [pair]))["token_ids"]
    assert second == [[CLS, *range(5, 11), SEP, 11, SEP]]


def test_empty_batches(tokenizer):
    preprocessor = BERTPreprocessor(tokenizer, 8)
    assert all(value.shape[0] == 0 for value in preprocessor([]).values())
    assert all(value.shape[0] == 0 for value in preprocessor([], []).values())


def test_one_string_is_a_batch_of_one(tokenizer):
    preprocessor = BERTPreprocessor(tokenizer, 8)
    assert arrays(preprocessor("a b")) == arrays(preprocessor(["a b"]))


def test_same_in_a_pipeline(tokenizer):
    preprocessor = BERTPreprocessor(tokenizer, 8)
    texts, pairs = ["a b c d e f g", "", "c"], ["d", "e f", ""]
    dataset = tf.data.Dataset.from_tensor_slices((texts, pairs)).batch(3).map(preprocessor)
    assert arrays(next(iter(dataset))) == arrays(preprocessor(texts, pairs))


def test_windows_of_squad():
    """Golden: 10 document tokens, room for 4, stride 2."""
    assert window_starts(10, 4, 2) == [(0, 4), (2, 4), (4, 4), (6, 4)]
    assert window_starts(3, 4, 2) == [(0, 3)]
    assert window_starts(0, 4, 2) == [(0, 0)]
    assert window_starts(9, 4, 9) == [(0, 4), (4, 4), (8, 1)]


def test_windows(tokenizer):
    preprocessor = BERTPreprocessor(tokenizer, 8)
    inputs, text_index, starts = preprocessor.windows(
        ["a b c d e f", ""], stride=2, questions=["j", "i"]
    )
    assert arrays(inputs)["token_ids"] == [
        [CLS, 14, SEP, 5, 6, 7, 8, SEP],
        [CLS, 14, SEP, 7, 8, 9, 10, SEP],
        [CLS, 13, SEP, SEP, PAD, PAD, PAD, PAD],
    ]
    assert text_index.tolist() == [0, 0, 1]
    assert starts.tolist() == [0, 2, 0]
    covered = BERTPreprocessor(tokenizer, 4).windows(["a b c d e"], stride=1)[2]
    assert covered.tolist() == [0, 1, 2, 3]


def test_files_round_trip(tokenizer, tmp_path):
    preprocessor = BERTPreprocessor(tokenizer, 9, "only_second", pad_to_length=True)
    preprocessor.save(tmp_path)
    loaded = preprocessors.load(tmp_path)
    assert loaded.get_config() == preprocessor.get_config()
    assert loaded.tokenizer.get_config() == tokenizer.get_config()
    np.testing.assert_array_equal(loaded(["a z"])["token_ids"], preprocessor(["a z"])["token_ids"])


def test_errors(tokenizer, tmp_path):
    with pytest.raises(ValueError, match="`sequence_length` must be at least 3.*Received: 2"):
        BERTPreprocessor(tokenizer, 2)
    with pytest.raises(ValueError, match="`truncation` must be one of .* Received: 'middle'"):
        BERTPreprocessor(tokenizer, 8, truncation="middle")
    preprocessor = BERTPreprocessor(tokenizer, 8)
    with pytest.raises(ValueError, match="equal in number. Received: 1 and 2"):
        preprocessor(["a"], ["b", "c"])
    with pytest.raises(ValueError, match="`texts` must have rank 0 or 1"):
        preprocessor([["a"]])
    with pytest.raises(ValueError, match="`stride` must be at least 1. Received: 0"):
        preprocessor.windows(["a"], stride=0)
    with pytest.raises(ValueError, match="`sequence_length` must exceed 3 .* Received: 3"):
        BERTPreprocessor(tokenizer, 3).windows(["a"], stride=1, questions=["b"])
    with pytest.raises(FileNotFoundError, match=r"preprocessor\.json"):
        preprocessors.load(tmp_path)
    (tmp_path / "preprocessor.json").write_text('{"class_name": "os.system"}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"must name one of .* Received: 'os.system'"):
        preprocessors.load(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BERTPreprocessor(tokenizer, 3)(["a b c"])
