"""Multiple choice and similarity."""

import keras
import numpy as np
import pytest

from kctx import presets
from tests.tasks.toys import PARTS, assert_alike, first_everywhere, make

CONTEXTS = ["anna saw the film .", "", "who was in paris ? " * 9]
CHOICES = [["good", "bad film", "a"], ["é"], ["the film was good " * 9, "中文"]]


@pytest.mark.parametrize("parts", PARTS)
def test_choices(parts):
    text_model = make("multiple_choice", parts)
    answers = text_model.predict(CONTEXTS, CHOICES)
    for context, choices, answer in zip(CONTEXTS, CHOICES, answers, strict=True):
        # Each choice by itself, as a batch of one question with one choice.
        logits = []
        for choice in choices:
            inputs = text_model.preprocessor([context], [choice])
            inputs = {key: np.asarray(value)[:, None] for key, value in inputs.items()}
            inputs["choice_mask"] = np.ones((1, 1), bool)
            logits.append(float(text_model.model.predict_on_batch(inputs)[0, 0]))
        scores = np.exp(logits) / np.exp(logits).sum()
        assert answer["scores"] == pytest.approx(scores.tolist(), abs=1e-5)
        assert answer["index"] == int(scores.argmax())
        assert answer["choice"] == choices[answer["index"]]
    assert_alike(text_model.predict(CONTEXTS, CHOICES, batch_size=1), answers)
    assert_alike(text_model.predict(CONTEXTS[0], CHOICES[0]), answers[:1])
    assert_alike(text_model.predict(CONTEXTS[1], ["é"]), answers[1:2])
    assert text_model.predict([], []) == []


@pytest.mark.parametrize("parts", PARTS)
def test_similarity(parts):
    text_model = make("similarity", parts)
    first, second = ["anna saw paris", "", "a"], ["a film", "the", "in paris , " * 9]
    answers = text_model.predict(first, second)
    for one, other, answer in zip(first, second, answers, strict=True):
        vectors = text_model.embed([one, other], normalize=True)
        assert answer["score"] == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    assert_alike(text_model.predict(first, second, batch_size=2), answers)
    assert text_model.predict("anna", "anna")[0]["score"] == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    "task", first_everywhere("tagging", "span", "multiple_choice", "similarity")
)
def test_saved_and_loaded(tmp_path, task):
    options = {"span": {"stride": 3, "no_answer_threshold": None}}.get(task, {})
    text_model = make(task, **options)
    text_model.save(tmp_path / "p")
    keras.backend.clear_session()
    loaded = presets.load(tmp_path / "p")
    assert loaded.task == task and loaded.options == options
    assert all(f"{key}={value!r}" in loaded.describe() for key, value in options.items())
    requests = {
        "tagging": [["anna saw paris " * 9, "a"]],
        "span": [["who", "a"], ["anna saw paris " * 9, "a"]],
        "multiple_choice": [CONTEXTS, CHOICES],
        "similarity": [["a"], ["anna"]],
    }[task]
    assert_alike(loaded.predict(*requests), text_model.predict(*requests), 1e-6)


@pytest.mark.once
def test_errors(tmp_path):
    text_model = make("multiple_choice")
    with pytest.raises(TypeError, match=r"`choices\[1\]` must be a list of one text or more.*\[\]"):
        text_model.predict(["a", "b"], [["c"], []])
    with pytest.raises(TypeError, match=r"`choices\[0\]` must be a list of .* Received: 'cd'"):
        text_model.predict(["a"], ["cd"])
    with pytest.raises(TypeError, match=r"`choices\[0\]\[1\]` must be a str. Received: 3"):
        text_model.predict(["a"], [["c", 3]])
    with pytest.raises(ValueError, match=r'`choices\[0\]` must not hold ""'):
        text_model.predict(["a"], [["c", ""]])
    with pytest.raises(ValueError, match=r"Options of similarity are: none. Received: top_k"):
        presets.save(tmp_path / "p", *_parts(make("similarity")), options={"top_k": 3})
    with pytest.raises(ValueError, match="`labels` belong to classification and tagging only"):
        presets.save(tmp_path / "p", *_parts(text_model), labels=["a"])
    with pytest.raises(ValueError, match="`options` belong to a task"):
        presets.save(tmp_path / "p", text_model.encoder, options={"top_k": 3})
    assert list(tmp_path.iterdir()) == []


def _parts(text_model):
    return text_model.model, text_model.preprocessor
