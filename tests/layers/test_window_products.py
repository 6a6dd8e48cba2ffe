"""Steps as products of matrices, against loops over pairs and against automatic differentiation."""

import keras
import numpy as np
import pytest

from kctx.layers.window_products import (
    cbow_gradients,
    hierarchical_softmax_targets,
    logistic_loss,
    negative_sampling_targets,
    skip_gram_gradients,
    window_mask,
    window_step,
)
from tests.gradients import gradient
from tests.layers.window_loops import by_loops, rows_of

BLOCKS, CENTRES, HALO, WIDTH, NEGATIVES, WORDS = 8, 5, 2, 4, 3, 12
POSITIONS = CENTRES + 2 * HALO


def array(x):
    return keras.ops.convert_to_numpy(keras.ops.stop_gradient(x))


def tensor(x):
    return keras.ops.convert_to_tensor(x)


def test_window_mask():
    mask = array(window_mask(tensor(np.int32([[0, 2, 1]])), tensor(np.int32([[2, 2, 0]])), 5))
    # The first centre stands at 1, the second is alone in its window, the third has none.
    assert mask.astype(int).tolist() == [[[1, 0, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 0]]]


def test_negatives_that_are_the_centre_have_no_weight():
    centres, negatives = np.int32([[1, 2]]), np.int32([[2, 3, 2, 2]])
    positive, total = negative_sampling_targets(tensor(centres), tensor(negatives), 6, "float32")
    assert array(positive).tolist() == [[[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0]]]
    assert array(total).tolist() == [[[1, 0, 1.5, 1.5, 1.5, 1.5], [0, 1, 0, 1.5, 0, 0]]]


def test_signs_of_paths():
    positive, total = hierarchical_softmax_targets(tensor(np.int8([[[1, -1, 0]]])), "float32")
    assert array(positive).tolist() == [[[1, 0, 0]]]
    assert array(total).tolist() == [[[1, 1, 0]]]


def test_the_published_shared_negatives_step():
    """One centre, two words of context, one negative that was drawn twice; rate 0.1."""
    inputs = np.float32([[[0.1, 0.2], [-0.3, 0.4]]])
    outputs = np.float32([[[0.5, -0.1], [0.2, 0.3]]])
    positive, total = np.float32([[[1, 0]]]), np.float32([[[1, 2]]])
    made = skip_gram_gradients(
        *map(tensor, (inputs, outputs, np.ones((1, 1, 2), "float32"), positive, total))
    )
    inputs_by, outputs_by, (scores, *_) = made
    np.testing.assert_allclose(array(scores)[0].T, [[0.03, -0.19], [0.08, 0.06]], atol=1e-7)
    expected = [[-0.011495723, 0.031744316], [0.020499943, -0.061999214]]
    np.testing.assert_allclose(0.1 * array(outputs_by)[0], expected, atol=1e-8)
    expected = [[0.003825455, -0.036124366], [0.006768061, -0.036373306]]
    np.testing.assert_allclose(0.1 * array(inputs_by)[0], expected, atol=1e-8)


def make_step(objective, seed=0, predicted="centres"):
    """A step in which negatives and centres repeat, and some centres have no window."""
    targets, sources = (CENTRES, POSITIONS) if predicted == "centres" else (POSITIONS, CENTRES)
    rng = np.random.default_rng(seed)
    place = np.arange(CENTRES) + HALO
    first = place - rng.integers(0, HALO + 1, (BLOCKS, CENTRES))
    last = place + rng.integers(0, HALO + 1, (BLOCKS, CENTRES))
    none = rng.random((BLOCKS, CENTRES)) < 0.2
    step = {
        "words": rng.integers(0, WORDS, (BLOCKS, POSITIONS)),
        "first": np.where(none, 1, first),
        "last": np.where(none, 0, last),
    }
    rows = targets + NEGATIVES
    if objective == "negative_sampling":
        step["negatives"] = rng.integers(0, WORDS, (BLOCKS, NEGATIVES))
    else:
        step["nodes"] = np.stack([rng.permutation(WORDS)[:rows] for _ in range(BLOCKS)])
        paths = rng.integers(-1, 2, (BLOCKS, targets, rows)).astype("int8")
        if predicted == "centres":
            paths = np.where(none[..., None], np.int8(0), paths)
        step["paths"] = paths
    step = {k: v if v.dtype == np.int8 else v.astype("int32") for k, v in step.items()}
    rates = {
        "input_rates": rng.random((BLOCKS, sources)).astype("float32"),
        "output_rates": rng.random((BLOCKS, rows)).astype("float32"),
    }
    return step | rates


