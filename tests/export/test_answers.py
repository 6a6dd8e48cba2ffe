import numpy as np
import pytest
import tensorflow as tf

from kctx.export import answers

pytestmark = pytest.mark.once


def test_classification():
    logits = tf.math.log([[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]])
    answer = answers.Classification(["a", "b", "中"])(logits, {})
    np.testing.assert_allclose(answer["scores"], [[0.2, 0.5, 0.3], [0.7, 0.2, 0.1]], atol=1e-6)
    np.testing.assert_allclose(answer["score"], [0.5, 0.7], atol=1e-6)
    assert answer["label"].numpy().tolist() == [b"b", b"a"]
    bare = answers.Classification(["no", "yes"])({"next_sentence": tf.constant([[0.0, 9.0]])}, {})
    assert bare["label"].numpy().tolist() == [b"yes"]


def test_regression():
    answer = answers.Regression()(tf.constant([[1.5], [-2.0]]), {})
    assert answer["score"].numpy().tolist() == [1.5, -2.0]


@pytest.mark.parametrize(
    ("pooling", "expected"),
    [
        ("mean", [[2.0, 1.0], [0.0, 0.0]]),
        ("max", [[3.0, 4.0], [0.0, 0.0]]),
        ("cls", [[1.0, 4.0], [5.0, 5.0]]),
        ("pooled", [[7.0, 7.0], [8.0, 8.0]]),
    ],
)
def test_embedding(pooling, expected):
    outputs = {
        "sequence_output": tf.constant(
            [[[1.0, 4.0], [3.0, -2.0], [9.0, 9.0]], [[5.0, 5.0], [6.0, 6.0], [7.0, 7.0]]]
        ),
        "pooled_output": tf.constant([[7.0, 7.0], [8.0, 8.0]]),
    }
    inputs = {"padding_mask": tf.constant([[True, True, False], [False, False, False]])}
    answer = answers.Embedding(pooling)(outputs, inputs)
    np.testing.assert_allclose(answer["embedding"], expected)


def test_masked_lm():
    answer = answers.MaskedLM(["x", "y", "[MASK]"], mask_id=2, top_k=2)
    inputs = {
        "token_ids": tf.constant([[0, 2, 1, 2], [2, 0, 2, 2], [0, 1, 0, 0]]),
        "padding_mask": tf.constant([[True] * 4, [True, True, False, False], [True] * 4]),
    }
    prepared = answer.prepare(inputs)
    assert prepared["mask_positions"].numpy().tolist() == [[1, 3], [0, 0], [0, 0]]
    logits = tf.math.log(tf.constant([[[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]] * 3))
    found = answer({"masked_lm": logits}, prepared)
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


def test_rows_beyond_the_vocabulary_are_never_answered():
    """Tables may have more rows than there are tokens, to be a multiple of 8."""
    answer = answers.MaskedLM(["x", "[MASK]"], mask_id=1, top_k=2)
    inputs = {"token_ids": tf.constant([[1]]), "padding_mask": tf.constant([[True]])}
    logits = tf.math.log(tf.constant([[[0.1, 0.3, 0.6]]]))  # most probable: a row of no token
    found = answer({"masked_lm": logits}, answer.prepare(inputs))
    assert found["tokens"].numpy().tolist() == [[[b"[MASK]", b"x"]]]
    np.testing.assert_allclose(found["scores"], [[[0.75, 0.25]]], atol=1e-6)


def test_several_outputs_are_refused():
    with pytest.raises(ValueError, match=r"exactly one output.*\['a', 'b'\]"):
        answers.single_output({"a": 1, "b": 2})
