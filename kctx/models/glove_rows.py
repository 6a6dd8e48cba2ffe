"""A step of GloVe on the rows of a batch, in NumPy and SciPy: the fast way on a CPU.

With F the weighted differences of a batch as a sparse matrix (words, contexts), the gradients of
all its words are F C, C being the contexts' vectors, and the sums of squares F^2 C^2: sparse
products that read each row from a core's cache, where a record at a time reads and writes four
rows of 8-byte numbers.
"""

import concurrent.futures
import functools
import os

import numpy as np
from scipy import sparse

_DOTS = 512  # records whose rows fit into a core's cache
_ROWS = 512


@functools.cache
def _pool():
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return concurrent.futures.ThreadPoolExecutor(min(8, cores))


def _run(function, parts):
    """Calls a function on each part, on all cores. The parts do not depend on their number."""
    for future in [_pool().submit(function, *part) for part in parts]:
        future.result()


def _slices(size, step):
    return [(start, min(start + step, size)) for start in range(0, size, step)]


def differences(word, context, batch):
    """w . c + b_w + b_c - log x of each record of a batch.

    Args:
        word: float32 (U, d + 1), rows of the words of the batch, the bias last.
        context: float32 (U', d + 1).
        batch: dict of arrays, see `kctx.data.CooccurrenceStream`.

    Returns:
        float32 (N,).
    """
    size, dim = len(batch["log_values"]), word.shape[1] - 1
    found = np.empty(size, np.float32)

    def dots(start, stop):
        left = np.empty((_DOTS, dim + 1), np.float32)
        right = np.empty_like(left)
        for first in range(start, stop, _DOTS):
            here = slice(first, min(first + _DOTS, stop))
            count = here.stop - first
            a = np.take(word, batch["word_places"][here], 0, out=left[:count], mode="clip")
            b = np.take(context, batch["context_places"][here], 0, out=right[:count], mode="clip")
            found[here] = a[:, -1] + b[:, -1]
            found[here] += np.einsum("nd,nd->n", a[:, :-1], b[:, :-1])

    _run(dots, _slices(size, 16 * _DOTS))
    found -= batch["log_values"]
    return found


def update_rows(tables, squares, batch, errors, weights, rates, clip, damping):
    """Changes the rows of a batch by the sum of the steps of its records.

    As in the C tool each record's step uses the values from before the batch. The denominators are
    those after it, and a row never moves further than to where its records' mean curvature would
    bring their differences to zero: a frequent word has hundreds of records in a batch, whose
    plain sum overshoots.

    Args:
        tables: (word, context), float32 (U, d + 1) and (U', d + 1), changed in place.
        squares: the sums of squared steps of the same shapes, changed in place.
        batch: dict of arrays.
        errors: float32 (N,), weighted differences.
        weights: float32 (N,).
        rates: (learning_rate, bias_rate).
        clip: float, largest component of a vector's gradient.
        damping: float, what share of the curvature bounds a step; 0: no bound.
    """
    word, context = tables
    order = batch["context_order"]
    by_word = (_starts(batch["word_places"], len(word)), batch["context_places"], errors, weights)
    by_context = (
        _starts(batch["context_places"][order], len(context)),
        batch["word_places"][order],
        errors[order],
        weights[order],
    )
    # The products and the clipping are of the other side's old values.
    others = [_scaled(context, rates), _scaled(word, rates)]
    largest = np.abs(errors).max(initial=0)
    sides = []
    for side, lines in enumerate((by_word, by_context)):
        bound = largest * np.abs(others[side][0][:, :-1]).max(initial=0) / (rates[0] or 1)
        sums = _clipped_sums if bound > clip else _sums
        sides.append((tables[side], squares[side], lines, others[side], sums, rates, clip, damping))
    _run(
        _update_block,
        [(first, last, *side) for side in sides for first, last in _slices(len(side[0]), _ROWS)],
    )


def _starts(places, size):
    """Where the records of each row begin, places being sorted: int32 (size + 1,)."""
    starts = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(places, minlength=size), out=starts[1:])
    return starts


def _scaled(rows, rates):
    """Rows as a step of one unit of error sees them, their squares, and their curvature (U, 2)."""
    scaled = np.empty_like(rows)
    np.multiply(rows[:, :-1], np.float32(rates[0]), out=scaled[:, :-1])
    scaled[:, -1] = rates[1]
    curvature = np.empty((len(rows), 2), np.float32)
    curvature[:, 0] = rates[0] * np.einsum("nd,nd->n", rows[:, :-1], rows[:, :-1])
    curvature[:, 1] = rates[1]
    return scaled, scaled * scaled, curvature


def _sums(starts, columns, errors, other, rates, clip):
    """Sums of steps and of their squares for some rows."""
    scaled, scaled_squares, _ = other
    shape = (len(starts) - 1, len(scaled))
    step = sparse.csr_matrix((errors, columns, starts), shape) @ scaled
    square = sparse.csr_matrix((errors * errors, columns, starts), shape) @ scaled_squares
    return step, square


def _clipped_sums(starts, columns, errors, other, rates, clip):
    """`_sums` where a component of a record may have to be clipped."""
    steps = errors[:, None] * other[0][columns]
    limit = clip * rates[0]
    np.clip(steps[:, :-1], -limit, limit, out=steps[:, :-1])
    return np.add.reduceat(steps, starts[:-1]), np.add.reduceat(steps * steps, starts[:-1])


def _update_block(first, last, table, squares, lines, other, sums, rates, clip, damping):
    starts, columns, errors, weights = lines
    here = slice(starts[first], starts[last])
    starts = starts[first : last + 1] - starts[first]
    step, square = sums(starts, columns[here], errors[here], other, rates, clip)
    squares[first:last] += square
    denominator = np.sqrt(squares[first:last], out=square)
    if damping:
        shape = (last - first, len(other[2]))
        curvature = sparse.csr_matrix((weights[here], columns[here], starts), shape) @ other[2]
        curvature *= np.float32(damping)
        np.maximum(denominator[:, :-1], curvature[:, :1], out=denominator[:, :-1])
        np.maximum(denominator[:, -1], curvature[:, 1], out=denominator[:, -1])
    step /= denominator
    table[first:last] -= step
