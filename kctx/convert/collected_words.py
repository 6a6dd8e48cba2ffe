"""Words and rows as they come out of a file, gathered into `Vectors`."""

import numpy as np

from kctx.vectors import Vectors
from kctx.vectors.tables import TableWriter
from kctx.words import to_text

_SURROGATES = range(0xDC80, 0xDD00)


def decoded(words):
    """Words from bytes; bytes that are not UTF-8 become lone surrogates."""
    return [to_text(word) for word in words]


def is_invalid(word):
    """Whether a word holds bytes that are not UTF-8."""
    return not word.isascii() and any(ord(character) in _SURROGATES for character in word)


class CollectedWords:
    """Keeps the words that are wanted, each once, and notes what is odd.

    Args:
        report: `VectorsReport` to fill.
        expected: int, number of rows that are to come, as far as known.
        dim: int, width of the rows.
        first: int, keep only the first so many words. Default: all.
        only: collection of str, keep only these. Default: all.
        storage: "float32", "float16" or "int8".
    """

    def __init__(self, report, expected, dim, first=None, only=None, storage="float32"):
        self.report, self.first = report, first
        self.only = None if only is None else frozenset(only)
        for limit in (first, None if only is None else len(self.only)):
            expected = expected if limit is None else min(expected, limit)
        self.words, self._seen = [], set()
        self._writer = TableWriter(expected, dim, storage)
        report.dim = dim

    @property
    def is_full(self):
        """Whether no later row can be wanted."""
        wanted = [self.first] + ([] if self.only is None else [len(self.only)])
        return any(limit is not None and len(self.words) >= limit for limit in wanted)

    def add(self, words, rows):
        """Takes words (list of bytes) and their rows (n, D) float32."""
        words = decoded(words)
        kept = []
        for place, word in enumerate(words):
            if self.only is not None and word not in self.only:
                continue
            if word in self._seen:
                self.report.duplicates.append(word)
                continue
            if self.first is not None and len(self.words) >= self.first:
                break
            self._seen.add(word)
            self.words.append(word)
            kept.append(place)
        if len(kept) < len(words):
            rows = rows[kept]
        new = self.words[len(self.words) - len(kept) :]
        if not "".join(new).isascii():
            self.report.invalid_utf8 += [word for word in new if is_invalid(word)]
        if len(rows) and not np.isfinite(np.min(rows) + np.max(rows)):
            bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
            self.report.nan_rows += [new[i] for i in bad]
        self._writer.put(rows)

    def vectors(self):
        """`Vectors` of what was kept.

        Raises:
            ValueError: nothing was.
        """
        if not self.words and self.only is None:
            raise ValueError(f"{self.report.path} holds no words.")
        if not self.words:
            raise ValueError(f"{self.report.path} holds none of the words that were asked for.")
        self.report.words = len(self.words)
        return Vectors(self.words, self._writer.table())
