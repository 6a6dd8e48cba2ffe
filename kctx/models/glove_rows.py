"""A step of GloVe on the rows of a batch, in NumPy and SciPy: the fast way on a CPU.

With F the weighted differences of a batch as a sparse matrix (words, contexts), the gradients of
all its words are F C, C being the contexts' vectors, and the sums of squares F^2 C^2: sparse
products that read rows from a core's cache, where a record at a time reads and writes four rows
of 8-byte numbers.
"""

import concurrent.futures
import dataclasses
import functools
import os

import numpy as np
from scipy import sparse

_RECORDS = 1024  # whose rows fit into a core's cache
_ROWS = 1024


@functools.cache
def _pool():
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return concurrent.futures.ThreadPoolExecutor(min(8, cores))


def _run(function, parts):
    """Calls a function on each part, on all cores; results do not depend on their number."""
    return [future.result() for future in [_pool().submit(function, *part) for part in parts]]


def _slices(size, step):
    return [(start, min(start + step, size)) for start in range(0, size, step)]


@dataclasses.dataclass(frozen=True)
class Side:
    """The words of a batch, or its contexts, as gradients of the other side see them.

    Attributes:
        rows: float32 (U, d + 1), vectors with 1 in the place of the bias.
        squared: float32 (U, d + 1), their squares.
        traces: float32 (U, 2), the sum of a vector's squares, and 1.
        biases: float32 (U,).
    """

    rows: np.ndarray
    squared: np.ndarray
    traces: np.ndarray
    biases: np.ndarray

    @classmethod
    def of(cls, rows):
        """From rows of a table, the bias last, which are overwritten."""
        biases = rows[:, -1].copy()
        rows[:, -1] = 1
        squared, traces = np.empty_like(rows), np.ones((len(rows), 2), np.float32)

        def square(first, last):
            part = np.multiply(rows[first:last], rows[first:last], out=squared[first:last])
            np.subtract(part.sum(axis=1), 1, out=traces[first:last, 0])

        _run(square, _slices(len(rows), 4 * _ROWS))
        return cls(rows, squared, traces, biases)


def without_padding(batch):
    """A batch as if it had been made without static shapes."""
    size = int(batch["num_records"])
    arrays = ("word_places", "context_places", "context_order", "log_values")
    short = {name: batch[name][:size] for name in arrays}
    return {
        **batch,
        **short,
        "word_ids": batch["word_ids"][: int(short["word_places"].max()) + 1],
        "context_ids": batch["context_ids"][: int(short["context_places"].max()) + 1],
    }


def differences(word, context, batch):
    """w . c + b_w + b_c - log x of each record of a batch.

    Args:
        word, context: `Side`.
        batch: dict of arrays, see `kctx.data.CooccurrenceStream`.

    Returns:
        float32 (N,).
    """
    words, contexts = batch["word_places"], batch["context_places"]
    found = word.biases[words] + context.biases[contexts]
    found -= batch["log_values"]
    found -= 1  # the product of the two ones

    def products(start, stop):
        left = np.empty((_RECORDS, word.rows.shape[1]), np.float32)
        right = np.empty_like(left)
        for first, last in _slices(stop - start, _RECORDS):
            here = slice(start + first, start + last)
            a = np.take(word.rows, words[here], 0, out=left[: last - first], mode="clip")
            b = np.take(context.rows, contexts[here], 0, out=right[: last - first], mode="clip")
            found[here] += np.einsum("nd,nd->n", a, b)

    _run(products, _slices(len(found), 8 * _RECORDS))
    return found


