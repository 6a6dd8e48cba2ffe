"""Questions and contexts to rows, with offsets into the contexts."""

import numpy as np
import pytest
import tensorflow as tf

from tests.preprocessors.test_word_windows import (
    CLS,
    MAKERS,
    PAD,
    SEP,
    lists,
    make,
    make_subwords,
    make_words,
)

pytestmark = pytest.mark.once


def texts_of(offsets, context):
    return [context[start:end] for start, end in lists(offsets) if start >= 0]


def test_by_hand():
    inputs, index, offsets, max_context = make().spans(["a b", "c"], ["Ax  é b", ""])
    assert lists(inputs["token_ids"]) == [
        [CLS, 5, 6, SEP, 5, 11, 9, 6, SEP],
        [CLS, 7, SEP, SEP, PAD, PAD, PAD, PAD, PAD],
    ]
    assert lists(inputs["segment_ids"])[0] == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert lists(inputs["answer_mask"]) == [[False] * 4 + [True] * 4 + [False], [False] * 9]
    assert lists(offsets[0]) == [[-1, -1]] * 4 + [[0, 1], [1, 2], [4, 5], [6, 7]] + [[-1, -1]]
    assert lists(max_context) == lists(inputs["answer_mask"])
    assert lists(index) == [0, 1]
    assert offsets.dtype == tf.int32 and index.dtype == tf.int32


def test_windows_are_those_of_the_reference():
    """Golden: 10 tokens of context, room for 4, stride 2."""
    context = "a b c d e f a b c d"
    inputs, index, offsets, max_context = make(8).spans(["f"], [context], stride=2)
    assert lists(index) == [0] * 4
    assert [texts_of(row, context) for row in offsets] == [
        "a b c d".split(),
        "c d e f".split(),
        "e f a b".split(),
        "a b c d".split(),
    ]
    # min(left, right) is 0 1 1 0 in each window; of two alike the first counts.
    chosen = [
        row[row_mask].tolist()
        for row, row_mask in zip(max_context.numpy(), inputs["answer_mask"].numpy(), strict=True)
    ]
    assert chosen == [
        [True, True, True, False],
        [False, True, True, False],
        [False, True, True, False],
        [False, True, True, True],
    ]
    by_windows, _, starts = make(8).windows([context], 2, ["f"])
    np.testing.assert_array_equal(inputs["token_ids"], by_windows["token_ids"])
    assert starts.tolist() == [0, 2, 4, 6]


def test_windows_overlap_whatever_the_stride():
    context = "a b c d e f a b c d"
    _, _, offsets, _ = make(8).spans(["f"], [context], stride=100)
    assert [texts_of(row, context) for row in offsets] == [
        "a b c d".split(),
        "d e f a".split(),
        "a b c d".split(),
    ]


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("stride", [1, 3, 100])
def test_every_token_has_one_best_window(kind, stride):
    contexts = ["a b cx  axxx zzz é " * size for size in (0, 1, 2, 9)]
    questions = ["a b", "", "a b c d e f " * 9, "c"]
    preprocessor = MAKERS[kind](length=11)
    inputs, index, offsets, max_context = preprocessor.spans(questions, contexts, stride)
    mask = inputs["answer_mask"].numpy()
    assert mask.shape[1] <= 11
    assert (max_context.numpy() <= mask).all()
    assert not mask[:, 0].any()
    assert ((offsets.numpy() >= 0).all(-1) == mask).all()
    for number, context in enumerate(contexts):
        rows = [row for row, found in enumerate(index.numpy()) if found == number]
        assert rows
        best = [lists(offsets[row][max_context[row]]) for row in rows]
        best = [tuple(pair) for row in best for pair in row]
        assert len(best) == len(set(best))
        assert {x for a, b in best for x in range(a, b)} == {
            place for place, letter in enumerate(context) if letter.strip()
        }


def test_a_long_question_leaves_half_of_the_row():
    inputs = make(13).spans(["a " * 50], ["b " * 50], stride=5)[0]
    assert lists(inputs["token_ids"])[0] == [CLS, *[5] * 5, SEP, *[6] * 5, SEP]
    inputs = make(13).spans(["a " * 50], ["b " * 50], stride=5, question_length=2)[0]
    assert lists(inputs["token_ids"])[0] == [CLS, 5, 5, SEP, *[6] * 8, SEP]


def test_static_vectors_by_hand():
    inputs, _, offsets, _ = make_words().spans(["a"], ["b zz\tc"])
    assert lists(inputs["token_ids"]) == [[1, 2, 1, 3, 1, 4]]
    assert lists(inputs["answer_mask"]) == [[False] * 3 + [True] * 3]
    assert lists(offsets[0])[3:] == [[0, 1], [2, 4], [5, 6]]
    ids = make_subwords().spans(["a"], ["b c"])[0]["subword_ids"].numpy()[0]
    assert ids[:, 0].tolist() == [0, 1, 0, 2, 3]
    assert not ids[0].any() and not ids[2].any()


@pytest.mark.parametrize("kind", MAKERS)
def test_offsets_are_code_points(kind):
    context = "\U0001f600 a é\u0301 日本 \ud800 b"
    _, _, offsets, _ = MAKERS[kind](length=40).spans(["a"], [context])
    found = texts_of(offsets[0], context)
    assert "a" in found and found[-1] == "b"


def test_invalid_bytes_count_as_one():
    _, _, offsets, _ = make().spans([b"a"], [b"\xff a b"])
    assert texts_of(offsets[0], b"\xff a b".decode("utf-8", "replace"))[-2:] == ["a", "b"]


@pytest.mark.parametrize("kind", MAKERS)
def test_same_in_a_graph(kind):
    preprocessor = MAKERS[kind](length=10)
    questions, contexts = tf.constant(["a b", "c", ""]), tf.constant(["a b c " * 9, "", "d"])
    spec = tf.TensorSpec([None], tf.string)
    graph = tf.function(
        lambda q, c: preprocessor.spans(q, c, 3), input_signature=[spec, spec], autograph=False
    )
    expected = preprocessor.spans(questions, contexts, 3)
    for made, wanted in zip(
        tf.nest.flatten(graph(questions, contexts)), tf.nest.flatten(expected), strict=True
    ):
        np.testing.assert_array_equal(made, wanted)


@pytest.mark.parametrize("kind", MAKERS)
def test_no_questions(kind):
    made = MAKERS[kind]().spans([], [])
    assert {value.shape[0] for value in tf.nest.flatten(made)} == {0}


def test_static_pairs():
    made = make_words(7)(["a b c a b c", "a", ""], ["b", "c c c c c c c", ""])
    assert lists(made["token_ids"]) == [
        [1, 2, 3, 4, 2, 1, 3],
        [1, 2, 1, 4, 4, 4, 4],
        [1, 1, 0, 0, 0, 0, 0],
    ]
    with pytest.raises(ValueError, match="equal in number. Received: 1 and 2"):
        make_words()(["a"], ["b", "c"])


def test_errors():
    with pytest.raises(ValueError, match="`questions` and `contexts` must be equal.*1 and 2"):
        make().spans(["a"], ["b", "c"])
    with pytest.raises(ValueError, match="`stride` must be at least 1. Received: 0"):
        make().spans(["a"], ["b"], stride=0)
    with pytest.raises(ValueError, match="`question_length` must be at least 1. Received: 0"):
        make().spans(["a"], ["b"], question_length=0)
    with pytest.raises(ValueError, match="`sequence_length` must exceed 3.*Received: 3"):
        make(3).spans(["a"], ["b"])
