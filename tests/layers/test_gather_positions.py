"""Gathering against numpy."""

import numpy as np
import pytest
from keras import ops

from kctx.layers import GatherPositions
from tests.gradients import gradient

X = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")
POSITIONS = np.array([[0, 4], [2, 2], [3, 0]], "int32")


def test_like_numpy():
    made = GatherPositions()(X, POSITIONS)
    expected = np.take_along_axis(X, POSITIONS[..., None], axis=1)
    np.testing.assert_array_equal(ops.convert_to_numpy(made), expected)


@pytest.mark.parametrize(("rows", "count"), [(0, 2), (3, 0)])
def test_nothing_to_gather(rows, count):
    made = GatherPositions()(X[:rows], np.zeros((rows, count), "int32"))
    assert made.shape == (rows, count, 4)


def test_gradient_lands_on_the_gathered_rows():
    def total(x):
        return ops.sum(GatherPositions()(x, ops.convert_to_tensor(POSITIONS)))

    expected = np.zeros_like(X)
    for row, position in enumerate(POSITIONS):
        for one in position:
            expected[row, one] += 1  # position 2 of row 1 is there twice
    np.testing.assert_array_equal(gradient(total, X), expected)


@pytest.mark.parametrize("position", [5, -1])
def test_positions_do_not_reach_into_another_row(position):
    positions = POSITIONS.copy()
    positions[1, 0] = position
    with pytest.raises(ValueError, match=f"`mask_positions` must lie within.*{position}"):
        GatherPositions()(X, positions)
