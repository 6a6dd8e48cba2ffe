"""Means of the rows of a step's words, and the changes of the words back to the rows."""

import numba
import numpy as np

from kctx.kernels.compiling import compiled, parallel
from kctx.kernels.cores import LOCK, num_cores
from kctx.kernels.rows import ONE, add_products, clear_row, owner


@compiled
def distinct_words(words, numbers):
    """(distinct words int32 (P,), place of each word among them int32, as `words`).

    Args:
        words: int32 (G, H).
        numbers: int32 (V,), holds -1s and does so again in the end.
    """
    distinct, places = np.empty(words.size, np.int32), np.empty(words.shape, np.int32)
    count = 0
    for g in range(words.shape[0]):
        for h in range(words.shape[1]):
            word = words[g, h]
            if numbers[word] < 0:
                numbers[word] = count
                distinct[count] = word
                count += 1
            places[g, h] = numbers[word]
    for i in range(count):
        numbers[distinct[i]] = -1
    return distinct[:count], places


@parallel
def _bag_means(table, rows, offsets, words, longest, out):
    ones = np.full(longest, ONE)
    for b in numba.prange(len(words)):
        begin, end = offsets[words[b]], offsets[words[b] + 1]
        clear_row(out, b)
        add_products(ones, 0, rows[begin:end], end - begin, table, out, b)
        for d in range(table.shape[1]):
            out[b, d] /= end - begin


@parallel
def _add_to_bags(table, rows, offsets, words, after, before, scales, cores):
    width = table.shape[1]
    for core in numba.prange(cores):
        change = np.empty(width, np.float32)
        for b in range(len(words)):
            for d in range(width):
                change[d] = after[b, d] - before[b, d]
            for i in range(offsets[words[b]], offsets[words[b] + 1]):
                row = rows[i]
                if owner(row, cores) == core:
                    scale = scales[row]
                    for d in range(width):
                        table[row, d] += scale * change[d]


def bag_means(table, rows, offsets, words):
    """float32 (P, D): the mean of the rows of each word.

    Args:
        table: float32 (N, D).
        rows: int32 (K,), rows of `table` of all words, one word after the other.
        offsets: int64 (V + 1,), where those of each word begin and the last one's end.
        words: int32 (P,).
    """
    out = np.empty((len(words), table.shape[1]), np.float32)
    longest = int((offsets[words + 1] - offsets[words]).max(initial=0))
    with LOCK:
        _bag_means(table, rows, offsets, words, longest, out)
    return out


def add_to_bags(table, rows, offsets, words, after, before, scales):
    """Adds the change of each word, times a row's scale, to all its rows, in place.

    Args:
        table, rows, offsets, words: as `bag_means`.
        after, before: float32 (P, D), whose difference is the change.
        scales: float32, one for each row up to the last of `rows`.
    """
    with LOCK:
        _add_to_bags(table, rows, offsets, words, after, before, scales, num_cores())
