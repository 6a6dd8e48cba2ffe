"""The fast recursion against Keras' own."""

import numpy as np
import pytest
from keras import ops

from kctx.layers.scan_states import plain_scan_states, scan_states
from tests.gradients import gradient


def step(state, inputs, constants):
    x, scale = inputs
    return ops.tanh(state * scale + x + constants[0])


@pytest.mark.parametrize("reverse", [False, True])
def test_equal_to_the_plain_form(reverse):
    rng = np.random.default_rng(0)
    x, scale = rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 2, 1))
    first, constant = rng.normal(size=(2, 3)), rng.normal(size=3)
    x, scale, first, constant = (y.astype("float32") for y in (x, scale, first, constant))
    found, wanted = [], []
    for scan, results in ((scan_states, found), (plain_scan_states, wanted)):

        def states(x, scan=scan):
            inputs = (ops.convert_to_tensor(x), ops.convert_to_tensor(scale))
            start, constants = ops.convert_to_tensor(first), (ops.convert_to_tensor(constant),)
            return scan(step, start, inputs, constants, reverse=reverse)

        results.append(ops.convert_to_numpy(states(x)))
        results.append(gradient(lambda x, f=states: ops.sum(f(x)[0] + ops.square(f(x))[2]), x))
    assert found[0].shape == (5, 2, 3)
    state = first
    order = range(5)[::-1] if reverse else range(5)
    for i in order:
        state = np.tanh(state * scale[i] + x[i] + constant)
        np.testing.assert_allclose(found[0][i], state, atol=1e-6)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
