"""Every fast path agrees with its plain twin, in values and in gradients."""

import sys

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import Dense, Dropout
from kctx.layers.dropout import random_mask


def values_and_gradients(function, arrays, cotangent):
    """function(*arrays), and the gradients of its sum with `cotangent`, as float32 arrays."""
    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        tensors = [tf.constant(array) for array in arrays]
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            result = function(*tensors)
            total = tf.reduce_sum(tf.cast(result, "float32") * cotangent)
        gradients = tape.gradient(total, tensors)
    elif backend == "jax":
        import jax

        def total(*tensors):
            result = function(*tensors)
            return (result.astype("float32") * cotangent).sum(), result

        tensors = [jax.numpy.asarray(array) for array in arrays]
        places = tuple(range(len(arrays)))
        gradients, result = jax.jit(jax.grad(total, places, has_aux=True))(*tensors)
    else:
        import torch

        tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
        result = function(*tensors)
        (result.float() * torch.tensor(cotangent)).sum().backward()
        gradients = [tensor.grad for tensor in tensors]
    return [
        ops.convert_to_numpy(ops.cast(ops.stop_gradient(tensor), "float32"))
        for tensor in (result, *gradients)
    ]


def normal(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype("float32")


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-5), ("mixed_bfloat16", 2e-2), ("bfloat16", 2e-2)]
)
def test_dense_equals_keras_dense(dtype, tolerance):
    layers = Dense(24, dtype=dtype), keras.layers.Dense(24, dtype=dtype)
    kernel, bias, x = normal(40, 24), normal(24), normal(56, 40)
    for layer in layers:
        layer.build((None, 40))
        layer.set_weights([kernel, bias])

    def through(layer):
        # The weights are the layer's own; gradients with respect to them come from stateless use.
        def call(x, kernel, bias):
            outputs, _ = layer.stateless_call([kernel, bias], [], x)
            return outputs

        return call

    ours, theirs = (
        values_and_gradients(through(layer), [x, kernel, bias], normal(56, 24)) for layer in layers
    )
    for mine, plain in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, plain, atol=tolerance * np.abs(plain).max())


@pytest.mark.skipif(keras.config.backend() != "torch", reason="the products are torch's")
@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_products_of_either_library(onednn, dtype, tolerance, monkeypatch):
    """Whichever is the faster on this machine."""
    import torch

    from kctx.layers import fast_product

    if onednn and not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    if onednn and "AVX512" not in torch.backends.cpu.get_cpu_capability():
        pytest.skip("here oneDNN is never taken, and has no bfloat16 product")
    monkeypatch.setattr(fast_product, "_onednn_is_faster", lambda: onednn)
    arrays = [normal(2, 7, 40), normal(40, 24), normal(24)]

    def product(*parts):
        x, kernel, bias = (ops.cast(part, dtype) for part in parts)
        with torch.no_grad():
            still = fast_product.product(x, kernel, bias)
        found = fast_product.product(x, kernel, bias)
        torch.testing.assert_close(found.detach(), still)
        return found

    found = values_and_gradients(product, arrays, normal(2, 7, 24))
    expected = values_and_gradients(
        lambda x, kernel, bias: ops.matmul(x, kernel) + bias, arrays, normal(2, 7, 24)
    )
    for mine, plain in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, plain, atol=tolerance * np.abs(plain).max())


def test_dense_takes_any_rank_and_no_bias():
    layer = Dense(3, use_bias=False)
    x = normal(2, 5, 4)
    expected = x @ ops.convert_to_numpy((layer(x), layer.kernel)[1])
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x[0])), expected[0], atol=1e-5)
    assert layer(x[0, :0]).shape == (0, 3)


MASKS = {
    "none": None,
    "padding": np.arange(6) < np.array([6, 4, 0])[:, None, None, None],  # (B, 1, 1, S)
    "all": np.ones((3, 1, 1, 6), bool),
    "causal": np.tril(np.ones((5, 6), bool)),
    "heads": np.random.default_rng(0).random((3, 2, 5, 6)) < 0.4,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("bfloat16", 3e-2)])