def update_rows(tables, squares, ids, sides, batch, errors, weights, rates, clip, damping):
    """Moves the rows of a batch by the sum of the steps of its records.

    As in the C tool each record's step uses the values from before the batch. The denominators are
    those after it, and a row never moves further than to where its records' mean curvature would
    bring their differences to zero: a frequent word has hundreds of records in a batch, whose
    plain sum overshoots.

    Args:
        tables: (word, context), float32 (V, d + 1), rows of which are changed in place.
        squares: their sums of squared steps, likewise, 1 or more.
        ids: (word, context), int (U,) and (U',), the rows of the batch.
        sides: (word, context), `Side` of the rows before the batch.
        batch: dict of arrays.
        errors: float32 (N,), weighted differences.
        weights: float32 (N,).
        rates: (learning_rate, bias_rate).
        clip: float, largest component of a vector's gradient.
        damping: float, how many times the curvature bounds a step; 0: no bound.

    Returns:
        (side, row) of a row that would not be finite, and was left as it was; None if there is
        none.
    """
    order = batch["context_order"]
    by_word = (batch["word_places"], batch["context_places"], errors, weights)
    by_context = (
        batch["context_places"][order],
        batch["word_places"][order],
        errors[order],
        weights[order],
    )
    largest = np.abs(errors).max(initial=0)
    work = []
    for side, (places, *lines) in enumerate((by_word, by_context)):
        other = sides[1 - side]
        # No component can be larger than the product of the two.
        within = largest * np.sqrt(other.traces[:, 0].max(initial=0)) <= clip
        update = functools.partial(
            _update_rows,
            (tables[side], squares[side], ids[side]),
            (_starts(places, len(ids[side])), *lines),
            other,
            rates,
            None if within else clip,
            damping,
        )
        work += [(side, update, *rows) for rows in _slices(len(ids[side]), _ROWS)]
    bad = _run(_quietly, work)
    return min(((side, row) for side, row in bad if row is not None), default=None)


def _quietly(side, update, first, last):
    """Overflows are looked for, and end in an error; NumPy's settings are those of the thread."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return side, update(first, last)


def _starts(places, size):
    """Where the records of each row begin, places being sorted: int32 (size + 1,)."""
    starts = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(places, minlength=size), out=starts[1:])
    return starts


def _update_rows(own, lines, other, rates, clip, damping, first, last):
    """Rows `first` ... `last` - 1 of one side; returns the first that would not be finite."""
    table, squares, ids = own
    starts, columns, errors, weights = lines
    ids, here = ids[first:last], slice(starts[first], starts[last])
    starts, columns, weights = (
        starts[first : last + 1] - starts[first],
        columns[here],
        weights[here],
    )
    rate, bias_rate = np.float32(rates[0]), np.float32(rates[1])
    shape = (last - first, len(other.rows))
    if clip is None:
        errors = errors[here] * rate
        step = sparse.csr_matrix((errors, columns, starts), shape) @ other.rows
        square = sparse.csr_matrix((errors * errors, columns, starts), shape) @ other.squared
    else:
        each = errors[here, None] * other.rows[columns]
        np.clip(each[:, :-1], -clip, clip, out=each[:, :-1])
        each *= rate
        step = np.add.reduceat(each, starts[:-1])
        square = np.add.reduceat(each * each, starts[:-1])
    step[:, -1] *= bias_rate / rate
    square[:, -1] *= (bias_rate / rate) ** 2
    square += np.take(squares, ids, 0)
    denominator = np.sqrt(square)
    if damping:
        # Sums of weight times squared length: what Newton's method would divide by, at most.
        bound = sparse.csr_matrix((weights, columns, starts), shape) @ other.traces
        bound *= np.float32(damping) * np.array([rate, bias_rate])
        large = np.flatnonzero(bound.max(axis=1) > 1)  # denominators begin at 1
        if len(large):
            some = denominator[large]
            np.maximum(some[:, :-1], bound[large, :1], out=some[:, :-1])
            np.maximum(some[:, -1], bound[large, 1], out=some[:, -1])
            denominator[large] = some
    step /= denominator
    new = np.subtract(np.take(table, ids, 0), step, out=step)
    if not (np.isfinite(np.vdot(new, new)) and np.isfinite(np.vdot(square, square))):
        finite = np.isfinite(new).all(axis=1) & np.isfinite(square).all(axis=1)
        if not finite.all():  # else the sums of squares alone are too large
            return first + int(np.argmin(finite))
    table[ids], squares[ids] = new, square
    return None
