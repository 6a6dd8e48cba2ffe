"""The most similar rows of a table, found chunk by chunk so that memory stays bounded.

Similarity is the cosine. A row of zeros, or one that holds NaN or infinity, has no direction: its
similarity to everything is 0.
"""

import numpy as np

from kctx.vectors.tables import chunks

METHODS = ("3cosadd", "3cosmul")
EPSILON = 0.001  # of 3CosMul: Levy and Goldberg, 2014, section 6
_QUERIES_AT_ONCE = 1024
_COLUMNS_AT_ONCE = 4096


def unit(rows):
    """Rows (..., D) divided by their norms; zeros for rows that have no direction."""
    rows = np.asarray(rows, np.float32)
    scales = inverse_norms(rows.reshape(-1, rows.shape[-1])).reshape(*rows.shape[:-1], 1)
    return np.where(scales > 0, rows, 0) * scales


def inverse_norms(rows):
    """(N,) float32: 1 / norm of each of (N, D) rows; 0 for rows that have no direction."""
    with np.errstate(invalid="ignore", over="ignore"):
        squares = np.einsum("ij,ij->i", rows, rows)
    scales = np.zeros(len(rows), np.float32)
    usable = np.isfinite(squares) & (squares > 0)
    scales[usable] = 1 / np.sqrt(squares[usable])
    # Squares that leave float32's range; rare, so by themselves.
    for index in np.flatnonzero(~usable):
        norm = float(np.linalg.norm(rows[index].astype(np.float64)))
        if np.isfinite(norm) and norm > 0:
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
    for start, rows in chunks(table, stop=stop):
        block = scores[:, start : start + len(rows)]
        with np.errstate(invalid="ignore", over="ignore"):
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


def answer_analogies(table, scales, questions, method="3cosadd", stop=None, progress=None):
    """The best answer d to each of many questions "a is to b as c is to d".

    Args:
        table: table of shape (V, D).
        scales: (V,) float32, `table_inverse_norms` of it.
        questions: (Q, 3) int, rows a, b and c; none of them is an answer.
        method: "3cosadd", the largest cos(d, b - a + c), or "3cosmul". Default "3cosadd".
        stop: int, answers are among the first `stop` rows. Default: all.
        progress: function, called with the number of questions answered since its last call.

    Returns:
        (Q,) int64, row of the answer; -1 where there is none.
    """
    stop = table.shape[0] if stop is None else min(stop, table.shape[0])
    questions = np.asarray(questions, np.int64).reshape(-1, 3)
    best = np.full(len(questions), -np.inf, np.float32)
    answers = np.full(len(questions), -1, np.int64)
    rows_of_words, places = np.unique(questions, return_inverse=True)
    places = places.reshape(-1, 3)
    words = unit(table.rows(rows_of_words)) if len(questions) else None
    for first in range(0, len(questions), _QUERIES_AT_ONCE):
        some = slice(first, min(first + _QUERIES_AT_ONCE, len(questions)))
        a, b, c = (words[places[some, i]] for i in range(3))
        search = _Search(questions[some], best[some], answers[some])
        if method == "3cosadd":
            search.added(table, scales, unit(b - a + c), stop)
        else:
            search.multiplied(table, scales, words, places[some], stop)
        if progress is not None:
            progress(some.stop - some.start)
    return answers


class _Search:
    """The best answers so far of some questions; `best` and `answers` are filled in place."""

    def __init__(self, questions, best, answers):
        self.best, self.answers = best, answers
        # The questions' own words by row, to find those of a chunk.
        self.own = np.sort(questions.T.reshape(-1))
        self.owners = np.argsort(questions.T.reshape(-1), kind="stable") % len(questions)
        self.block = np.empty((len(questions), _COLUMNS_AT_ONCE), np.float32)

    def added(self, table, scales, queries, stop):
        for start, rows in _unit_chunks(table, scales, stop):
            block = self.block[:, : len(rows)]
            np.matmul(queries, rows.T, out=block)
            self._take(block, start)

    def multiplied(self, table, scales, words, places, stop):
        used, places = np.unique(places, return_inverse=True)
        a, b, c = places.reshape(-1, 3).T
        for start, rows in _unit_chunks(table, scales, stop):
            shifted = (1 + words[used] @ rows.T) / 2
            block = self.block[:, : len(rows)]
            np.multiply(shifted[b], shifted[c], out=block)
            block /= shifted[a] + np.float32(EPSILON)
            self._take(block, start)

    def _take(self, block, start):
        first, last = np.searchsorted(self.own, [start, start + block.shape[1]])
        block[self.owners[first:last], self.own[first:last] - start] = -np.inf
        maxima = block.max(axis=1)
        # Frequent words come first, so a better answer in a later chunk is rare.
        better = np.flatnonzero(maxima > self.best)
        self.best[better] = maxima[better]
        self.answers[better] = start + block[better].argmax(axis=1)


def _unit_chunks(table, scales, stop):
    """The rows of a table, divided by their norms."""
    for start, rows in chunks(table, _COLUMNS_AT_ONCE, stop):
        some = scales[start : start + len(rows)]
        with np.errstate(invalid="ignore"):
            rows = rows * some[:, None]
        if not some.all():
            rows[some == 0] = 0
        yield start, rows


def _clear_undirected(block, scales):
    """Sets the similarity to rows without a direction to 0, where NaN may stand."""
    if not scales.all():
        block[:, scales == 0] = 0
