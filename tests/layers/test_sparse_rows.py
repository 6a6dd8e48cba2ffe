"""Rows read and changed in place: the fast way and the plain one."""

import keras
import numpy as np
import pytest

from kctx.layers.sparse_rows import add_rows, add_rows_plain, read_rows

RNG = np.random.default_rng(0)


def variable(value):
    return keras.Variable(np.asarray(value, "float32"), dtype="float32")


def array(x):
    return keras.ops.convert_to_numpy(x)


@pytest.mark.parametrize(
    ("shape", "ids"),
    [
        ((7, 3), (5,)),
        ((7, 3), (4, 6)),
        ((7,), (9,)),
        ((5, 2, 3), (2, 2)),
        ((7, 3), (0,)),
    ],
)
def test_fast_equals_plain(shape, ids):
    table = RNG.normal(size=shape)
    ids = RNG.integers(0, shape[0], ids).astype("int32")
    updates = RNG.normal(size=(*ids.shape, *shape[1:])).astype("float32")
    expected = table.astype("float32")
    np.add.at(expected, ids, updates)
    for function in (add_rows, add_rows_plain):
        changed = variable(table)
        function(changed, keras.ops.convert_to_tensor(ids), keras.ops.convert_to_tensor(updates))
        np.testing.assert_allclose(array(changed), expected, atol=1e-5)


def test_other_rows_stay_bit_for_bit():
    table = RNG.normal(size=(50, 4)).astype("float32")
    changed = variable(table)
    ids = np.array([3, 3, 17], "int32")
    add_rows(changed, ids, keras.ops.ones((3, 4)))
    after = array(changed)
    others = np.setdiff1d(np.arange(50), ids)
    assert after[others].tobytes() == table[others].tobytes()
    np.testing.assert_allclose(after[[3, 17]] - table[[3, 17]], [[2] * 4, [1] * 4], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_updates_of_a_float32_table(dtype):
    changed = variable(np.full((2, 2), 1000.0))
    add_rows(changed, np.array([1], "int32"), keras.ops.full((1, 2), 0.125, dtype))
    assert changed.dtype == "float32"
    assert array(changed).tolist() == [[1000, 1000], [1000.125, 1000.125]]


def test_reads_rows():
    table = RNG.normal(size=(6, 3)).astype("float32")
    ids = RNG.integers(0, 6, (2, 5)).astype("int32")
    source = variable(table)
    np.testing.assert_array_equal(
        array(read_rows(source, keras.ops.convert_to_tensor(ids))), table[ids]
    )
