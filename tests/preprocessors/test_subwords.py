"""Raw text to rows of words and n-grams, in TensorFlow graphs."""

import numpy as np
import pytest
import tensorflow as tf

from kctx import preprocessors
from kctx.preprocessors import SubwordsPreprocessor
from kctx.preprocessors.ngram_hashing import ngram_buckets
from kctx.tokenizers import WordTokenizer
from kctx.vectors import Subwords

pytestmark = pytest.mark.once

SETTINGS = [(3, 6, 2_000_000), (1, 3, 2_000_000), (0, 2, 100), (2, 4, 7), (5, 5, 11), (0, 0, 0)]
WHERE = [167652, 989715, 1526707, 1071586, 420941, 312621, 969176, 121234, 1473420, 1540811]
WHERE += [114991, 1529033, 1568469, 867498]


def odd_words():
    """Words of many scripts, of broken UTF-8, and the special cases."""
    generator = np.random.default_rng(0)
    characters = ["a", "b", "é", "日", "\U0001f600", "<", ">", "/", "s", "ß", "ł", "ü", "\u0300"]
    bytes_ = np.frombuffer(b"\x80\xc3\xff\xe4A\xbf\x81\xf0", np.uint8)
    words = [b"where", b"</s>", b"a", "日本".encode(), b"<", b"x" * 300, b"\x80" * 9, "é".encode()]
    for size in generator.integers(1, 12, 150):
        words.append("".join(generator.choice(characters, size)).encode())
        words.append(bytes_[generator.integers(0, len(bytes_), size)].tobytes())
    return words


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_buckets_are_those_of_the_vectors(settings):
    subwords, words = Subwords(*settings), odd_words()
    found = ngram_buckets(tf.constant(words), subwords).to_list()
    assert found == [subwords.ids(word) for word in words]
    assert ngram_buckets(tf.zeros([0], tf.string), subwords).to_list() == []


def test_golden_buckets():
    found = ngram_buckets(tf.constant(["where"]), Subwords(3, 6, 2_000_000)).to_list()
    assert found == [WHERE]
    found = ngram_buckets(tf.constant(["a"]), Subwords(1, 3, 2_000_000)).to_list()
    assert found == [[1008750, 1087600, 2220, 1614806]]
    found = ngram_buckets(tf.constant(["über"]), Subwords(3, 3, 2_000_000)).to_list()
    assert found == [[1793082, 255527, 485366, 742840]]


def make(places=None, **options):
    tokenizer = WordTokenizer(["where", "is", "</s>"])
    return SubwordsPreprocessor(tokenizer, Subwords(3, 6, 2_000_000), places=places, **options)


def test_rows_by_hand():
    made = make(sequence_length=3)(["where where x is", "", "</s>"])
    ids, mask = made["subword_ids"].numpy(), made["padding_mask"].numpy()
    assert ids.shape == (3, 3, 16) and ids.dtype == np.int32
    assert mask.tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    known = [1, *(4 + bucket for bucket in WHERE)]
    assert ids[0, 0].tolist() == ids[0, 1].tolist() == [*known, 0]
    unknown = [4 + bucket for bucket in Subwords(3, 6, 2_000_000).ids("x")]  # no row of its own
    assert ids[0, 2].tolist() == unknown + [0] * 15
    assert ids[2, 0].tolist() == [3] + [0] * 15
    assert not ids[1].any() and not ids[2, 1:].any()
    whole = make(whole_words=True)(["where x"])["subword_ids"].numpy()[0]
    assert whole.tolist() == [[1], unknown]


def test_pruned_buckets_are_left_out():
    places = np.full(2_000_000, -1, np.int32)
    places[WHERE[2]], places[WHERE[0]] = 0, 1
    preprocessor = make(places=places, ngram_row=10)
    assert preprocessor(["where"])["subword_ids"].numpy().tolist() == [[[1, 11, 10, 0]]]
    assert preprocessor.inputs["subword_ids"].count == 12


def test_shapes_are_few():
    sizes = {make()(["x" * n])["subword_ids"].shape[2] for n in range(1, 90)}
    assert sizes <= {1, 2, 4, 8, 16, 32, 64, 128, 256}
    assert make(pad_to_length=True, sequence_length=5)(["x"])["subword_ids"].shape == (1, 5, 256)
    assert make()([])["subword_ids"].shape == (0, 0, 1)
    assert make()(["", " "])["subword_ids"].shape == (2, 0, 1)


def test_long_words_are_bounded():
    """The first rows of a word of 100,000 characters are right, and no others are made."""
    for word in ("日x" * 50_000, "x" * 100_000):
        found = make()([word])["subword_ids"].numpy()[0, 0]
        assert found.tolist() == [4 + x for x in Subwords(3, 6, 2_000_000).ids(word[:300])[:256]]
    assert make()([b"\x80" * 100_000])["subword_ids"].shape[2] <= 256


def test_same_in_a_pipeline_and_in_a_saved_graph(tmp_path):
    preprocessor, texts = make(), [b"where x \xff\xc3", "日本".encode(), b""]
    expected = preprocessor(texts)
    dataset = tf.data.Dataset.from_tensor_slices(texts).batch(3).map(preprocessor)

    class Graph(tf.Module):
        def __init__(self):
            super().__init__()
            self.table = preprocessor.tokenizer._table

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def __call__(self, text):
            return preprocessor(text)

    tf.saved_model.save(Graph(), str(tmp_path))
    saved = tf.saved_model.load(str(tmp_path))(tf.constant(texts))
    for made in (next(iter(dataset)), saved):
        for key, value in expected.items():
            np.testing.assert_array_equal(made[key], value)


@pytest.mark.parametrize("pruned", [False, True])
def test_files_round_trip(tmp_path, pruned):
    places = np.arange(2_000_000, dtype=np.int32)[::-1] if pruned else None
    preprocessor = make(places=places, sequence_length=7, max_subwords=40, whole_words=True)
    preprocessor.save(tmp_path)
    loaded = preprocessors.load(tmp_path)
    assert type(loaded) is SubwordsPreprocessor
    assert loaded.get_config() == preprocessor.get_config()
    other = loaded.with_options(sequence_length=2, pad_to_multiple=2)
    assert other.get_config() | {"sequence_length": 7, "pad_to_multiple": 1} == loaded.get_config()
    for made in (loaded(["where y"]), other(["where y"])):
        np.testing.assert_array_equal(made["subword_ids"], preprocessor(["where y"])["subword_ids"])


def test_errors():
    with pytest.raises(ValueError, match="`max_subwords` must be an integer of at least 1"):
        make(max_subwords=0)
    with pytest.raises(ValueError, match="`ngram_row` must be an integer of at least 4"):
        make(ngram_row=3)
    with pytest.raises(ValueError, match=r"`places` must hold a number for each of 2000000"):
        make(places=np.zeros(3))
