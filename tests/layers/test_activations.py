"""Activations at values known from the normal distribution."""

import numpy as np
import pytest
from keras import ops

from kctx.layers import gelu_erf, gelu_tanh, get_activation

X = np.array([-3, -1, -0.5, 0, 0.5, 1, 2.7, 3], "float32")
# x·Φ(x), Φ from a table of the normal distribution: Φ(0.5)=0.6914625, Φ(1)=0.8413447,
# Φ(2.7)=0.9965330, Φ(3)=0.9986501.
ERF = [-0.0040497, -0.1586553, -0.1542688, 0, 0.3457312, 0.8413447, 2.6906392, 2.9959503]
# x/2·(1 + tanh(√(2/π)·(x + 0.044715·x³)))
TANH = [-0.0036374, -0.1588080, -0.1542860, 0, 0.3457140, 0.8411920, 2.6911124, 2.9963626]


def test_gelu_erf():
    np.testing.assert_allclose(gelu_erf(ops.convert_to_tensor(X)), ERF, atol=2e-6)


def test_gelu_tanh():
    np.testing.assert_allclose(gelu_tanh(ops.convert_to_tensor(X)), TANH, atol=2e-6)
    inside = 0.7978845608 * (X + 0.044715 * X**3)
    np.testing.assert_allclose(
        gelu_tanh(ops.convert_to_tensor(X)), X / 2 * (1 + np.tanh(inside)), atol=1e-6
    )


def test_the_two_differ_by_what_is_documented():
    x = ops.linspace(-6.0, 6.0, 20001)
    difference = np.abs(ops.convert_to_numpy(gelu_erf(x) - gelu_tanh(x)))
    assert 4.6e-4 < difference.max() < 4.8e-4
    assert abs(abs(ops.convert_to_numpy(x)[difference.argmax()]) - 2.7) < 0.1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gelu_erf", ERF),
        ("gelu_tanh", TANH),
        ("relu", np.maximum(X, 0)),
        ("tanh", np.tanh(X)),
        ("linear", X),
    ],
)
def test_by_name(name, expected):
    np.testing.assert_allclose(get_activation(name)(ops.convert_to_tensor(X)), expected, atol=2e-6)


def test_callables_pass():
    assert get_activation(ops.exp) is ops.exp


@pytest.mark.parametrize("name", ["gelu", "nothing", None])
def test_other_names_are_refused(name):
    with pytest.raises(ValueError, match=f"`activation` must be one of .*gelu_erf.* {name!r}"):
        get_activation(name)
