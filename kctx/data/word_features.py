"""The rows of fastText's input table that the words of a step are made of."""

import numpy as np

from kctx.data.few_shapes import few_shapes


class WordFeatures:
    """Rows of each word: its own, and those of its n-grams.

    Args:
        rows: int (K,), of all words, one word after the other.
        offsets: int64 (V + 1,), where those of each word begin and the last one's end.
    """

    # Room for so many rows and words of a batch at least, and more in few steps.
    ROWS, WORDS = 4096, 256

    def __init__(self, rows, offsets):
        self.rows = np.asarray(rows, np.int32)
        self.offsets = np.asarray(offsets, np.int64)
        self.sizes = np.diff(self.offsets)
        self._place = np.zeros(len(self.sizes), np.int32)

    def expected(self, present):
        """float (rows,): how many words of a batch are expected to share each row.

        Args:
            present: float (V,), the chance of each word to be in a batch.
        """
        return np.bincount(self.rows, np.repeat(present, self.sizes))

    def of_batch(self, words):
        """The rows of the words of a batch, each word once.

        Args:
            words: int32, any shape.

        Returns:
            dict of arrays: `positions` int32 as `words`, the place of each word among the P
            distinct words of the batch; `word_sizes` float32 (P,), number of rows of each, 1 where
            there is no more word; `features` and `feature_words` int32 (E,), rows and the places
            of their words, in order, P where there are no more.
        """
        distinct, positions = self._distinct(words.reshape(-1))
        lengths = self.sizes[distinct]
        ends = np.cumsum(lengths)
        within = np.arange(ends[-1]) - np.repeat(ends - lengths, lengths)
        found = self.rows[np.repeat(self.offsets[distinct], lengths) + within]
        sizes = np.ones(few_shapes(len(distinct), self.WORDS), np.float32)
        sizes[: len(distinct)] = lengths
        features = np.zeros(few_shapes(len(found), self.ROWS), np.int32)
        features[: len(found)] = found
        owners = np.full(len(features), len(sizes), np.int32)
        owners[: len(found)] = np.repeat(np.arange(len(distinct)), lengths)
        return {
            "positions": positions.reshape(words.shape),
            "word_sizes": sizes,
            "features": features,
            "feature_words": owners,
        }

    def _distinct(self, words):
        """(distinct words, place of each word among them), without a sort."""
        numbers = np.arange(len(words), dtype=np.int32)
        self._place[words] = numbers  # the last one of equals stays
        chosen = self._place[words] == numbers
        distinct = words[chosen]
        self._place[distinct] = np.arange(len(distinct), dtype=np.int32)
        return distinct, self._place[words]
