"""The most similar rows of a table, found chunk by chunk so that memory stays bounded.

Similarity is the cosine. A row of zeros, or one that holds NaN or infinity, has no direction: its
similarity to everything is 0.
"""

import concurrent.futures
import os
import threading

import numpy as np

from kctx.vectors.tables import ROWS_AT_ONCE, DenseTable, chunks

METHODS = ("3cosadd", "3cosmul")
EPSILON = 0.001  # of 3CosMul: Levy and Goldberg, 2014, section 6
_MOST_THREADS = 8
_FEW = 8  # queries
_SQUARES = (np.float32(1e-30), np.float32(1e30))  # in which float32 is exact enough
_NUMBERS_AT_ONCE = 4_000_000  # similarities of a chunk
_COLUMNS = (256, 4096)  # fewest and most rows of a chunk
_BLOCK = 131072  # scores that are looked at in one go: they stay in the processor's cache


def unit(rows):
    """Rows (..., D) divided by their norms; zeros for rows that have no direction."""
    rows = np.asarray(rows, np.float32)
    flat = rows.reshape(-1, rows.shape[-1])
    scales = inverse_norms(flat)
    with np.errstate(invalid="ignore"):
        flat = flat * scales[:, None]
    if not scales.all():
        flat[scales == 0] = 0
    return flat.reshape(rows.shape)


def inverse_norms(rows):
    """(N,) float32: 1 / norm of each of (N, D) rows; 0 for rows that have no direction."""
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
        usable = (squares > _SQUARES[0]) & (squares < _SQUARES[1])  # not NaN
    if usable.all():
        return 1 / np.sqrt(squares)
    scales = np.zeros(len(rows), np.float32)
    scales[usable] = 1 / np.sqrt(squares[usable])
    # Squares that leave float32's range; rare, so by themselves.
    for index in np.flatnonzero(~usable):
        norm = float(np.linalg.norm(rows[index].astype(np.float64)))
        if np.isfinite(norm) and norm > 1e-37:  # else 1 / norm is not finite
            scales[index] = 1 / norm
    return scales


def table_inverse_norms(table):
    """`inverse_norms` of all rows of a table."""
    parts = [inverse_norms(rows) for _, rows in chunks(table)]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32)


def similarities(table, scales, queries, stop=None):
    """Cosines of unit queries with the first rows of a table.

    Args:
        table: table of shape (V, D).
        scales: (V,) float32, `table_inverse_norms` of it.
        queries: (Q, D) float32 of length 1.
        stop: int, number of rows to look at. Default: all.

    Returns:
        (Q, stop) float32.
    """
    stop = table.shape[0] if stop is None else min(stop, table.shape[0])
    scores = np.empty((len(queries), stop), np.float32)
    # Numbers that need no conversion are not copied either, and one product is faster than many.
    size = max(stop, 1) if isinstance(table, DenseTable) and table.is_direct else ROWS_AT_ONCE
    for start, rows in chunks(table, size, stop):
        block = scores[:, start : start + len(rows)]
        with np.errstate(invalid="ignore", over="ignore"):
            if len(queries) <= _FEW:  # far faster one by one
                for query, row in zip(queries, block, strict=True):
                    np.dot(rows, query, out=row)
            else:
                np.matmul(queries, rows.T, out=block)
            block *= scales[start : start + len(rows)]
        _clear_undirected(block, scales[start : start + len(rows)])
    return scores


def largest(scores, count):
    """Indices of the `count` largest of (V,) scores, largest first, ties by index."""
    count = min(count, len(scores))
    if count <= 0:
        return np.empty(0, np.int64)
    if count < len(scores):
        # The count-th largest of the maxima of short pieces is a bound below the result.
        piece = 256
        whole = len(scores) // piece * piece
        maxima = scores[:whole].reshape(-1, piece).max(axis=1)
        if len(maxima) > 2 * count:
            bound = np.partition(maxima, len(maxima) - count)[len(maxima) - count]
        else:
            bound = np.partition(scores, len(scores) - count)[len(scores) - count]
        candidates = np.flatnonzero(scores >= bound)
    else:
        candidates = np.arange(len(scores))
    order = np.argsort(-scores[candidates], kind="stable")[:count]
    return candidates[order]


def multiplied(positive, negative):
    """3CosMul from similarities: product of the positives / (product of the negatives + epsilon).

    Levy and Goldberg, 2014, equation 5; similarities are shifted to [0, 1].

    Args:
        positive, negative: lists of arrays of equal shape.
    """
    score = 1.0
    for part in positive:
        score = score * ((1 + part) / 2)
    below = 1.0
    for part in negative:
        below = below * ((1 + part) / 2)
    return score / (below + np.float32(EPSILON)) if negative else score


