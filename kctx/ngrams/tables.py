"""Back-off tables: listed probabilities and back-off weights, found by sorted integer keys."""

import numpy as np

from kctx.ngrams.suffix_order import find
from kctx.ngrams.text import START

IMPOSSIBLE = np.float32(-np.inf)  # log10 of 0; written as -99 in ARPA files, as SRILM does


class BackoffTables:
    """`log p(w | h) = P(hw)` where listed, else `B(h) + log p(w | h')`; a missing B is 0.

    The n-grams of order k are sorted by key, `place of the n-gram without its first word in the
    table of order k - 1, times len(words), plus the id of the first word`; so a walk from the last
    word leftwards finds ever longer n-grams, one binary search each.

    Args:
        words: list of bytes; `<unk>`, `<s>`, `</s>` first.
        keys: list of sorted int64 arrays, order 2 upwards.
        probabilities: list of float32 arrays of log10 p, order 1 upwards.
        backoffs: list of float32 arrays of log10 back-off weights, of all orders but the highest.
    """

    def __init__(self, words, keys, probabilities, backoffs):
        self.words = words
        self.keys = keys
        self.probabilities = probabilities
        self.backoffs = backoffs

    @property
    def order(self):
        return len(self.probabilities)

    @property
    def sizes(self):
        return [len(table) for table in self.probabilities]

    def chain(self, columns):
        """Places of ever longer n-grams that end alike.

        Args:
            columns: list of (N,) id arrays, the last words first; -1 where there is no word.

        Returns:
            list of (N,) int32 places in the tables of orders 1, 2, .., -1 where not listed.
        """
        places = [columns[0].astype(np.int32)]
        for keys, column in zip(self.keys, columns[1:], strict=False):
            before = places[-1]
            possible = np.flatnonzero((before >= 0) & (column >= 0))
            wanted = before[possible].astype(np.int64) * len(self.words) + column[possible]
            place = np.full(len(before), -1, np.int32)
            place[possible] = find(keys, wanted)
            places.append(place)
        return places

    def log_probabilities(self, contexts, ngrams):
        """log10 p(w | h) of N positions.

        Args:
            contexts: `chain` of h: places of the contexts of 1, 2, .. words.
            ngrams: `chain` of hw.

        Returns:
            (N,) float64.
        """
        result = np.zeros(len(ngrams[0]))
        longest = np.zeros(len(ngrams[0]), np.int32)
        for k, place in enumerate(ngrams):
            found = place >= 0
            result[found] = self.probabilities[k][place[found]]
            longest[found] = k
        for k, place in enumerate(contexts[: self.order - 1]):
            used = (place >= 0) & (longest <= k)
            result[used] += self.backoffs[k][place[used]]
        return result

    def rows_of(self, order, start=0, stop=None):
        """(n, order) word ids of the n-grams of one order, or of a part of them."""
        size = len(self.words)
        if order == 1:
            return np.arange(start, size if stop is None else stop)[:, None]
        key, columns = self.keys[order - 2][start:stop], []
        for k in range(order, 1, -1):
            place = key // size
            columns.append(key - place * size)
            key = place if k == 2 else self.keys[k - 3][place]
        return np.stack([*columns, place], axis=1)

    def followers(self, order):
        """Which n-grams of an order continue each context: (starts, places, last words).

        The n-grams that continue the context at place i of the order below are
        `places[starts[i]:starts[i + 1]]`, their last words stand beside.
        """
        rows = self.rows_of(order)
        columns = [rows[:, k] for k in range(order - 2, -1, -1)]
        prefix = self.chain(columns)[-1] if order > 1 else np.zeros(len(rows), np.int32)
        places = np.argsort(prefix, kind="stable")
        counts = np.bincount(prefix + 1, minlength=(self.sizes[order - 2] if order > 1 else 1) + 1)
        starts = np.cumsum(counts)
        return starts, places, rows[places, -1]


def predicted(words):
    """bool of each id: whether it can be predicted, which all can but `<s>`."""
    mask = np.ones(len(words), bool)
    mask[START] = False
    return mask
