"""Word vectors as encoders: the same answers as the vectors give."""

import keras
import numpy as np
import pytest

from kctx import heads, models
from kctx.models import StaticEncoder, SubwordEncoder, word_rows
from kctx.preprocessors import SubwordsPreprocessor, WordsPreprocessor
from kctx.vectors import SubwordRows, Subwords, SubwordTable, Vectors
from kctx.vectors.tables import as_table

WORDS = ["the", "film", "caf\udce9", "日本"]
# Known ones, unknown ones, one of broken bytes, one too short for an n-gram.
ASKED = ["film", "films", "日本語", "caf\udce9", "caf\udce9s", "the", "a"]


def plain_vectors(dtype="float32"):
    return Vectors(WORDS, np.random.default_rng(0).normal(size=(4, 5)).astype(dtype))


def subword_vectors(prune_map=None, buckets=40):
    """As they come from a fastText file: one matrix of words and n-grams."""
    subwords = Subwords(4, 6, buckets)
    rows = SubwordRows(WORDS, subwords, prune_map)
    kept = buckets if prune_map is None else len(prune_map)
    inputs = as_table(np.random.default_rng(1).normal(size=(4 + kept, 5)).astype("float32"))
    return Vectors(WORDS, SubwordTable(inputs, WORDS, rows), subwords, inputs, rows)


