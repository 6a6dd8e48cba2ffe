"""The rows of fastText's input table that the words of a step are made of."""

import numpy as np

from kctx.data.few_shapes import few_shapes


class WordFeatures:
    """Rows of each word: its own, and those of its n-grams.

    Args:
        rows: int (K,), of all words, one word after the other.
        offsets: int64 (V + 1,), where those of each word begin and the last one's end.
    """

    # Room for so many rows and words of a step at least, and more in few sizes.
    ROWS, WORDS = 1024, 64

    def __init__(self, rows, offsets):
        self.rows = np.asarray(rows, np.int32)
        self.offsets = np.asarray(offsets, np.int64)
        self.sizes = np.diff(self.offsets)
        self._place = np.zeros(len(self.sizes), np.int32)

    def expected(self, present):
        """float (last row + 1,): how many words of a step are expected to share each row.

        Args:
            present: float (V,), the chance of each word to be in a step.
        """
        return np.bincount(self.rows, np.repeat(present, self.sizes))  # to the last row in use

    def of_steps(self, words):
        """The rows of the words of each step, each word once.

        Args:
            words: int32 (S, ...), the words of S steps.

        Returns:
            dict of arrays: `positions` int32 as `words`, the place of each word among the P
            distinct words of its step; `word_sizes` float32 (S, P), number of rows of each, 1 where
            there is no more word; `features` and `feature_words` int32 (S, E), rows and the places
            of their words, in order, P where there are no more.
        """
        found = [self._of_step(step.reshape(-1)) for step in words]
        most_words = few_shapes(max(len(sizes) for _, sizes, _ in found), self.WORDS)
        most_rows = few_shapes(max(len(rows) for *_, rows in found), self.ROWS)
        made = {
            "positions": np.stack([places for places, *_ in found]).reshape(words.shape),
            "word_sizes": np.ones((len(words), most_words), np.float32),
            "features": np.zeros((len(words), most_rows), np.int32),
            "feature_words": np.full((len(words), most_rows), most_words, np.int32),
        }
        for step, (_, sizes, rows) in enumerate(found):
            made["word_sizes"][step, : len(sizes)] = sizes
            made["features"][step, : len(rows)] = rows
            made["feature_words"][step, : len(rows)] = np.repeat(np.arange(len(sizes)), sizes)
        return made

    def _of_step(self, words):
        """(places of the words among the distinct ones, their sizes, their rows)."""
        distinct, positions = self._distinct(words)
        sizes = self.sizes[distinct]
        ends = np.cumsum(sizes)
        within = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
        return positions, sizes, self.rows[np.repeat(self.offsets[distinct], sizes) + within]

    def whole(self):
        """dict of arrays for kernels, which look the rows up: `features` and
        `feature_offsets`, as the class takes them."""
        return {"features": self.rows, "feature_offsets": self.offsets}

    def _distinct(self, words):
        """(distinct words, place of each word among them), without a sort."""
        numbers = np.arange(len(words), dtype=np.int32)
        self._place[words] = numbers  # the last one of equals stays
        chosen = self._place[words] == numbers
        distinct = words[chosen]
        self._place[distinct] = np.arange(len(distinct), dtype=np.int32)
        return distinct, self._place[words]
