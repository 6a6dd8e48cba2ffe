"""Questions and contexts to answers."""

import itertools

import numpy as np
import pytest

from tests.tasks.toys import PARTS, assert_alike, first_everywhere, make

QUESTIONS = ["who saw it?", "in what?", "a", "who was good ? " * 20, ""]
CONTEXTS = [
    "Anna  saw é the films, in paris. " * 3,
    "",
    "\U0001f600 paris \x01 中文",
    "a film",
    "the bad film was in paris " * 9,
]


def by_hand(text_model, question, context, stride=128, longest=30):
    """Every candidate of every window, one after the other."""
    inputs, index, offsets, max_context = text_model.preprocessor.spans(
        [question], [context], stride
    )
    # Whatever their number, as many rows: one program is compiled.
    rows = {k: np.repeat(v, [1] * (len(v) - 1) + [33 - len(v)], axis=0) for k, v in inputs.items()}
    logits = text_model.model.predict_on_batch(rows)
    mask = np.asarray(inputs["answer_mask"])
    found, null = [], []
    for row in range(len(index)):
        null.append(float(logits[row, 0].sum()))
        for start, end in itertools.product(range(mask.shape[1]), repeat=2):
            inside = mask[row, start] and mask[row, end] and max_context[row, start]
            if inside and start <= end < start + longest:
                score = float(logits[row, start, 0] + logits[row, end, 1])
                place = int(offsets[row, start, 0]), int(offsets[row, end, 1])
                found.append((score, *place))
    total = np.exp(min(null)) + sum(np.exp(score) for score, _, _ in found)
    best = max((score for score, _, _ in found), default=-np.inf)
    places = {(start, end) for score, start, end in found if score > best - 1e-4} or {(-1, -1)}
    return places, np.exp(best) / total, np.exp(min(null)) / total


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("stride", first_everywhere(2, 128))
def test_by_hand(parts, stride):
    text_model = make("span", parts, max_answer_length=4)
    kept = {"stride": stride, "no_answer_threshold": None}
    answers = text_model.predict(QUESTIONS, CONTEXTS, **kept)
    for question, context, answer in zip(QUESTIONS, CONTEXTS, answers, strict=True):
        places, score, none = by_hand(text_model, question, context, stride, 4)
        start, end = answer["start"], answer["end"]
        assert (start, end) in places
        assert answer["answer"] == (context[start:end] if start >= 0 else "")
        assert answer["no_answer_probability"] == pytest.approx(none, abs=1e-5)
        assert answer["score"] == pytest.approx(score if start >= 0 else none, abs=1e-5)


@pytest.mark.once
def test_no_answer_by_the_threshold():
    text_model = make("span")
    *_, none = by_hand(text_model, QUESTIONS[0], CONTEXTS[0])
    best, answers = text_model.predict(QUESTIONS[0], CONTEXTS[0], no_answer_threshold=None)[0], {}
    # The logarithm of the ratio is the difference of the logits.
    margin = np.log(none / best["score"])
    for threshold in (margin - 0.01, margin + 0.01):
        (answers[threshold],) = text_model.predict(
            QUESTIONS[0], CONTEXTS[0], no_answer_threshold=float(threshold)
        )
    refused, given = answers.values()
    assert refused["answer"] == "" and refused["start"] == refused["end"] == -1
    assert refused["score"] == refused["no_answer_probability"] == pytest.approx(none, abs=1e-5)
    assert given == best


def test_answers_do_not_depend_on_the_batch():
    text_model = make("span", stride=3)
    # No text twice in a context: of equal scores either may be the greater by a rounding.
    words = np.random.default_rng(0).choice("the bad film was in paris anna saw é".split(), (2, 50))
    contexts = [" ".join(words[0]), *CONTEXTS[1:4], " ".join(words[1])]
    answers = text_model.predict(QUESTIONS, contexts)
    for batch_size in (1, 3):
        assert_alike(text_model.predict(QUESTIONS, contexts, batch_size=batch_size), answers)
    pairs = list(zip(QUESTIONS, contexts, strict=True))
    assert_alike(list(text_model.predict_stream(iter(pairs), batch_size=2)), answers)
    named = [{"question": question, "context": context} for question, context in pairs]
    assert_alike(list(text_model.predict_stream(named)), answers)
    assert_alike(text_model.predict(contexts=contexts, questions=QUESTIONS), answers)
    assert text_model.predict([], []) == []


@pytest.mark.once
def test_errors():
    text_model = make("span")
    with pytest.raises(TypeError, match="span needs `contexts`"):
        text_model.predict(["a"])
    with pytest.raises(ValueError, match="`contexts` must be as many as `questions`: 1. Rec.* 2"):
        text_model.predict(["a"], ["b", "c"])
    with pytest.raises(TypeError, match="`questions` was given twice"):
        text_model.predict(["a"], ["b"], questions=["c"])
    with pytest.raises(ValueError, match="`max_answer_length` must be an integer of at least 1"):
        text_model.predict(["a"], ["b"], max_answer_length=0)
    with pytest.raises(
        ValueError, match="`stride` must be an integer of at least 1. Received: stride=0"
    ):
        text_model.predict(["a"], ["b"], stride=0)
    with pytest.raises(ValueError, match=r"Request 1 must have the parts question, context"):
        list(text_model.predict_stream([("a", "b"), ("a",)]))
    with pytest.raises(ValueError, match=r"Request 0 must have the parts .*'title'"):
        list(text_model.predict_stream([{"question": "a", "context": "b", "title": "c"}]))


@pytest.mark.once
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_answer_length", 2.5),
        ("stride", "x"),
        ("question_length", 0),
        ("no_answer_threshold", "x"),
        ("no_answer_threshold", float("nan")),
    ],
)
def test_options_that_are_none(option, value):
    with pytest.raises(ValueError, match=f"`{option}` must be .* Received: {option}="):
        make("span").predict("who ?", "anna", **{option: value})


@pytest.mark.once
def test_the_longest_answer_takes_no_memory():
    text_model = make("span")
    expected = text_model.predict("who ?", "anna saw the film", max_answer_length=14)
    assert text_model.predict("who ?", "anna saw the film", max_answer_length=10**30) == expected
