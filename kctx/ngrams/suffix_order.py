"""Sorting n-grams into suffix order: by the last word, then the one before it, and so on.

In this order n-grams with the same ending lie side by side, so that one sort of the longest ones
gives the sorted tables of all orders (Heafield et al. 2013, section 3).
"""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

_WORTH_THREADS = 1 << 18
_WORTH_SORTING = 1 << 12


def sorted_rows(columns, sizes):
    """Sorts rows given as columns, the most significant first.

    Args:
        columns: list of (T,) integer arrays with values from 0.
        sizes: list of int, the values of each column are below.

    Returns:
        order: (T,) int64, positions of the rows in sorted order; equal rows in any order.
        new: (T,) bool, whether the row at each place of the sorted order differs from the one
            before it.
    """
    count = len(columns[0])
    order, new = np.zeros(0, np.int64), np.zeros(0, bool)
    rank, size = columns[0], sizes[0]
    for step, (column, column_size) in enumerate(zip(columns[1:], sizes[1:], strict=True)):
        key = rank.astype(np.int64)
        key *= column_size
        key += column
        order, new = _sorted_keys(key, size * column_size)
        if step < len(columns) - 2:
            ranks = np.cumsum(new, dtype=np.int32)
            ranks -= 1
            size = int(ranks[-1]) + 1 if count else 1
            rank = np.empty(count, np.int32)
            rank[order] = ranks
    if len(columns) == 1:
        order, new = _sorted_keys(rank.astype(np.int64), size)
    return order, new


def _sorted_keys(key, size):
    """(order, new) of int64 keys below `size`, which are overwritten."""
    count = len(key)
    bits = max(count - 1, 1).bit_length()
    if (max(size - 1, 1)).bit_length() + bits <= 63:
        # Key and position in one number: a plain sort is much faster than an argsort.
        key <<= bits
        key |= np.arange(count, dtype=np.int64)
        key = sort(key)
        order = key & ((1 << bits) - 1)
        key >>= bits
    else:
        order = np.argsort(key)
        key = key[order]
    new = np.empty(count, bool)
    new[:1] = True
    np.not_equal(key[1:], key[:-1], out=new[1:])
    return order, new


def sort(values):
    """Sorted int64 values, on all cores: split by value, then each part by itself."""
    threads = workers()
    if threads == 1 or len(values) < _WORTH_THREADS:
        values.sort()
        return values
    sample = np.sort(values[:: max(1, len(values) // 4096)])
    pivots = [sample[len(sample) * part // threads] for part in range(1, threads)]
    parts = []
    for pivot in pivots:
        low = values < pivot
        parts.append(values[low])
        values = values[~low]
    parts.append(values)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(np.ndarray.sort, parts))
    return np.concatenate(parts)


def workers():
    """Threads that NumPy's own loops can use at once, at most 4."""
    if hasattr(os, "sched_getaffinity"):
        return min(4, len(os.sched_getaffinity(0)))
    return min(4, os.cpu_count() or 1)


def find(keys, wanted):
    """Places of int64 values in a sorted array without duplicates, -1 for those not in it."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int32)
    threads = workers()
    if threads > 1 and len(wanted) > _WORTH_THREADS:
        with ThreadPoolExecutor(threads) as pool:
            parts = pool.map(lambda part: _find(keys, part), np.array_split(wanted, threads))
            return np.concatenate(list(parts))
    return _find(keys, wanted)


def _find(keys, wanted):
    bits = len(wanted).bit_length()
    if len(wanted) < _WORTH_SORTING or (int(wanted.max()) >> (62 - bits)):
        return _searched(keys, wanted)
    # Sorted questions find their way through the cache, which wins back the sort many times.
    packed = wanted << bits
    packed |= np.arange(len(wanted))
    packed.sort()
    place = np.empty(len(wanted), np.int32)
    order = packed & ((1 << bits) - 1)
    packed >>= bits
    place[order] = _searched(keys, packed)
    return place


def _searched(keys, wanted):
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    missing = keys[place] != wanted
    place = place.astype(np.int32)
    place[missing] = -1
    return place
