"""Raw text to ids of words, in TensorFlow graphs."""

import numpy as np
import pytest
import tensorflow as tf

from kctx import preprocessors
from kctx.data.text_blocks import ALL_WHITE_SPACE, split_tokens
from kctx.preprocessors import WordsPreprocessor
from kctx.tokenizers import WordTokenizer
from kctx.tokenizers.white_space import lower, split_at_white_space
from kctx.tokenizers.word_file import read_words, write_words
from kctx.words import to_text

pytestmark = pytest.mark.once

WORDS = ["the", "film", "über", "日本", "caf\udce9", "[PAD]", "a b"]
PAD, UNK = 0, 1


def arrays(inputs):
    return {key: value.numpy().tolist() for key, value in inputs.items()}


def make(sequence_length=6, lowercase=False, **options):
    return WordsPreprocessor(WordTokenizer(WORDS, lowercase), sequence_length, **options)


def test_ids_by_hand():
    made = arrays(make()(["the film", "", "日本 unknown\tüber\r\n", b"caf\xe9 [PAD]"]))
    assert made["token_ids"] == [
        [2, 3, PAD],
        [PAD, PAD, PAD],
        [5, UNK, 4],
        [6, 7, PAD],  # a word of the text is never the padding
    ]
    assert made["padding_mask"] == [[True] * n + [False] * (3 - n) for n in (2, 0, 3, 2)]


def test_bytes_in_a_str_are_the_bytes():
    for text in ("caf\udce9 x", b"caf\xe9 x"):
        assert arrays(make()(text))["token_ids"] == [[6, UNK]]
    assert arrays(make()("\ud800 the"))["token_ids"] == [[UNK, 2]]  # no byte: U+FFFD


def test_text_is_cut_and_padded():
    words = " ".join(["the"] * 9)
    assert make()([words])["token_ids"].shape == (1, 6)
    assert make(pad_to_length=True)(["the"])["token_ids"].shape == (1, 6)
    assert make(pad_to_multiple=4)(["the"])["token_ids"].shape == (1, 4)
    assert make(pad_to_multiple=4)([words])["token_ids"].shape == (1, 6)
    assert make()([])["token_ids"].shape == (0, 0)
    assert make()(["", ""])["padding_mask"].shape == (2, 0)


def test_white_space_is_that_of_the_corpus():
    """Random bytes against the splitter that the trainers read their corpus with."""
    generator = np.random.default_rng(0)
    alphabet = np.frombuffer(b" \t\r\n\v\f\0\x1c\x85\xa0\xc2\xffab", np.uint8)
    texts = [alphabet[generator.integers(0, len(alphabet), 30)].tobytes() for _ in range(300)]
    found = split_at_white_space(tf.constant(texts)).to_list()
    assert found == [split_tokens(text, ALL_WHITE_SPACE) for text in texts]
    ids = make(40)(["\u00a0the\u2003film"])["token_ids"]  # neither is white space to fastText
    assert arrays({"x": ids})["x"] == [[UNK]]


def test_lower_case():
    made = make(lowercase=True)(["THE Film ÜBER", b"CAF\xe9"])
    assert arrays(made)["token_ids"] == [[2, 3, 4], [6, PAD, PAD]]
    words = ["İX", "ΣΑΣ", "ÀÉ", "\ufffdA"]
    found = [word.decode() for word in lower(tf.constant(words)).numpy()]
    assert found[2:] == ["àé", "\ufffda"]
    assert make()(["THE"])["token_ids"].numpy().tolist() == [[UNK]]


def test_same_in_a_pipeline_and_in_a_saved_graph(tmp_path):
    preprocessor, texts = make(), ["the film", "über", ""]
    expected = arrays(preprocessor(texts))
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(3).map(preprocessor)
    assert arrays(next(iter(dataset))) == expected

    class Graph(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = preprocessor.tokenizer._table

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, text):
            return preprocessor(text)

    tf.saved_model.save(Graph(), str(tmp_path))
    assert arrays(tf.saved_model.load(str(tmp_path))(tf.constant(texts))) == expected


def test_files_round_trip(tmp_path):
    words = [*WORDS, "\\", "\\n", "n\nl", "\r", "\\\\x", "x\\", "", " ", "\0", "\u2028"]
    preprocessor = WordsPreprocessor(WordTokenizer(words, True), 9, pad_to_multiple=2)
    preprocessor.save(tmp_path)
    loaded = preprocessors.load(tmp_path)
    assert type(loaded) is WordsPreprocessor
    assert loaded.get_config() == preprocessor.get_config()
    assert loaded.tokenizer.words == words and loaded.tokenizer.lowercase
    assert arrays(loaded(["a the"])) == arrays(preprocessor(["a the"]))


def test_word_files(tmp_path):
    generator = np.random.default_rng(1)
    alphabet = np.frombuffer(b"\\\\nr\n\r\xff\xc3ab", np.uint8)
    words = [
        to_text(alphabet[generator.integers(0, len(alphabet), size)].tobytes())
        for size in generator.integers(0, 9, 500)
    ]
    write_words(words, tmp_path / "words.txt")
    assert read_words(tmp_path / "words.txt") == words
    (tmp_path / "words.txt").write_bytes(b"a\nb\\x\n")
    with pytest.raises(ValueError, match="words.txt, line 2: a backslash that escapes nothing"):
        read_words(tmp_path / "words.txt")
    (tmp_path / "words.txt").write_bytes(b"a\nb")
    with pytest.raises(ValueError, match="is cut off"):
        read_words(tmp_path / "words.txt")


def test_tokenizer():
    tokenizer = WordTokenizer(WORDS)
    assert tokenizer.vocabulary_size == len(WORDS) + 2 == len(tokenizer.vocabulary)
    assert [tokenizer.token_to_id(token) for token in ("the", "nothing")] == [2, UNK]
    assert tokenizer("the nothing").numpy().tolist() == [2, UNK]
    assert tokenizer([["the"], ["film", ""]]).to_list() == [[[2]], [[3], []]]
    assert tokenizer.detokenize([2, UNK, PAD, 3]) == "the [UNK] film"
    assert [tokenizer.id_to_token(i) for i in (0, 1, 2)] == ["[PAD]", "[UNK]", "the"]
    for index in (-1, len(WORDS) + 2):
        with pytest.raises(IndexError, match="`index` must lie in"):
            tokenizer.id_to_token(index)
    with pytest.raises(ValueError, match="must differ from each other. Received twice: 'a'"):
        WordTokenizer(["a", "b", "a"])
    with pytest.raises(ValueError, match="at least one word"):
        WordTokenizer([])
    with pytest.raises(ValueError, match="`sequence_length` must be an integer of at least 1"):
        make(0)
    with pytest.raises(ValueError, match="`texts` must have rank 0 or 1"):
        make()([["a"]])
