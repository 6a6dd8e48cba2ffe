"""The token table both ways, and ids that lie outside it."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import SegmentEmbedding, TokenEmbedding

TABLE = np.arange(8, dtype="float32").reshape(4, 2)


def layer(**options):
    made = TokenEmbedding(4, 2, **options)
    made.build((None, None))
    made.set_weights([TABLE])
    return made


def test_lookup():
    made = layer()(np.array([[3, 0]], "int32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(made), [[[6, 7], [0, 1]]])


def test_logits_use_the_same_table():
    x = np.array([[[1, 10]]], "float32")
    made = layer()(x, reverse=True)
    np.testing.assert_array_equal(ops.convert_to_numpy(made), [[[10, 32, 54, 76]]])  # x·Eᵀ
    assert len(layer().weights) == 1


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_logits_are_float32(policy):
    tested = layer(dtype=policy)
    vectors = tested(np.array([[1]], "int32"))
    assert keras.backend.standardize_dtype(vectors.dtype) == policy.removeprefix("mixed_")
    logits = tested(vectors, reverse=True)
    assert keras.backend.standardize_dtype(logits.dtype) == "float32"


@pytest.mark.parametrize("bad", [4, -1, 2**31 - 1])
def test_ids_outside_the_table(bad):
    ids = np.array([[0, 3], [bad, 1]], "int32")
    with pytest.raises(ValueError, match=rf"`token_ids` must lie in \[0, 4\).*Received: {bad}"):
        layer()(ids)


@pytest.mark.parametrize("bad", [4, -1])
def test_ids_outside_the_table_in_a_compiled_predict(bad):
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, layer()(ids))
    with pytest.raises(Exception, match=rf"(?s)`token_ids` must lie in \[0, 4\).*{bad}"):
        model.predict(np.array([[0, bad]], "int32"), verbose=0)


def test_segments():
    segments = SegmentEmbedding(2, 3)
    assert segments(np.array([[0, 1]], "int32")).shape == (1, 2, 3)
    with pytest.raises(ValueError, match=r"`segment_ids` must lie in \[0, 2\).*Received: 2"):
        segments(np.array([[0, 2]], "int32"))


def test_the_check_can_be_turned_off(monkeypatch):
    monkeypatch.setenv("KCTX_CHECK_IDS", "0")
    if keras.config.backend() == "jax":
        layer()(np.array([[4]], "int32"))
    else:  # the backend's own error, which names no argument
        with pytest.raises(Exception) as error:
            layer()(np.array([[4]], "int32"))
        assert "`token_ids`" not in str(error.value)


def test_no_ids():
    assert layer()(np.zeros((0, 3), "int32")).shape == (0, 3, 2)
    assert layer()(np.zeros((2, 0), "int32")).shape == (2, 0, 2)
