"""Predictions of supervised fastText models, computed by hand."""

import numpy as np
import pytest

from kctx.convert import FastTextArguments, FastTextFile
from kctx.vectors import FastTextPredictor

pytestmark = pytest.mark.once


def model(loss="softmax", **arguments):
    settings = dict(dim=2, model="supervised", loss=loss, buckets=0, min_n=0, max_n=0)
    return FastTextFile(
        FastTextArguments(**{**settings, **arguments}),
        words=["</s>", "good", "bad"],
        counts=np.array([9, 5, 4]),
        labels=["__label__up", "__label__down", "__label__flat"],
        label_counts=np.array([5, 3, 1]),
        inputs=np.array([[0, 0], [3, 0], [0, 3]], "float32"),
        outputs=np.array([[1, 0], [0, 1], [0, 0]], "float32"),
    )


def test_softmax():
    # "good" and the end of the line: hidden (1.5, 0), logits 1.5, 0, 0.
    exact = np.exp([1.5, 0, 0]) / np.exp([1.5, 0, 0]).sum()
    answers = FastTextPredictor(model()).predict("good", k=-1)
    assert [label for label, _ in answers] == ["__label__up", "__label__down", "__label__flat"]
    np.testing.assert_allclose([x for _, x in answers], exact + 1e-5, rtol=1e-5)


def test_words_without_rows_are_passed_over():
    predictor = FastTextPredictor(model())
    assert predictor.predict("good unheard") == predictor.predict("good")
    assert predictor.predict("__label__up good __label__new") == predictor.predict("good")
    assert predictor.predict("good </s> bad") == predictor.predict("good")
    assert predictor.predict("good bad") != predictor.predict("good")


def test_a_text_of_which_nothing_is_known():
    file = model()
    file.words = ["x", "good", "bad"]  # no end of a sentence
    assert FastTextPredictor(file).predict(["unheard", "good"], k=1)[0] == []
    assert FastTextPredictor(file).predict([]) == []


def test_many_as_one():
    predictor = FastTextPredictor(model("ova"))
    texts = ["good", "bad bad", "", "good bad good"] * 3
    for text, answers in zip(texts, predictor.predict(texts, k=2), strict=True):
        for one, other in zip(predictor.predict(text, k=2), answers, strict=True):
            assert one[0] == other[0] and one[1] == pytest.approx(other[1], rel=1e-6)


def test_independent_probabilities_step():
    # 1.5 lies on a step of 1/32: sigmoid(1.5).
    answers = dict(FastTextPredictor(model("ova")).predict("good", k=-1))
    assert answers["__label__up"] == pytest.approx(1 / (1 + np.exp(-1.5)) + 1e-5, rel=1e-5)
    assert answers["__label__flat"] == pytest.approx(0.5 + 1e-5, rel=1e-5)


def test_hierarchical_softmax_sums_to_one():
    answers = FastTextPredictor(model("hs")).predict("good bad", k=-1)
    assert sum(x for _, x in answers) == pytest.approx(1, abs=1e-3)


def test_hierarchical_softmax_by_hand():
    """The two rarest join first, then the node 0 with the most frequent, which gets bit 1."""
    file = model("hs")
    hidden = np.array([1, 1])  # of "good bad" and the end of the line
    file.outputs = np.array([[0.5, 0.2], [-0.4, 0.1], [9, 9]], "float32")
    one, root = 1 / (1 + np.exp(-(file.outputs[:2] @ hidden)))
    expected = {"up": root, "down": (1 - root) * one, "flat": (1 - root) * (1 - one)}
    answers = dict(FastTextPredictor(file).predict("good bad", k=-1))
    for label, probability in expected.items():
        assert answers[f"__label__{label}"] == pytest.approx(probability, abs=3e-5)


@pytest.mark.parametrize("loss", ["softmax", "hs", "ns", "ova"])
def test_one_label(loss):
    file = model(loss)
    file.labels, file.label_counts, file.outputs = ["__label__up"], np.array([5]), file.outputs[:1]
    ((label, probability),) = FastTextPredictor(file).predict("good", k=-1)
    assert label == "__label__up" and 0.8 < probability <= 1.0001


def test_word_ngrams_without_buckets_are_none():
    """A header may ask for them; fastText itself has no row to give them."""
    answers = FastTextPredictor(model(word_ngrams=3)).predict("good bad", k=-1)
    assert answers == FastTextPredictor(model()).predict("good bad", k=-1)


def test_wrong_arguments():
    predictor = FastTextPredictor(model())
    with pytest.raises(ValueError, match="one line, without a line break.*text 1, 'a"):
        predictor.predict(["x", "a\nb"])
    with pytest.raises(ValueError, match="`k` must be.*k=0"):
        predictor.predict("a", k=0)
    with pytest.raises(ValueError, match="A text must be a str. Received: text 1, 5"):
        predictor.predict(["x", 5])
    for text in (None, b"good"):
        with pytest.raises(ValueError, match="A text must be a str. Received: text 0"):
            predictor.predict(text)
    for threshold in ("x", float("nan")):
        with pytest.raises(ValueError, match="`threshold` must be a number. Received: threshold="):
            predictor.predict("good", threshold=threshold)
    file = model()
    file.arguments = FastTextArguments(dim=2)
    with pytest.raises(ValueError, match="Only supervised models.*skipgram"):
        FastTextPredictor(file)


@pytest.mark.parametrize("loss", ["softmax", "hs", "ova"])
def test_rows_that_are_not_finite_are_no_answer(loss):
    file = model(loss)
    file.inputs[2] = np.nan
    predictor = FastTextPredictor(file)
    assert predictor.predict("good")[0][0] == "__label__up"
    with pytest.raises(ValueError, match="must be finite. Received: NaN .* for text 1, 'bad'"):
        predictor.predict(["good", "bad"])
    file.outputs[1] = np.inf
    with pytest.raises(ValueError, match="`outputs` must be finite"):
        FastTextPredictor(file)


def test_a_model_without_labels():
    file = model()
    file.labels, file.label_counts, file.outputs = [], np.zeros(0, int), file.outputs[:0]
    with pytest.raises(ValueError, match="must have labels. Received: none"):
        FastTextPredictor(file)
