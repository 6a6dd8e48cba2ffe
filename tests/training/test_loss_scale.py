import keras
import numpy as np
import pytest

from kctx.training import AdamW, LossScale, setup


def apply(optimizer, gradient, variable):
    gradient = keras.ops.convert_to_tensor([np.float32(gradient)])
    if keras.config.backend() != "jax":
        return optimizer.apply([gradient], [variable])
    if not optimizer.built:
        optimizer.build([variable])
    values = [v.value for v in optimizer.variables]
    new, state = optimizer.stateless_apply(values, [gradient], [variable.value])
    for v, value in zip([variable, *optimizer.variables], [*new, *state], strict=True):
        v.assign(value)


def test_overflow_skips_the_step_and_halves_the_scale():
    variable = keras.Variable([1.0], name="kernel")
    optimizer = LossScale(AdamW(0.1, weight_decay=0.0), initial_scale=8.0)
    for gradient, scale, iterations in ((np.inf, 4.0, 0), (np.nan, 2.0, 0), (2.0, 2.0, 1)):
        apply(optimizer, gradient, variable)
        assert float(optimizer.dynamic_scale) == scale
        assert int(optimizer.iterations) == iterations
        assert (float(variable.value[0]) == 1.0) == (iterations == 0)
    # the gradient that arrives is unscaled: 2 / 2 = 1, first moment 0.1
    momentum = optimizer.inner_optimizer.moments_of(variable)[0]
    np.testing.assert_allclose(keras.ops.convert_to_numpy(momentum), [0.1], rtol=1e-6)


@pytest.mark.parametrize("values", [[[np.inf], [1.0]], [[1.0], [np.inf]]])
def test_overflow_in_a_repeated_row_of_a_sparse_gradient_is_seen(values):
    if keras.config.backend() != "tensorflow":
        pytest.skip("only TensorFlow has sparse gradients")
    import tensorflow as tf

    optimizer = LossScale(AdamW(0.1))
    gradient = tf.IndexedSlices(tf.constant(values), tf.constant([1, 1]), (2, 1))
    assert not bool(optimizer.check_finite([gradient]))


def test_setup_wraps_for_float16_only():
    assert isinstance(setup(dtype="mixed_float16").scaled(AdamW(0.1)), LossScale)
    assert isinstance(setup(dtype="mixed_bfloat16").scaled(AdamW(0.1)), AdamW)


def test_serialises():
    optimizer = LossScale(AdamW(0.5), initial_scale=8.0)
    again = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(again) is LossScale and again.get_config() == optimizer.get_config()
