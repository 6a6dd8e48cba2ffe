"""What the centres of a block predict."""

import numpy as np
import pytest

from kctx.data.window_targets import HierarchicalSoftmax, NegativeSampling
from kctx.vectors.huffman import huffman_tree

pytestmark = pytest.mark.once

COUNTS = np.array([50, 30, 20, 9, 9, 5, 3, 2, 1, 1])


def test_negatives():
    targets = NegativeSampling(COUNTS, shared=6)
    centres = np.array([[0, 1], [2, 3], [9, 9]], np.int32)
    arrays, rows = targets(centres, np.ones((3, 2), bool), np.random.default_rng(0))
    assert arrays["negatives"].shape == (3, 6) and arrays["negatives"].dtype == np.int32
    assert rows.tolist() == np.concatenate([centres, arrays["negatives"]], axis=1).tolist()
    again, _ = targets(centres, np.ones((3, 2), bool), np.random.default_rng(0))
    assert again["negatives"].tolist() == arrays["negatives"].tolist()
    assert targets.get_config() == {"shared": 6, "exponent": 0.75}
    with pytest.raises(ValueError, match="`shared` must be an integer of at least 1"):
        NegativeSampling(COUNTS, shared=0)


@pytest.mark.parametrize("seed", range(4))
def test_paths_rebuilt_from_unions(seed):
    rng = np.random.default_rng(seed)
    tree = huffman_tree(COUNTS)
    centres = rng.integers(0, len(COUNTS), (5, 7)).astype(np.int32)
    valid = rng.random((5, 7)) < 0.7
    arrays, rows = HierarchicalSoftmax(COUNTS)(centres, valid, None)
    nodes, paths = arrays["nodes"], arrays["paths"]
    assert rows is nodes and nodes.dtype == np.int32 and paths.dtype == np.int8
    assert paths.shape == (5, 7, nodes.shape[1]) and nodes.shape[1] % 16 == 0
    for block in range(5):
        used = (paths[block] != 0).any(axis=0)
        # Each node once, whatever is unused is behind.
        assert len(set(nodes[block, used])) == used.sum()
        assert not used[used.sum() :].any() and not nodes[block, used.sum() :].any()
        for centre, row, good in zip(centres[block], paths[block], valid[block], strict=True):
            made = {int(nodes[block, i]): int(row[i]) for i in np.flatnonzero(row)}
            length = tree.lengths[centre] if good else 0
            signs = (1 - 2 * tree.codes[centre, :length]).tolist()
            assert made == dict(zip(tree.points[centre, :length].tolist(), signs, strict=True))


def test_no_centre():
    arrays, _ = HierarchicalSoftmax(COUNTS)(
        np.zeros((2, 3), np.int32), np.zeros((2, 3), bool), None
    )
    assert not arrays["paths"].any() and arrays["paths"].shape[:2] == (2, 3)


def test_two_words():
    arrays, _ = HierarchicalSoftmax([3, 2])(
        np.array([[0, 1]], np.int32), np.ones((1, 2), bool), None
    )
    assert arrays["paths"][0, :, 0].tolist() == [-1, 1]


@pytest.mark.parametrize("made", [NegativeSampling(COUNTS, shared=4), HierarchicalSoftmax(COUNTS)])
def test_expected_numbers_of_rows(made):
    """Against the mean over many steps."""
    rng, (blocks, words) = np.random.default_rng(0), (20, 8)
    share = COUNTS / COUNTS.sum()
    seen, steps = np.zeros(len(COUNTS)), 200
    for _ in range(steps):
        centres = rng.choice(len(COUNTS), (blocks, words), p=share).astype(np.int32)
        arrays, rows = made(centres, np.ones(centres.shape, bool), rng)
        times = np.abs(arrays["paths"]).sum(axis=1) if "paths" in arrays else np.ones(rows.shape)
        np.add.at(seen, rows, times)
    expected = made.expected(share, blocks, words)
    np.testing.assert_allclose(seen[: len(expected)] / steps, expected, rtol=0.1)
    assert len(expected) == len(COUNTS) - isinstance(made, HierarchicalSoftmax)