def answer_analogies(
    table, scales, questions, method="3cosadd", stop=None, variants=None, progress=None
):
    """The best answer d to each of many questions "a is to b as c is to d".

    The similarities of the questions' own words with a chunk of the table are computed once. What
    a question then costs is adding two of their rows and looking for the largest number, whatever
    the width of the vectors.

    Args:
        table: table of shape (V, D).
        scales: (V,) float32, `table_inverse_norms` of it.
        questions: (Q, 3) int, rows a, b and c; none of them is an answer.
        method: "3cosadd", the largest cos(d, b - a + c), or "3cosmul". Default "3cosadd".
        stop: int, answers are among the first `stop` rows. Default: all.
        variants: dict of row to list of further rows that are no answers where this one is asked
            about: other spellings of the same word. Default: none.
        progress: function, called with the share of the work that was done since its last call.

    Returns:
        (Q,) int64, row of the answer; -1 where there is none.
    """
    stop = table.shape[0] if stop is None else min(stop, table.shape[0])
    questions = np.asarray(questions, np.int64).reshape(-1, 3)
    if not len(questions):
        return np.empty(0, np.int64)
    search = _Search(table, scales, questions, method, variants or {})
    starts = range(0, stop, search.columns)
    best = np.full(len(questions), -np.inf, np.float32)
    answers = np.full(len(questions), -1, np.int64)
    lock = threading.Lock()

    def work(mine):
        # NumPy works on other threads' chunks while it works on this one's.
        own_best, own_answers = best.copy(), answers.copy()
        for start in mine:
            search.look(start, min(start + search.columns, stop), own_best, own_answers)
            if progress is not None:
                progress(1 / len(starts))
        with lock:
            better = (own_best > best) | ((own_best == best) & (own_answers < answers))
            best[better], answers[better] = own_best[better], own_answers[better]

    threads = max(1, min(_MOST_THREADS, os.cpu_count() or 1, len(starts)))
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, [starts[i::threads] for i in range(threads)]))
    result = np.empty(len(questions), np.int64)
    result[search.order] = answers
    return result


class _Search:
    """Looks for answers in a chunk of a table.

    A score is the sum of a part of the pair (a, b) and a part of c. 3CosAdd: cos(d, b) - cos(d, a)
    and cos(d, c). 3CosMul: the logarithms of its factors.
    """

    def __init__(self, table, scales, questions, method, variants):
        self.table, self.scales, self.method = table, scales, method
        used, places = np.unique(questions, return_inverse=True)
        places = places.reshape(-1, 3)
        self.words = unit(table.rows(used))
        self.order = np.lexsort((places[:, 2], places[:, 1], places[:, 0]))
        a, b, self.c = places[self.order].T
        borders = np.flatnonzero((np.diff(a) != 0) | (np.diff(b) != 0)) + 1
        firsts, lasts = np.append(0, borders), np.append(borders, len(a))
        # Questions with the same a and b: (a, b, first question, behind the last one).
        self.groups = [
            (int(a[i]), int(b[i]), i, j)
            for i, j in zip(firsts.tolist(), lasts.tolist(), strict=True)
        ]
        pairs = [(row, place) for place, row in enumerate(used.tolist())]
        pairs += [(other, place) for row, place in pairs for other in variants.get(row, ())]
        # The questions' own words by row, to find those of a chunk.
        self.own, self.owners = np.array(sorted(pairs), np.int64).T
        self.columns = int(np.clip(_NUMBERS_AT_ONCE // len(used), *_COLUMNS))
        self.block_rows = max(1, _BLOCK // self.columns)

    def look(self, start, stop, best, answers):
        """Updates the best scores so far, and their rows, by the rows from `start` to `stop`."""
        plus, minus = self._parts(start, stop)
        first, last = np.searchsorted(self.own, [start, stop])
        owners, columns = self.owners[first:last], self.own[first:last] - start
        plus[owners, columns] = -np.inf
        own_columns = {}
        for owner, column in zip(owners.tolist(), columns.tolist(), strict=True):
            own_columns.setdefault(owner, []).append(column)
        buffer = np.empty((self.block_rows, stop - start), np.float32)
        pair = np.empty(stop - start, np.float32)
        for a, b, begin, end in self.groups:
            with np.errstate(invalid="ignore"):
                np.subtract(plus[b], minus[a], out=pair)
            if a in own_columns:
                pair[own_columns[a]] = -np.inf
            for i in range(begin, end, self.block_rows):
                j = min(i + self.block_rows, end)
                block = buffer[: j - i]
                np.take(plus, self.c[i:j], axis=0, out=block, mode="clip")
                block += pair
                maxima = block.max(axis=1)
                # Frequent words come first, so a better answer in a later chunk is rare.
                better = np.flatnonzero(maxima > best[i:j])
                if len(better):
                    best[i + better] = maxima[better]
                    answers[i + better] = start + block[better].argmax(axis=1)

    def _parts(self, start, stop):
        """What b and c add to a score, and what a takes from it: two (words, columns) arrays."""
        rows, scales = self.table.chunk(start, stop), self.scales[start:stop]
        with np.errstate(invalid="ignore", over="ignore"):
            cosines = self.words @ rows.T
            cosines *= scales
        _clear_undirected(cosines, scales)
        if self.method == "3cosadd":
            return cosines, cosines
        shifted = np.maximum((1 + cosines) / 2, np.float32(1e-7))
        return np.log(shifted), np.log(shifted + np.float32(EPSILON))


def _clear_undirected(block, scales):
    """Sets the similarity to rows without a direction to 0, where NaN may stand."""
    if not scales.all():
        block[:, scales == 0] = 0
