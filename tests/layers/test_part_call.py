"""Parts of a layer are called as Keras would, where Keras would do more than call them."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import Dense, PostNormBlock
from kctx.layers.part_call import call_part


class Whole(keras.layers.Layer):
    """A layer with one part."""

    def __init__(self, part, **kwargs):
        super().__init__(**kwargs)
        self.part = part

    def call(self, x):
        return call_part(self, self.part, x)


class Noted(keras.layers.Dense):
    """Notes whether `Layer.__call__` was passed."""

    passed = 0

    def __call__(self, *args, **kwargs):
        self.passed += 1
        return super().__call__(*args, **kwargs)


def whole_with(dtype=None, part_dtype=None, **arguments):
    """A `Whole` and its `Noted` part, which share a dtype policy unless told otherwise."""
    layer = Whole(None, dtype=dtype)
    layer.part = Noted(3, dtype=part_dtype or layer.dtype_policy, **arguments)
    return layer, layer.part


X = np.random.default_rng(0).normal(size=(2, 4)).astype("float32")


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_built_part_is_called_directly_with_the_same_answer(dtype):
    layer, part = whole_with(dtype)
    layer(X)  # builds the part
    expected, passed = part(X), part.passed
    found = layer(X)
    assert part.passed == passed
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(ops.convert_to_numpy(found), ops.convert_to_numpy(expected))


def test_a_part_with_a_policy_of_its_own_is_called_by_keras():
    layer, part = whole_with("mixed_bfloat16", part_dtype="float32")
    layer(X)
    passed = part.passed
    assert keras.backend.standardize_dtype(layer(X).dtype) == "float32"
    assert part.passed == passed + 1


def test_the_loss_of_an_activity_regulariser_is_kept():
    layer, _ = whole_with(activity_regularizer=keras.regularizers.L2(1.0))
    for _ in range(2):
        outputs = ops.convert_to_numpy(layer(X))
    expected = np.square(outputs).sum() / len(X)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.losses[0]), expected, rtol=1e-5)


def test_a_quantized_part_uses_its_integers():
    layer, part = whole_with()
    before = ops.convert_to_numpy(layer(X))
    part.quantize("int8", type_check=False)
    passed = part.passed
    after = ops.convert_to_numpy(layer(X))
    assert part.passed == passed + 1
    assert 0 < np.abs(after - before).max() < 0.1


@pytest.mark.skipif(keras.config.backend() != "torch", reason="hooks are torch's")
def test_hooks_of_torch_see_the_parts_of_a_block():
    block = PostNormBlock(2, 8)
    x = np.ones((1, 3, 4), "float32")
    block(x)
    seen = []
    handle = block.attention.register_forward_hook(lambda *arguments: seen.append(arguments[-1]))
    block(x)
    handle.remove()
    block(x)
    assert [tuple(output.shape) for output in seen] == [(1, 3, 4)]


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("mixed_bfloat16", 1e-2)])
def test_dense_of_rows_of_texts_is_dense_of_each(dtype, tolerance):
    layer = Dense(3, activation="tanh", dtype=dtype)
    x = np.random.default_rng(1).normal(size=(2, 5, 4)).astype("float32")
    rows = [layer(x[:, place]) for place in range(5)]
    rows, found = (
        ops.convert_to_numpy(ops.cast(y, "float32")) for y in (ops.stack(rows, 1), layer(x))
    )
    np.testing.assert_allclose(found, rows, atol=tolerance)
    assert layer(x[:0]).shape == (0, 5, 3)
    assert layer(x[:, :0]).shape == (2, 0, 3)
