"""Word vectors made of the rows of a word and of its n-grams."""

import numpy as np

# Numbers gathered in one go, so that the memory does not grow with the vocabulary.
_NUMBERS_AT_ONCE = 4_000_000


class SubwordRows:
    """Which rows of fastText's input matrix make up a word.

    Rows 0 to V - 1 of the matrix belong to the words, row V + bucket to an n-gram. A pruned matrix
    keeps only some buckets, each at a new place; n-grams of the others are dropped.

    Args:
        words: list of str.
        subwords: `Subwords`.
        prune_map: (K, 2) int32, bucket and its new number; None if the matrix is not pruned.
    """

    def __init__(self, words, subwords, prune_map=None):
        self.num_words, self.subwords = len(words), subwords
        self.places = None
        if prune_map is not None:
            self.places = np.full(max(subwords.buckets, 1), -1, np.int32)
            if len(prune_map):
                self.places[prune_map[:, 0]] = prune_map[:, 1]

    def of_words(self, words, word_ids=None):
        """Rows of words, flat, and where those of each begin.

        Args:
            words: list of str.
            word_ids: (N,) int, the row of each word, -1 for a word outside the vocabulary. Default:
                all outside.

        Returns:
            (rows, offsets): (K,) int64 and (N + 1,) int64; the word's own row comes first.
        """
        ids, offsets = self.of_buckets(*self.subwords.ids_of(words))
        if word_ids is None:
            return ids, offsets
        word_ids = np.asarray(word_ids, np.int64)
        known = word_ids >= 0
        ids = np.insert(ids, offsets[:-1][known], word_ids[known])
        return ids, offsets + np.concatenate([[0], np.cumsum(known)])

    def of_word(self, word):
        """Rows of the n-grams of one word: (K,) int64; faster than `of_words` for one."""
        buckets = np.array(self.subwords.ids(word), np.int64)
        if self.places is not None and len(buckets):
            buckets = self.places[buckets]
            buckets = buckets[buckets >= 0]
        return buckets + self.num_words

    def of_buckets(self, buckets, offsets):
        """Rows of buckets, without those that were pruned away: as `of_words`."""
        if self.places is None:
            return buckets.astype(np.int64) + self.num_words, offsets
        places = self.places[buckets] if len(buckets) else buckets
        kept = places >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        return places[kept].astype(np.int64) + self.num_words, before[offsets]


def sums_of_rows(table, ids, offsets):
    """Sums of groups of rows.

    Args:
        table: table of shape (R, D).
        ids: (K,) int64, rows of all groups, one group after the other.
        offsets: (N + 1,) int64, where each group begins and the last one ends.

    Returns:
        (N, D) float32, zeros for a group without rows. Rows are added in their order.
    """
    sums = np.zeros((len(offsets) - 1, table.shape[1]), np.float32)
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, table.shape[1]))
    first = 0
    while first < len(sums):
        last = int(np.searchsorted(offsets, offsets[first] + at_once, side="right")) - 1
        last = min(max(last, first + 1), len(sums))
        if offsets[last] - offsets[first] > at_once:  # one group that is too large by itself
            for start in range(offsets[first], offsets[last], at_once):
                some = ids[start : min(start + at_once, offsets[last])]
                sums[first] += table.rows(some).sum(axis=0)
        else:
            rows = table.rows(ids[offsets[first] : offsets[last]])
            with np.errstate(invalid="ignore", over="ignore"):  # rows need not be finite
                _add_groups(rows, offsets[first : last + 1] - offsets[first], sums[first:last])
        first = last
    return sums


def _add_groups(rows, offsets, sums):
    """Adds rows to the sums of their groups: the k-th row of every group that has one, k by k."""
    lengths = np.diff(offsets)
    order = np.argsort(-lengths, kind="stable")  # longest first: those that go on are the first
    sorted_lengths, starts = lengths[order], offsets[:-1][order]
    result = np.zeros_like(sums)
    for k in range(int(sorted_lengths[0]) if len(order) else 0):
        live = int(np.searchsorted(-sorted_lengths, -k, side="left"))
        if live < 4:  # few long groups: by themselves
            for i in range(live):
                result[i] += rows[starts[i] + k : starts[i] + sorted_lengths[i]].sum(axis=0)
            break
        result[:live] += rows[starts[:live] + k]
    sums[order] = result


def means_of_rows(table, ids, offsets):
    """Means instead of `sums_of_rows`; zeros for a group without rows."""
    counts = np.diff(offsets)
    scales = (1.0 / np.maximum(counts, 1)).astype(np.float32)
    return sums_of_rows(table, ids, offsets) * scales[:, None]


class SubwordTable:
    """The averaged vectors of a vocabulary, each computed when it is first asked for and kept.

    See `kctx.vectors.tables` for what a table offers.

    Args:
        inputs: table of shape (V + buckets, D), fastText's input matrix.
        words: list of str, V of them.
        subword_rows: `SubwordRows`.
    """

    storage = "float32"

    def __init__(self, inputs, words, subword_rows):
        self.inputs, self.words, self.subword_rows = inputs, words, subword_rows
        self.shape = (len(words), inputs.shape[1])
        self._means = np.empty(self.shape, np.float32)  # no memory is taken until it is written
        self._done = np.zeros(len(words), bool)

    def rows(self, ids):
        """(N, D) float32."""
        if isinstance(ids, int) and self._done[ids]:
            return self._means[ids].copy()
        missing = np.arange(self.shape[0])[ids]
        self._compute(np.unique(missing[~self._done[missing]]))
        return self._means[ids]

    def chunk(self, start, stop):
        """(stop - start, D) float32."""
        self._compute(start + np.flatnonzero(~self._done[start:stop]))
        return self._means[start:stop]

    def first(self, count):
        """The table of the first rows."""
        return SubwordTable(self.inputs, self.words[:count], self.subword_rows)

    def _compute(self, ids):
        for start in range(0, len(ids), 8192):
            some = ids[start : start + 8192]
            rows, offsets = self.subword_rows.of_words([self.words[i] for i in some], some)
            self._means[some] = means_of_rows(self.inputs, rows, offsets)
            self._done[some] = True
