"""Huffman codes as word2vec and fastText make them."""

import heapq

import numpy as np
import pytest

from kctx.vectors.huffman import huffman_tree

pytestmark = pytest.mark.once


def path(tree, word):
    length = tree.lengths[word]
    assert (tree.codes[word, length:] == -1).all() and (tree.points[word, length:] == -1).all()
    code = "".join(map(str, tree.codes[word, :length]))
    return code, tree.points[word, :length].tolist()


def test_codes_of_the_c_tool():
    """Counts of `</s>` a b c d e; the first is not the largest."""
    tree = huffman_tree([3, 4, 4, 2, 1, 1])
    expected = {
        0: ("11", [4, 3]),
        1: ("10", [4, 3]),
        2: ("01", [4, 2]),
        3: ("001", [4, 2, 1]),
        4: ("0001", [4, 2, 1, 0]),
        5: ("0000", [4, 2, 1, 0]),
    }
    assert {word: path(tree, word) for word in range(6)} == expected
    assert (tree.codes.dtype, tree.points.dtype, tree.lengths.dtype) == (
        np.int8,
        np.int32,
        np.int32,
    )


def test_two_words_and_fewer():
    tree = huffman_tree([5, 3])
    assert [path(tree, 0), path(tree, 1)] == [("1", [0]), ("0", [0])]
    with pytest.raises(ValueError, match="at least two words. Received: 1"):
        huffman_tree([5])


def smallest_cost(counts):
    heap, cost = list(counts), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        cost += merged
        heapq.heappush(heap, merged)
    return cost


@pytest.mark.parametrize("seed", range(5))
def test_properties(seed):
    """No code begins another, paths fit into one tree, and no code is shorter in all."""
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.zipf(1.5, 200).clip(max=10**6))[::-1]
    tree = huffman_tree(counts)
    codes = [path(tree, word) for word in range(len(counts))]
    prefixes = {}
    for code, points in codes:
        for depth, node in enumerate(points):
            assert prefixes.setdefault(code[:depth], node) == node
    assert not {code for code, _ in codes} & set(prefixes)
    assert sorted(prefixes.values()) == list(range(len(counts) - 1))
    assert prefixes[""] == len(counts) - 2
    assert (tree.lengths * counts).sum() == smallest_cost(counts.tolist())


def test_very_unequal_counts():
    """The deepest tree: counts that double."""
    tree = huffman_tree([2**i for i in range(40, -1, -1)])
    assert tree.lengths.tolist() == [*range(1, 41), 40]
