"""Tasks of one text, or a pair, whose answers need no windows: outputs to answers, by hand."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kctx.heads import Classifier, Regressor, attach
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from kctx.preprocessors import BERTPreprocessor
from kctx.tasks import TASKS, make_task, task
from kctx.tasks.embedding import EncoderPooling
from kctx.tokenizers import WordPieceTokenizer

pytestmark = pytest.mark.once

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "x", "y"]


def make_encoder(rows=7):
    return BERT(rows, 1, 8, 2, 16, max_sequence_length=16)


def make_preprocessor():
    return BERTPreprocessor(WordPieceTokenizer(VOCABULARY), sequence_length=16)


def make(name, model, labels=None, **options):
    return make_task(name, model, make_preprocessor(), labels, options)


def test_classification():
    model = attach(make_encoder(), Classifier(3))
    asked = make("classification", model, ["a", "b", "中"])
    logits = tf.math.log([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])
    answer = asked.answer(asked.select(logits, {}), {}, {})
    np.testing.assert_allclose(answer["scores"], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], atol=1e-6)
    np.testing.assert_allclose(answer["score"], [0.5, 0.7], atol=1e-6)
    assert answer["label"].numpy().tolist() == [b"b", b"a"]
    row = asked.rows(answer)[0]
    assert row["label"] == "b" and row["score"] == pytest.approx(0.5)
    assert row["scores"] == pytest.approx({"a": 0.2, "b": 0.5, "中": 0.3})
    bare = asked.select({"next_sentence": tf.constant([[0.0, 9.0]])}, {})
    assert bare["output"].numpy().tolist() == [[0.0, 9.0]]


def test_regression():
    asked = make("regression", attach(make_encoder(), Regressor()))
    answer = asked.answer(asked.select(tf.constant([[1.5], [-2.0]]), {}), {}, {})
    assert asked.rows(answer) == [{"score": 1.5}, {"score": -2.0}]


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean", [[2.0, 1.0], [0.0, 0.0]]),
        ("max", [[3.0, 4.0], [0.0, 0.0]]),
        ("cls", [[1.0, 4.0], [5.0, 5.0]]),
        ("pooled", [[7.0, 7.0], [8.0, 8.0]]),
        ("last4_mean", [[2.0 * 2.5, 1.0 * 2.5], [0.0, 0.0]]),
        ("last4_concat", [[2.0, 1.0, 4.0, 2.0, 6.0, 3.0, 8.0, 4.0], [0.0] * 8]),
    ],
)
def test_poolings(pooling, expected):
    last = tf.constant(
        [[[1.0, 4.0], [3.0, -2.0], [9.0, 9.0]], [[5.0, 5.0], [6.0, 6.0], [7.0, 7.0]]]
    )
    outputs = {
        "sequence_output": last,
        "pooled_output": tf.constant([[7.0, 7.0], [8.0, 8.0]]),
        "hidden_states": [100 * last, last, 2 * last, 3 * last, 4 * last],
    }
    mask = tf.constant([[True, True, False], [False, False, False]])
    np.testing.assert_allclose(EncoderPooling(pooling)(outputs, padding_mask=mask), expected)


def test_masked_lm():
    asked = make("masked_lm", MaskedLM(make_encoder()), top_k=2)
    inputs, _ = asked.prepare("serving_default", tf.constant(["x [MASK] y [MASK]", "[MASK]", "x"]))
    assert inputs["mask_positions"].numpy().tolist() == [[2, 4], [1, 0], [0, 0]]
    chances = [[0.0, 0.0, 0.0, 0.0, 0.2, 0.5, 0.3], [0.0, 0.0, 0.0, 0.0, 0.7, 0.1, 0.2]]
    logits = tf.math.log(tf.constant([chances] * 3))
    outputs = asked.select({"masked_lm": logits}, inputs)
    found = asked.answer(outputs, inputs, {})
    assert found["mask_count"].numpy().tolist() == [2, 1, 0]
    assert found["tokens"].numpy().tolist() == [
        [[b"x", b"y"], [b"[MASK]", b"y"]],
        [[b"x", b"y"], [b"", b""]],
        [[b"", b""], [b"", b""]],
    ]
    np.testing.assert_allclose(
        found["scores"],
        [[[0.5, 0.3], [0.7, 0.2]], [[0.5, 0.3], [0, 0]], [[0, 0], [0, 0]]],
        atol=1e-6,
    )
    rows = asked.rows(found)
    assert [row["tokens"] for row in rows] == [[["x", "y"], ["[MASK]", "y"]], [["x", "y"]], []]


def test_rows_beyond_the_vocabulary_are_never_answered():
    """Tables may have more rows than there are tokens, to be a multiple of 8."""
    asked = make("masked_lm", MaskedLM(make_encoder(8)), top_k=2)
    inputs, _ = asked.prepare("serving_default", tf.constant(["[MASK]"]))
    chances = [[[0.0, 0.0, 0.0, 0.0, 0.3, 0.1, 0.0, 0.6]]]  # most probable: a row of no token
    outputs = asked.select({"masked_lm": tf.math.log(chances)}, inputs)
    found = asked.answer(outputs, inputs, {})
    assert found["tokens"].numpy().tolist() == [[[b"[MASK]", b"x"]]]
    np.testing.assert_allclose(found["scores"], [[[0.75, 0.25]]], atol=1e-6)


def test_every_task_says_what_it_takes_and_gives():
    for name, kind in TASKS.items():
        assert kind.name == name and kind.meanings and kind.fields


def test_errors():
    with pytest.raises(ValueError, match=r"exactly one output.*\['a', 'b'\]"):
        task.single_output({"a": 1, "b": 2})
    model = attach(make_encoder(), Classifier(2))
    with pytest.raises(ValueError, match="`task` must be one of"):
        make("translation", model)
    with pytest.raises(ValueError, match="Options of classification are: pairs. Received: stride"):
        make("classification", model, ["a", "b"], stride=3)
    with pytest.raises(ValueError, match="`top_k` must lie between 1 and the vocabulary's 7"):
        make("masked_lm", MaskedLM(make_encoder(8)), top_k=8)
    for wrong in (0, True, 2.5, "5", None):
        with pytest.raises(ValueError, match="`top_k` must be an integer of at least 1. Received"):
            make("masked_lm", MaskedLM(make_encoder()), top_k=wrong)
    with pytest.raises(ValueError, match="must be a `MaskedLM` objective, or a `Joint`"):
        TASKS["masked_lm"].check_labels(model, None)
    with pytest.raises(ValueError, match="must have a head for span"):
        TASKS["span"].check_labels(model, None)
    with pytest.raises(ValueError, match="`pooling` must be one of mean, .* Received: sum"):
        make("embedding", make_encoder(), pooling="sum")
    with pytest.raises(ValueError, match="must be an encoder with a `pooled_output`"):
        bare = BERT(7, 1, 8, 2, 16, max_sequence_length=16, pooler=False)
        make("embedding", bare, pooling="pooled")
    joint = Joint([MaskedLM(encoder := make_encoder()), NextSentence(encoder)])
    assert isinstance(make("embedding", joint).model, keras.Model)
