"""What is predicted of a block's words: themselves against negatives, or a path of decisions."""

import numpy as np

from kctx.arguments import check_count
from kctx.data.few_shapes import few_shapes
from kctx.data.word_sampling import NoiseTable, noise_probabilities
from kctx.vectors.huffman import huffman_tree

_LEAST_NODES = 16  # of a block


class NegativeSampling:
    """Negatives shared by all centres of a block.

    Args:
        counts: int (V,), of the words.
        shared: K, int, negatives of a block. Default 16.
        exponent: of the counts, 0.75 in Word2Vec, 0.5 in fastText.
    """

    def __init__(self, counts, shared=16, exponent=0.75):
        check_count("shared", shared)
        self.shared, self.exponent = shared, exponent
        self.vocabulary_size = len(counts)
        self.probabilities = noise_probabilities(counts, exponent)
        self.noise = NoiseTable(self.probabilities)

    def expected(self, share, step_blocks, block_words):
        """float (V,): how often each row of the output table is expected in a step.

        Args:
            share: float (V,), of each word in the text.
            step_blocks, block_words: G, and T, how many words of a block are predicted.
        """
        return step_blocks * (block_words * share + self.shared * self.probabilities)

    def __call__(self, predicted, valid, generator):
        """int32 (N, T) words of N blocks -> dict of arrays for the batch, rows of the output."""
        negatives = self.noise.draw(generator, (len(predicted), self.shared))
        return {"negatives": negatives}, np.concatenate([predicted, negatives], axis=1)

    def get_config(self):
        return {"shared": self.shared, "exponent": self.exponent}


class HierarchicalSoftmax:
    """The inner nodes on the centres' paths, each once for a block.

    Args:
        counts: int (V,), of the words, in falling order.
        positive_bit: the bit of a code that counts as the label 1: 0 in Word2Vec (default), 1 in
            fastText.
    """

    def __init__(self, counts, positive_bit=0):
        self.vocabulary_size = len(counts)
        self.tree, self.positive_bit = huffman_tree(counts), positive_bit

    def expected(self, share, step_blocks, block_words):
        """float (V - 1,): how many paths of a step are expected to pass each node."""
        on_path = self.tree.points >= 0
        shares = np.repeat(share, self.tree.lengths)
        passing = np.bincount(self.tree.points[on_path], shares, len(share) - 1)
        return step_blocks * block_words * passing

    def __call__(self, predicted, valid, generator):
        """int32 (N, T) words of N blocks -> dict of arrays for the batch, rows of the output.

        The dict holds `nodes` int32 (N, U) and `paths` int8 (N, T, U), as
        `kctx.layers.window_products` takes them; words that are not `valid` have no path.
        """
        number, size = predicted.shape
        points = self.tree.points[predicted]  # (N, T, L)
        on_path = (points >= 0) & valid[:, :, None]
        where = np.flatnonzero(on_path)
        points = points.reshape(-1)[where]
        block = where // (size * on_path.shape[2])
        # (block, node, place) in one number: one sort finds equal nodes and keeps the places,
        # several times faster than `np.unique` with its inverse.
        bits = max(1, int(on_path.size - 1).bit_length())
        nodes_of_tree = len(self.tree.lengths)
        key = np.sort((block * nodes_of_tree + points) << bits | where)
        where, key = key & ((1 << bits) - 1), key >> bits
        new = np.ones(len(key), bool)
        new[1:] = key[1:] != key[:-1]
        block = (key // nodes_of_tree).astype(np.int64)
        rank = np.cumsum(new) - 1
        first = np.searchsorted(block[new], np.arange(number + 1))
        used = few_shapes(int(np.diff(first).max(initial=1)), _LEAST_NODES)
        column = rank - first[block]
        nodes = np.zeros((number, used), np.int32)
        nodes[block[new], column[new]] = (key % nodes_of_tree)[new]
        paths = np.zeros((number * size, used), np.int8)
        bits = self.tree.codes[predicted].reshape(-1)[where]
        paths[where // on_path.shape[2], column] = np.where(bits == self.positive_bit, 1, -1)
        return {"nodes": nodes, "paths": paths.reshape(number, size, used)}, nodes

    def whole(self):
        """dict of arrays for kernels, which look the paths up: `points`, `codes` (V, L) and
        `positive_bit` ()."""
        bit = np.array(self.positive_bit, np.int32)
        return {"points": self.tree.points, "codes": self.tree.codes, "positive_bit": bit}

    def get_config(self):
        return {"positive_bit": self.positive_bit}
