"""Means of bags of rows, and their changes, on all cores: a word as its n-grams."""

import numba
import numpy as np

from kctx.kernels.compiling import parallel
from kctx.kernels.cores import LOCK, num_cores
from kctx.kernels.rows import ZERO


@parallel
def _bag_means(table, ids, offsets, sizes, out):
    for b in numba.prange(len(offsets) - 1):
        out[b] = ZERO
        for i in range(offsets[b], offsets[b + 1]):
            row = ids[i]
            for d in range(table.shape[1]):
                out[b, d] += table[row, d]
        for d in range(table.shape[1]):
            out[b, d] /= sizes[b]


@parallel
def _add_to_bags(table, ids, offsets, after, before, scales, cores):
    for core in numba.prange(cores):
        for b in range(len(offsets) - 1):
            for i in range(offsets[b], offsets[b + 1]):
                row, scale = ids[i], scales[i]
                if row % cores == core:
                    for d in range(table.shape[1]):
                        table[row, d] += scale * (after[b, d] - before[b, d])


def bag_offsets(bags, num_bags):
    """Where each bag begins, and the last one ends: int64 (num_bags + 1,).

    Args:
        bags: int32 (E,), in rising order, as `kctx.layers.bags` takes them.
        num_bags: int.
    """
    return np.searchsorted(bags, np.arange(num_bags + 1))


def bag_means(table, ids, offsets, sizes):
    """float32 (B, D): the sum of each bag's rows divided by its size.

    Args:
        table: float32 (V, D).
        ids: int32 (E,).
        offsets: as `bag_offsets` gives them.
        sizes: float32 (B,).
    """
    out = np.empty((len(sizes), table.shape[1]), np.float32)
    with LOCK:
        _bag_means(table, ids, offsets, sizes, out)
    return out


def add_to_bags(table, ids, offsets, after, before, scales):
    """Adds the change of each bag, times a row's scale, to all its rows, in place.

    Args:
        table, ids, offsets: as `bag_means`.
        after, before: float32 (B, D), whose difference is the change.
        scales: float32 (E,).
    """
    with LOCK:
        _add_to_bags(table, ids, offsets, after, before, scales, num_cores())