VARIANTS = [
    ("skip_gram", "negative_sampling", True, False),
    ("skip_gram", "hierarchical_softmax", True, False),
    ("cbow", "negative_sampling", True, False),
    ("cbow", "hierarchical_softmax", True, False),
    ("cbow", "negative_sampling", True, True),
    ("cbow", "negative_sampling", False, False),
]
every_variant = pytest.mark.parametrize(
    ("architecture", "objective", "average", "corrected"), VARIANTS
)


@every_variant
def test_step_equals_loops_over_pairs(architecture, objective, average, corrected):
    check_step(architecture, average, corrected, objective, with_sizes=False)


@pytest.mark.parametrize("objective", ["negative_sampling", "hierarchical_softmax"])
def test_a_centre_predicts_the_words_of_its_window(objective):
    check_step("skip_gram", True, False, objective, with_sizes=False, predicted="context")


@pytest.mark.parametrize("corrected", [False, True])
def test_averages_of_inputs_that_are_averages(corrected):
    check_step("cbow", True, corrected, "negative_sampling", with_sizes=True)


def check_step(architecture, average, corrected, objective, with_sizes, predicted="centres"):
    rng, step = np.random.default_rng(1), make_step(objective, predicted=predicted)
    inputs = rng.normal(size=(*step["input_rates"].shape, WIDTH)).astype("float32")
    table = rng.normal(size=(WORDS, WIDTH)).astype("float32")
    sizes = rng.integers(1, 4, (BLOCKS, POSITIONS)).astype("float32") if with_sizes else None
    variable = keras.Variable(table, dtype="float32")
    made, loss, number = window_step(
        {name: tensor(value) for name, value in step.items()},
        tensor(inputs),
        variable,
        architecture,
        5,
        average,
        corrected,
        None if sizes is None else tensor(sizes),
    )
    rows = rows_of(step)
    by_inputs, by_outputs, losses, numbers = by_loops(
        step, inputs, table[rows], architecture, 5, average, corrected, sizes
    )
    np.testing.assert_allclose(array(made), by_inputs, atol=2e-5)
    expected = table.astype("float64")
    np.add.at(expected, rows, step["output_rates"][..., None] * by_outputs)
    np.testing.assert_allclose(array(variable), expected, atol=5e-5)
    # The loss is that of every eighth block; here the first one.
    np.testing.assert_allclose(float(array(loss)), losses[0], rtol=1e-4)
    assert float(array(number)) == numbers[0]


@every_variant
def test_gradients_are_those_of_the_loss(architecture, objective, average, corrected):
    """But for the plain average, whose rows of context get it undivided, as in the tool."""
    rng, step = np.random.default_rng(2), make_step(objective, seed=3)
    if objective == "negative_sampling":
        positive, total = negative_sampling_targets(
            tensor(step["words"][:, HALO : HALO + CENTRES]), tensor(step["negatives"]), 5, "float32"
        )
    else:
        positive, total = hierarchical_softmax_targets(tensor(step["paths"]), "float32")
    mask = window_mask(tensor(step["first"]), tensor(step["last"]), POSITIONS)
    mask = keras.ops.cast(mask, "float32")
    inputs = rng.normal(size=(BLOCKS, POSITIONS, WIDTH)).astype("float32")
    outputs = rng.normal(size=(BLOCKS, positive.shape[-1], WIDTH)).astype("float32")

    def made(x, y):
        if architecture == "skip_gram":
            return skip_gram_gradients(x, y, mask, positive, total)
        return cbow_gradients(x, y, mask, positive, total, average, corrected)

    by_inputs, by_outputs, _ = made(tensor(inputs), tensor(outputs))
    wanted = gradient(lambda y: logistic_loss(*made(tensor(inputs), y)[2]), outputs)
    np.testing.assert_allclose(-array(by_outputs), wanted, atol=5e-5)
    wanted = gradient(lambda x: logistic_loss(*made(x, tensor(outputs))[2]), inputs)
    if (architecture, average, corrected) == ("cbow", True, False):
        assert np.abs(array(by_inputs) + wanted).max() > 0.1
    else:
        np.testing.assert_allclose(-array(by_inputs), wanted, atol=5e-5)