def test_attention_equals_the_table_of_scores(mask, dtype, tolerance, monkeypatch):
    module = sys.modules["kctx.layers.attention"]
    fast, calls = module.attention, []
    arrays = [normal(3, 5, 2, 4), normal(3, 6, 2, 4), normal(3, 6, 2, 4)]
    mask = MASKS[mask]

    def through(query, key, value):
        parts = (ops.cast(x, dtype) for x in (query, key, value))
        given = None if mask is None else ops.convert_to_tensor(mask)
        return module.dot_product_attention(*parts, given)

    def counted(*arguments):
        calls.append(fast(*arguments))
        return calls[-1]

    monkeypatch.setattr(module, "attention", counted)
    ours = values_and_gradients(through, arrays, normal(3, 5, 2, 4))
    assert all((call is None) == (keras.config.backend() != "torch") for call in calls) and calls
    monkeypatch.setattr(module, "attention", lambda *arguments: None)
    plain = values_and_gradients(through, arrays, normal(3, 5, 2, 4))
    for mine, expected in zip(ours, plain, strict=True):
        assert np.isfinite(mine).all()
        np.testing.assert_allclose(mine, expected, atol=tolerance * np.abs(expected).max())


@pytest.mark.skipif(keras.config.backend() != "torch", reason="tracing is torch's")
def test_a_traced_attention_keeps_its_mask():
    """Though it was traced with a mask that hides nothing."""
    import torch

    from kctx.layers.attention import dot_product_attention

    arrays = [torch.tensor(normal(3, 5, 2, 4)) for _ in range(3)]
    everything = torch.ones((3, 1, 1, 5), dtype=torch.bool)
    traced = torch.jit.trace(dot_product_attention, (*arrays, everything))
    mask = torch.arange(5) < torch.tensor([5, 2, 0])[:, None, None, None]
    expected = dot_product_attention(*arrays, mask)
    torch.testing.assert_close(traced(*arrays, mask), expected)
    assert (expected - dot_product_attention(*arrays)).abs().max() > 0.1


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_mask_drops_the_rate_and_neighbours_are_independent(rate):
    seed = ops.convert_to_tensor(np.array([11, 2], dtype="int32"))
    shape = ops.ones((300, 401)).shape
    kept = ops.convert_to_numpy(random_mask(seed, shape, round(rate * 2**16))).astype("float64")
    deviation = np.sqrt(rate * (1 - rate))
    assert abs(kept.mean() - (1 - rate)) < 5 * deviation / np.sqrt(kept.size)
    for axis in (0, 1):
        spread = kept.mean(axis).std() * np.sqrt(kept.shape[axis]) / deviation
        assert 0.8 < spread < 1.2
    flat = kept.ravel()
    for lag in (1, 2, 4, 401):
        assert abs(np.corrcoef(flat[lag:], flat[:-lag])[0, 1]) < 5 / np.sqrt(kept.size)


def test_dropout_keeps_the_mean_and_is_new_at_each_call_and_fixed_by_the_seed():
    x = np.ones((200, 300), "float32")
    layer, twin = Dropout(0.1, seed=5), Dropout(0.1, seed=5)
    first, second = (ops.convert_to_numpy(layer(x, training=True)) for _ in range(2))
    assert abs(first.mean() - 1) < 0.01
    np.testing.assert_allclose(np.unique(first), [0, 1 / 0.9], rtol=1e-4)
    assert 0.15 < np.mean(first != second) < 0.21  # 2 · 0.1 · 0.9
    np.testing.assert_array_equal(ops.convert_to_numpy(twin(x, training=True)), first)
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(x, training=False)), x)


def test_dropout_gradient_is_the_mask():
    x, weights = normal(30, 50), normal(30, 50)
    layer = Dropout(0.3, seed=1)
    if keras.config.backend() == "jax":
        state = [variable.value for variable in layer.non_trainable_variables]

        def call(x):
            return layer.stateless_call([], state, x, training=True)[0]
    else:

        def call(x):
            return layer(x, training=True)

    result, gradient = values_and_gradients(call, [x], weights)
    np.testing.assert_allclose(gradient, result / x * weights, rtol=1e-4, atol=1e-6)
