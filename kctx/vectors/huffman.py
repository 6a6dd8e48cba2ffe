"""The Huffman tree of hierarchical softmax, as word2vec and fastText build it."""

from typing import NamedTuple

import numpy as np


class HuffmanTree(NamedTuple):
    """Paths from the root to each word, padded to the longest.

    Attributes:
        codes: int8 (V, L), 0 or 1 at each node of the path, the root first; -1 behind the end.
        points: int32 (V, L), inner nodes of the path, the root (V - 2) first; -1 behind the end.
        lengths: int32 (V,), nodes on each path.
    """

    codes: np.ndarray
    points: np.ndarray
    lengths: np.ndarray


def huffman_tree(counts):
    """Builds the tree by two queues, with the tools' own choice among equals.

    Of two candidates a leaf is taken only if its count is strictly smaller than the next inner
    node's; of each pair the second one taken gets bit 1.

    Args:
        counts: int (V,), V >= 2. The tools sort them in falling order, but for word2vec's `</s>`
            at place 0; they are taken from the end.

    Raises:
        ValueError: fewer than two words.
    """
    number = len(counts)
    if number < 2:
        raise ValueError(f"`counts` must hold at least two words. Received: {number}")
    # Plain Python: the merging is sequential, and lists are faster than arrays one by one.
    weights = [int(count) for count in counts] + [0] * (number - 1)
    parents, bits = [0] * (2 * number - 1), [0] * (2 * number - 1)
    leaf, inner, made = number - 1, number, number

    def take():
        nonlocal leaf, inner
        if leaf >= 0 and (inner >= made or weights[leaf] < weights[inner]):
            leaf -= 1
            return leaf + 1
        inner += 1
        return inner - 1

    for made in range(number, 2 * number - 1):
        first, second = take(), take()
        weights[made] = weights[first] + weights[second]
        parents[first] = parents[second] = made
        bits[second] = 1
    return _paths(np.array(parents), np.array(bits, np.int8), number)


def _paths(parents, bits, number):
    """All paths at once, one step towards the root at a time."""
    root = 2 * number - 2
    node = np.arange(number)
    steps_bits, steps_points = [], []
    while (active := node != root).any():
        steps_bits.append(np.where(active, bits[node], -1))
        node = np.where(active, parents[node], root)
        steps_points.append(np.where(active, node - number, -1))
    upwards_bits = np.stack(steps_bits, 1).astype(np.int8)
    upwards_points = np.stack(steps_points, 1).astype(np.int32)
    lengths = (upwards_bits >= 0).sum(1).astype(np.int32)
    # From the leaf upwards to from the root downwards.
    depth = upwards_bits.shape[1]
    turned = lengths[:, None] - 1 - np.arange(depth)  # place of the d-th node from the root
    inside = turned >= 0
    rows = np.arange(number)[:, None]
    codes = np.where(inside, upwards_bits[rows, np.maximum(turned, 0)], -1)
    points = np.where(inside, upwards_points[rows, np.maximum(turned, 0)], -1)
    return HuffmanTree(codes.astype(np.int8), points.astype(np.int32), lengths)
