"""Tasks other than classification, traced in this process; the child process does the same."""

import numpy as np
import pytest
import tensorflow as tf

from kctx import heads, objectives
from kctx.export import rebuild
from kctx.export.documents import describe
from kctx.export.graph import TextGraph
from kctx.export.stored_weights import StoredWeights
from kctx.export.writing import _write_expected
from kctx.preprocessors import ModelInput
from kctx.tasks import make_task
from tests.export.films import (
    TEXTS,
    VOCABULARY,
    make_encoder,
    make_preprocessor,
    predict,
    with_lively_weights,
)

pytestmark = pytest.mark.once


def save_and_load(folder, name, model, preprocessor, labels=None, **options):
    task = make_task(name, model, preprocessor, labels, options)
    graph = TextGraph(task, StoredWeights(model))
    tf.saved_model.save(graph, str(folder), signatures=graph.signatures())
    return tf.saved_model.load(str(folder))


def test_regression(tmp_path):
    model = with_lively_weights(heads.attach(make_encoder(), heads.Regressor()))
    preprocessor = make_preprocessor()
    loaded = save_and_load(tmp_path, "regression", model, preprocessor)
    found = loaded.signatures["serving_default"](text=tf.constant(TEXTS))
    expected = predict(model, preprocessor, TEXTS)[:, 0]
    assert list(found) == ["score"] and found["score"].shape == (len(TEXTS),)
    np.testing.assert_allclose(found["score"], expected, atol=1e-5)
    empty = loaded.signatures["serving_default"](text=tf.constant([], tf.string))
    assert empty["score"].shape == (0,)


def test_embedding(tmp_path):
    model, preprocessor = with_lively_weights(make_encoder()), make_preprocessor()
    loaded = save_and_load(tmp_path, "embedding", model, preprocessor)
    found = loaded.signatures["serving_default"](text=tf.constant(TEXTS))["embedding"]
    vectors = predict(model, preprocessor, TEXTS)["sequence_output"]
    mask = preprocessor(tf.constant(TEXTS))["padding_mask"].numpy()[:, :, None]
    expected = (vectors * mask).sum(1) / mask.sum(1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


class TablePreprocessor:
    """Words to ids by a table, which an export must come to own."""

    inputs = {
        "token_ids": ModelInput("int32", 0, "words"),
        "segment_ids": ModelInput("int32", 0, "all of one segment"),
        "padding_mask": ModelInput("bool", False, "true = a word"),
    }
    takes_pairs = False

    def __init__(self):
        words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([5, 6], tf.int64))
        self.parts = {"tables": [tf.lookup.StaticHashTable(words, default_value=1)]}

    def __call__(self, text):
        (table,) = self.parts["tables"]
        found = tf.strings.split(text)
        ids = tf.cast(found.with_values(table.lookup(found.values)), tf.int32)
        mask = tf.ones_like(ids, tf.bool)
        ids = ids.to_tensor()
        return {
            "token_ids": ids,
            "segment_ids": tf.zeros_like(ids),
            "padding_mask": mask.to_tensor(),
        }


def test_tables_of_the_preprocessor_are_owned_by_the_export(tmp_path):
    model = with_lively_weights(make_encoder())
    loaded = save_and_load(tmp_path, "embedding", model, TablePreprocessor())
    found = loaded.signatures["serving_default"](text=tf.constant(["a b c", "", "b"]))
    expected = predict(model, TablePreprocessor(), ["a b c"])["sequence_output"][0].mean(0)
    np.testing.assert_allclose(found["embedding"][0], expected, atol=1e-5)
    assert found["embedding"][1].numpy().tolist() == [0.0] * 32
    assert set(loaded.signatures) == {"serving_default", "token_ids"}  # it takes no pairs
    task = make_task("embedding", model, TablePreprocessor())
    described = describe(loaded.signatures, task)
    assert described["token_ids"]["inputs"]["segment_ids"]["meaning"] == "all of one segment"
    assert set(rebuild.examples(task, ["a", "b"])) == set(described)


def test_masked_lm_fills_masks_written_in_the_text(tmp_path):
    encoder = make_encoder()
    model = with_lively_weights(
        objectives.Joint([objectives.MaskedLM(encoder), objectives.NextSentence(encoder)])
    )
    plain = make_preprocessor()
    tokenizer = plain.tokenizer.with_options(special_tokens_in_text=True)
    preprocessor = plain.with_options(tokenizer=tokenizer)
    loaded = save_and_load(tmp_path, "masked_lm", model, plain, top_k=3)
    texts = ["the [MASK] was [MASK] .", "[MASK] film", "no film", ""]
    found = loaded.signatures["serving_default"](text=tf.constant(texts))
    assert set(found) == {"tokens", "scores", "mask_count"}
    assert found["mask_count"].numpy().tolist() == [2, 1, 0, 0]
    assert found["tokens"].shape == (4, 2, 3) and found["scores"].shape == (4, 2, 3)

    inputs = {key: value.numpy() for key, value in preprocessor(tf.constant(texts)).items()}
    row, column = np.nonzero(inputs["token_ids"] == plain.tokenizer.mask_id)
    assert list(zip(row, column, strict=True)) == [(0, 2), (0, 4), (1, 1)]  # [CLS] is at 0
    inputs["mask_positions"] = np.array([[2, 4], [1, 0], [0, 0], [0, 0]], "int32")
    logits = model.predict(inputs, verbose=0)["masked_lm"]
    probabilities = tf.nn.softmax(logits, axis=-1).numpy()
    for text, mask in [(0, 0), (0, 1), (1, 0)]:
        best = np.argsort(-probabilities[text, mask])[:3]
        tokens = [token.decode("utf-8") for token in found["tokens"][text, mask].numpy()]
        assert tokens == [VOCABULARY[index] for index in best]
        np.testing.assert_allclose(
            found["scores"][text, mask], probabilities[text, mask, best], atol=1e-5
        )
    assert set(found["tokens"][1, 1].numpy()) == {b""}
    for texts in ([], ["no film"]):
        empty = loaded.signatures["serving_default"](text=tf.constant(texts, tf.string))
        assert empty["tokens"].shape == (len(texts), 0, 3)
    by_ids = loaded.signatures["token_ids"](**preprocessor(tf.constant(["[MASK] film"])))
    np.testing.assert_allclose(by_ids["scores"][0, 0], found["scores"][1, 0], atol=1e-5)


def test_rebuilt_model_is_compared_with_the_original(tmp_path):
    model, preprocessor = with_lively_weights(make_encoder()), make_preprocessor()
    task = make_task("embedding", model, preprocessor)
    _write_expected(tmp_path / "expected.npz", model, task, ["a film", "fine"])
    rebuild.check_outputs(model, tmp_path / "expected.npz")
    model.set_weights([w * 1.1 for w in model.get_weights()])
    with pytest.raises(ValueError, match="answers otherwise than `model`: output"):
        rebuild.check_outputs(model, tmp_path / "expected.npz")
