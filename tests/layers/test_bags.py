"""Sums of bags of rows: the fast way, the plain one and a loop."""

import keras
import numpy as np
import pytest

from kctx.layers.bags import bag_sums, bag_sums_plain

RNG = np.random.default_rng(0)


def sums(function, table, ids, bags, number):
    table = keras.Variable(np.asarray(table, "float32"), dtype="float32")
    ids, bags = (keras.ops.convert_to_tensor(np.array(x, "int32")) for x in (ids, bags))
    return keras.ops.convert_to_numpy(function(table, ids, bags, number))


@pytest.mark.parametrize("function", [bag_sums, bag_sums_plain])
def test_by_hand(function):
    """The first bag has a row twice, the second none; what belongs to bag 3 is dropped."""
    table = [[1, 10], [2, 20], [4, 40]]
    made = sums(function, table, [0, 0, 2, 1, 1], [0, 0, 0, 2, 3], 3)
    assert made.tolist() == [[6, 60], [0, 0], [2, 20]]


@pytest.mark.parametrize(
    ("number", "sizes"),
    [(4, [3, 0, 5, 2]), (4, [0, 0, 0, 0]), (1, [7]), (5, [0, 1, 0, 2, 0]), (3, [0, 0, 4])],
)
@pytest.mark.parametrize("fillers", [0, 5])
def test_fast_equals_plain_and_a_loop(number, sizes, fillers):
    table = RNG.normal(size=(9, 3))
    bags = np.repeat(np.arange(number + 1), [*sizes, fillers])
    ids = RNG.integers(0, 9, len(bags))
    expected = np.zeros((number, 3))
    for row, bag in zip(ids, bags, strict=True):
        if bag < number:
            expected[bag] += table[row]
    for function in (bag_sums, bag_sums_plain):
        made = sums(function, table, ids, bags, number)
        np.testing.assert_allclose(made, expected, atol=1e-5)
        assert made.shape == (number, 3)


def test_many_bags():
    table, bags = RNG.normal(size=(50, 4)), np.sort(RNG.integers(0, 301, 3000))
    ids = RNG.integers(0, 50, 3000)
    fast, plain = (sums(x, table, ids, bags, 300) for x in (bag_sums, bag_sums_plain))
    np.testing.assert_allclose(fast, plain, atol=1e-4)