def encoded(encoder, preprocessor, words):
    """The vector of each word, as the model gives it: (N, D)."""
    inputs = {key: value.numpy() for key, value in preprocessor([" ".join(words)]).items()}
    return keras.ops.convert_to_numpy(encoder(inputs)["sequence_output"])[0, : len(words)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_static_vectors_by_hand(dtype):
    vectors = plain_vectors(dtype)
    encoder = StaticEncoder.from_vectors(vectors)
    preprocessor = WordsPreprocessor.from_vectors(vectors)
    found = encoded(encoder, preprocessor, [*WORDS, "unknown"])
    np.testing.assert_array_equal(found[:4], vectors[WORDS])
    np.testing.assert_array_equal(found[4], np.zeros(5))
    assert encoder.count_params() == 6 * 5
    mean = StaticEncoder.from_vectors(vectors, unknown="mean", trainable=False)
    found = encoded(mean, preprocessor, ["unknown"])[0]
    np.testing.assert_allclose(found, vectors[WORDS].mean(0), atol=1e-6)
    assert mean.trainable_weights == [] and len(encoder.trainable_weights) == 1
    outputs = encoder.output
    assert list(outputs) == ["sequence_output", "hidden_states"]
    assert len(outputs["hidden_states"]) == 1


@pytest.mark.parametrize("pruned", [False, True])
def test_subword_vectors_known_and_unknown(pruned):
    """Also as `only` and `stored_as` leave them, with a vector for each word as a whole."""
    prune_map = np.array([(b, i) for i, b in enumerate(range(0, 40, 3))]) if pruned else None
    vectors = subword_vectors(prune_map)
    for some in (
        vectors,
        vectors.first(2),
        vectors.only(["film", "日本"]),
        vectors.stored_as("float16"),
    ):
        encoder = SubwordEncoder.from_vectors(some)
        preprocessor = SubwordsPreprocessor.from_vectors(some)
        found = encoded(encoder, preprocessor, ASKED)
        np.testing.assert_allclose(found, some[ASKED], atol=1e-6)
        assert preprocessor.inputs["subword_ids"].count <= encoder.table_size
        assert pruned or found[:-1].any(axis=1).all()
    assert not found[-1].any()


def test_mean_by_hand():
    encoder = SubwordEncoder(4, 2)
    table = np.array([[9, 9], [1, 2], [3, 4], [5, 9]], "float32")
    encoder.set_weights([table])
    ids = np.array([[[1, 2, 0], [3, 0, 0], [0, 0, 0]]], "int32")
    mask = np.array([[True, True, True]])
    out = encoder({"subword_ids": ids, "padding_mask": mask})
    found = keras.ops.convert_to_numpy(out["sequence_output"])
    np.testing.assert_allclose(found, [[[2, 3], [5, 9], [0, 0]]])
    # No features at all: the third axis may be empty.
    out = encoder({"subword_ids": ids[:, :, :0], "padding_mask": mask})
    assert not keras.ops.convert_to_numpy(out["sequence_output"]).any()


@pytest.mark.parametrize("subwords", [False, True])
def test_classifier_of_the_mean(subwords):
    """By hand, with an unknown word, a text of padding alone, and no texts."""
    vectors = subword_vectors() if subwords else plain_vectors()
    encoder_class = SubwordEncoder if subwords else StaticEncoder
    preprocessor_class = SubwordsPreprocessor if subwords else WordsPreprocessor
    model = heads.attach(encoder_class.from_vectors(vectors), heads.Classifier(3))
    preprocessor = preprocessor_class.from_vectors(vectors)
    kernel, bias = model.get_weights()[-2:]
    texts = ["the films", "film", ""]
    logits = model.predict({k: v.numpy() for k, v in preprocessor(texts).items()}, verbose=0)
    for text, row in zip(texts, logits, strict=True):
        known = [vectors[w] if subwords or w in vectors else np.zeros(5) for w in text.split()]
        mean = np.mean(known, axis=0) if known else np.zeros(5)
        np.testing.assert_allclose(row, mean @ kernel + bias, atol=1e-5)
    none = {key: value.numpy() for key, value in preprocessor([]).items()}
    assert model(none).shape == (0, 3)


@pytest.mark.parametrize("in_place", [True, False])
def test_tables_larger_than_a_piece(monkeypatch, in_place):
    """Copied in several pieces, in place and as a whole, as on accelerators."""
    monkeypatch.setattr(word_rows, "_ROWS_AT_ONCE", 7)
    monkeypatch.setattr(word_rows, "computes_on_cpu", lambda: in_place)
    table = np.random.default_rng(0).normal(size=(30, 3)).astype("float32")
    vectors = Vectors([f"w{i}" for i in range(30)], table)
    (found,) = StaticEncoder.from_vectors(vectors, unknown="mean").get_weights()
    np.testing.assert_array_equal(found[2:], table)
    np.testing.assert_allclose(found[:2], [np.zeros(3), table.mean(axis=0)], atol=1e-6)


@pytest.mark.parametrize("in_place", [True, False])
def test_rows_that_are_not_finite(monkeypatch, in_place):
    monkeypatch.setattr(word_rows, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(word_rows, "computes_on_cpu", lambda: in_place)
    table = np.arange(20, dtype="float32").reshape(10, 2)
    table[4, 1], table[5], table[8, 0] = np.nan, (np.inf, -np.inf), np.inf
    vectors = Vectors([f"w{i}" for i in range(10)], table)
    with pytest.warns(UserWarning, match="3 of 10 rows hold NaN.*first that of 'w4'") as found:
        (rows,) = StaticEncoder.from_vectors(vectors, unknown="mean").get_weights()
    # Backends may have warnings of their own.
    assert sum("hold NaN" in str(warning.message) for warning in found) == 1
    assert np.isnan(table[4, 1])
    good = [0, 1, 2, 3, 6, 7, 9]
    np.testing.assert_array_equal(rows[2:][good], table[good])
    assert not rows[2:][[4, 5, 8]].any()
    np.testing.assert_allclose(rows[1], table[good].mean(axis=0), rtol=1e-6)
    with pytest.warns(UserWarning, match="1 of 1 rows"):
        nothing = StaticEncoder.from_vectors(vectors.only(["w4"]), unknown="mean")
    assert not np.any(nothing.get_weights()[0])


def test_subwords_that_are_not_finite():
    vectors = subword_vectors()
    vectors.subword_table.chunk(0, 44)[40] = np.nan
    with pytest.warns(UserWarning, match="1 of 44 rows hold NaN.*first row 40"):
        (rows,) = SubwordEncoder.from_vectors(vectors).get_weights()
    assert np.isfinite(rows).all() and not rows[41].any()


def test_ids_outside_the_table():
    static, subword = StaticEncoder(5, 2), SubwordEncoder(5, 2)
    mask = np.ones((1, 1), bool)
    with pytest.raises(Exception, match=r"`token_ids` must lie in \[0, 5\)"):
        static({"token_ids": np.array([[5]]), "padding_mask": mask})
    with pytest.raises(Exception, match=r"`subword_ids` must lie in \[0, 5\)"):
        subword({"subword_ids": np.array([[[1, 5]]]), "padding_mask": mask})
    for model, inputs in (
        (static, {"token_ids": np.array([[5]])}),
        (subword, {"subword_ids": np.array([[[-1]]])}),
    ):
        with pytest.raises(ValueError, match="must lie in"):
            heads.attach(model, heads.Classifier(2)).check_inputs(inputs)


@pytest.mark.once
def test_errors():
    with pytest.raises(ValueError, match="`unknown` must be one of .* Received: 'random'"):
        StaticEncoder.from_vectors(plain_vectors(), unknown="random")
    with pytest.raises(ValueError, match="must have subwords.*4 words without; use"):
        SubwordEncoder.from_vectors(plain_vectors())
    with pytest.raises(ValueError, match="must hold at least one word"):
        StaticEncoder.from_vectors(Vectors([], np.zeros((0, 3), "float32")))
    with pytest.raises(ValueError, match="`hidden_dim` must be an integer of at least 1"):
        models.StaticEncoder(3, 0)
    with pytest.raises(ValueError, match="`table_size` must be an integer of at least 1"):
        models.SubwordEncoder(0, 3)
