"""Weighted pairs of neighbouring words in a piece of a corpus, as sparse matrices.

With S (words of the piece, vocabulary) holding a one for each word's id, and M (words of the piece,
vocabulary) holding in row n the weights of the words to the right of word n, the counts are S^T M:
one sparse product instead of a sort of all pairs.

Weights are whole numbers, `unit / distance`, so that sums are exact in any order.
"""

import math

import numpy as np
from scipy import sparse

from kctx.data.id_corpus import LINE_END

_EXACT_WINDOW = 22  # beyond it the least common multiple of the distances leaves float64 no room


def weights_of(window, distance_weighting=True):
    """Weights of the distances 1 ... `window`, as float64, and what to divide sums of them by."""
    distances = np.arange(1, window + 1, dtype=np.float64)
    if not distance_weighting:
        return np.ones(window), 1.0
    unit = float(math.lcm(*range(1, window + 1))) if window <= _EXACT_WINDOW else 1.0
    return unit / distances, unit


def pieces(corpus, window, size):
    """Yields (words, line ends, carried) of a corpus, unknown words left out.

    Args:
        corpus: `IdCorpus`.
        window: int, how many words are carried over from the piece before, where a line goes on.
        size: int, ids of a piece.

    Yields:
        words: int32 (N,); the first `carried` of them were in the piece before.
        line_ends: int64, places in `words` before which a line ends.
        carried: int.
    """
    carry = np.zeros(0, np.int32)
    for start in range(0, len(corpus), size):
        ids = np.asarray(corpus.ids[start : start + size])
        ids = np.concatenate([carry, ids[(ids >= 0) | (ids == LINE_END)]])
        ended = ids == LINE_END
        words = ids[~ended]
        line_ends = np.flatnonzero(ended) - np.arange(np.count_nonzero(ended))
        yield words, line_ends, len(carry)
        open_line = words[line_ends[-1] if len(line_ends) else 0 :]
        carry = open_line[max(0, len(open_line) - window) :]


def count_piece(words, line_ends, carried, vocabulary_size, weights):
    """Counts of (left word, right word) in a piece.

    Args:
        words, line_ends, carried: from `pieces`.
        vocabulary_size: V.
        weights: float64 (window,), of each distance.

    Returns:
        CSR matrix (V, V) of sums of weights; columns sorted.
    """
    size, window = len(words), len(weights)
    # How many words of the window lie to the right of each word in its line.
    end = np.full(size + 1, size)
    end[line_ends] = line_ends
    end = np.minimum.accumulate(end[::-1])[::-1][1:]  # the first line end behind each word
    room = np.minimum(end - np.arange(size) - 1, window)
    inside = np.arange(window) < room[:, None]  # (N, window)
    # Pairs within the carried words were counted with the piece before.
    inside[:carried] &= np.arange(1, window + 1) >= carried - np.arange(carried)[:, None]
    padded = np.concatenate([words, np.zeros(window, np.int32)])
    neighbours = np.lib.stride_tricks.sliding_window_view(padded[1:], window)[:size]
    starts = np.zeros(size + 1, np.int32)
    np.cumsum(np.count_nonzero(inside, axis=1), out=starts[1:])
    shape = (size, vocabulary_size)
    right = sparse.csr_matrix(
        (np.broadcast_to(weights, inside.shape)[inside], neighbours[inside], starts), shape
    )
    left = sparse.csr_matrix((np.ones(size), words, np.arange(size + 1, dtype=np.int32)), shape)
    counts = left.tocsc().T @ right
    # Turned over twice: that sorts the columns in linear time.
    return counts.tocsc().tocsr()


class RunningSum:
    """The sum of sparse matrices, added up like the digits of a binary number.

    Each matrix is copied only as often as the logarithm of their number.
    """

    def __init__(self):
        self._sums = []  # (how many additions deep, matrix)

    def __len__(self):
        """How many numbers are held."""
        return sum(matrix.nnz for _, matrix in self._sums)

    def add(self, matrix):
        depth = 0
        while self._sums and self._sums[-1][0] == depth:
            matrix = self._sums.pop()[1] + matrix
            depth += 1
        self._sums.append((depth, matrix))

    def take(self):
        """The sum, after which there is none; None if nothing was added."""
        total = None
        while self._sums:
            matrix = self._sums.pop()[1]
            total = matrix if total is None else total + matrix
        return total
