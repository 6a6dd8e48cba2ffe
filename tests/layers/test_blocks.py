"""Feed-forward network, block, masked-LM head and output bias against their formulas in numpy."""

import numpy as np
import pytest
from keras import ops

from kctx.layers import FeedForward, MaskedLMHead, OutputBias, PostNormBlock

X = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")


def built(layer, seed=1):
    layer.build((None, None, 8))
    rng = np.random.default_rng(seed)
    layer.set_weights([rng.normal(size=w.shape, scale=0.5) for w in layer.get_weights()])
    return layer


def norm(layer, x):
    gamma, beta = layer.get_weights()
    centred = x - x.mean(-1, keepdims=True)
    return gamma * centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) + beta


def feed_forward(layer, x):
    (first, first_bias), (second, second_bias) = (
        layer.inner.get_weights(),
        layer.outer.get_weights(),
    )
    return np.maximum(x @ first + first_bias, 0) @ second + second_bias


def test_feed_forward():
    layer = built(FeedForward(16, "relu"))
    np.testing.assert_allclose(ops.convert_to_numpy(layer(X)), feed_forward(layer, X), atol=1e-5)


def test_block_norms_after_each_sum():
    layer = built(PostNormBlock(2, 16, activation="relu"))
    x = norm(layer.attention_norm, X + ops.convert_to_numpy(layer.attention(X)))
    expected = norm(layer.feed_forward_norm, x + feed_forward(layer.feed_forward, x))
    np.testing.assert_allclose(ops.convert_to_numpy(layer(X)), expected, atol=2e-5)


def test_block_dropout_only_in_training():
    layer = built(PostNormBlock(2, 16, dropout=0.5, attention_dropout=0.0))
    still, training = (ops.convert_to_numpy(layer(X, training=mode)) for mode in (False, True))
    assert np.abs(still - training).max() > 1e-3
    none = built(PostNormBlock(2, 16, dropout=0.0, attention_dropout=0.0))
    np.testing.assert_allclose(ops.convert_to_numpy(none(X, training=True)), still, atol=1e-6)


def test_masked_lm_head():
    layer = built(MaskedLMHead("relu"))
    kernel, bias = layer.transform.get_weights()
    expected = norm(layer.transform_norm, np.maximum(X @ kernel + bias, 0))
    np.testing.assert_allclose(ops.convert_to_numpy(layer(X)), expected, atol=1e-5)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "float16"])
def test_output_bias_stays_in_float32(policy):
    layer = OutputBias(dtype=policy)
    layer.build((None, None, 8))
    layer.set_weights([np.arange(8)])
    assert layer.bias.dtype == "float32"
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(X)), X + np.arange(8, dtype="float32"))


@pytest.mark.parametrize("make", [FeedForward, lambda i, a: PostNormBlock(2, i, activation=a)])
def test_unknown_activation(make):
    with pytest.raises(ValueError, match=r"`activation` must be one of .*'gelu'"):
        make(16, "gelu")
