"""Pooling by hand."""

import numpy as np
import pytest
from keras import ops

from kctx.layers import Pooling
from tests.gradients import gradient

X = np.array(
    [[[1, -2], [3, -4], [100, 100]], [[-5, 6], [7, 8], [9, -10]], [[1, 1], [2, 2], [3, 3]]],
    "float32",
)
MASK = np.array([[True, True, False], [True, True, True], [False, False, False]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("cls", [[1, -2], [-5, 6], [1, 1]]),
        ("mean", [[2, -3], [11 / 3, 4 / 3], [0, 0]]),
        ("max", [[3, -2], [9, 8], [0, 0]]),
    ],
)
def test_kinds(kind, expected):
    made = Pooling(kind)(X, MASK)
    np.testing.assert_allclose(ops.convert_to_numpy(made), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["cls", "mean", "max"])
def test_without_mask_all_are_real(kind):
    one, other = Pooling(kind)(X), Pooling(kind)(X, np.ones_like(MASK))
    np.testing.assert_array_equal(ops.convert_to_numpy(one), ops.convert_to_numpy(other))


@pytest.mark.parametrize("kind", ["mean", "max"])
def test_padding_gets_no_gradient(kind):
    layer = Pooling(kind)

    def total(x):
        return ops.sum(ops.square(layer(x, ops.convert_to_tensor(MASK)) + 1))

    made = gradient(total, X)
    assert np.isfinite(made).all()
    assert (made[~MASK] == 0).all() and made[MASK].any()


def test_mean_in_half_precision_keeps_digits():
    """4,096 terms of 1 and a mean of exactly 1: summed in float16 they would stop at 2,048."""
    made = Pooling("mean", dtype="float16")(np.ones((1, 4096, 1), "float16"))
    assert float(made[0, 0]) == 1.0


def test_other_kinds_are_refused():
    with pytest.raises(ValueError, match=r'`kind` must be "cls", "mean" or "max".*\'sum\''):
        Pooling("sum")
