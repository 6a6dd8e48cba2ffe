"""Predictions of supervised fastText models, computed by hand."""

import numpy as np
import pytest

from kctx.convert import FastTextArguments, FastTextFile
from kctx.vectors import FastTextPredictor
from kctx.vectors.fasttext_predictor import huffman_tree

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


def test_tree():
    # The two rarest join first, then the node 3 with the most frequent.
    assert huffman_tree([5, 3, 1]).tolist() == [[2, 1], [3, 0]]
    assert huffman_tree([4]).tolist() == []


def test_wrong_arguments():
    predictor = FastTextPredictor(model())
    with pytest.raises(ValueError, match="one line, without a line break.*text 1, 'a"):
        predictor.predict(["x", "a\nb"])
    with pytest.raises(ValueError, match="`k` must be.*k=0"):
        predictor.predict("a", k=0)
    file = model()
    file.arguments = FastTextArguments(dim=2)
    with pytest.raises(ValueError, match="Only supervised models.*skipgram"):
        FastTextPredictor(file)
