"""The rows of fastText's input table that a line of text is made of."""

import re

import numpy as np

from kctx.arguments import check_count
from kctx.vectors.subword_table import SubwordRows
from kctx.vectors.subwords import END_OF_SENTENCE, hash_tokens, word_ngram_ids

_SPACE = re.compile("[ \n\r\t\v\f\0]+")


def line_tokens(line):
    """Tokens of a line, split at fastText's white space: list of str."""
    return [token for token in _SPACE.split(line) if token]


class LineFeatures:
    """Rows of a line: those of its words, of their character n-grams, and of its word n-grams.

    Joulin et al. 2017, section 2. As in the reference the end of a line is a word of its own,
    `</s>`, and n-grams of words are made of unknown words as well.

    Args:
        words: list of str, the vocabulary.
        subwords: `Subwords`; its buckets are those of n-grams of words, too.
        word_ngrams: n, int, longest n-gram of words; 1: none. Default 1.
        prune_map: as `SubwordRows`.

    Raises:
        ValueError: n-grams of words without buckets.
    """

    def __init__(self, words, subwords, word_ngrams=1, prune_map=None):
        check_count("word_ngrams", word_ngrams)
        if word_ngrams > 1 and not subwords.buckets:
            raise ValueError(
                "N-grams of words need buckets. "
                f"Received: word_ngrams={word_ngrams}, subwords={subwords!r}"
            )
        self.ids = dict(zip(words, range(len(words)), strict=True))
        self.rows = SubwordRows(words, subwords, prune_map)
        self.word_ngrams, self.buckets = word_ngrams, subwords.buckets

    def distinct(self, lines):
        """The different tokens of many lines.

        Args:
            lines: list of lists of str, the tokens of each, without labels and without `</s>`.

        Returns:
            (tokens, places, offsets): list of str; int64 (T,), the place in it of each token of
            all lines, `</s>` behind each line; int64 (N + 1,), where those of each line begin.
        """
        known, places, offsets = {}, [], [0]
        for line in lines:
            places += [known.setdefault(token, len(known)) for token in line]
            places.append(known.setdefault(END_OF_SENTENCE, len(known)))
            offsets.append(len(places))
        return list(known), np.array(places, np.int64), np.array(offsets, np.int64)

    def of_tokens(self, tokens):
        """(rows, offsets) of different tokens: their own and those of n-grams of characters."""
        ids = np.fromiter((self.ids.get(token, -1) for token in tokens), np.int64, len(tokens))
        return self.rows.of_words(tokens, ids)

    def of_word_ngrams(self, tokens, places, offsets):
        """(rows, offsets) of each line's n-grams of words; takes what `distinct` gives."""
        if self.word_ngrams < 2:
            return np.zeros(0, np.int64), np.zeros(len(offsets), np.int64)
        hashes = hash_tokens(tokens)[places]
        return self.rows.of_buckets(
            *word_ngram_ids(hashes, self.word_ngrams, self.buckets, offsets)
        )

    def of_lines(self, lines):
        """Rows of many lines.

        Args:
            lines: as `distinct`.

        Returns:
            (rows, offsets): int64 (K,), of all lines, one after the other; int64 (N + 1,).
        """
        tokens, places, offsets = self.distinct(lines)
        rows, starts = concatenated(*self.of_tokens(tokens), places)
        ends = starts[offsets]
        more, bounds = self.of_word_ngrams(tokens, places, offsets)
        return np.insert(rows, np.repeat(ends[1:], np.diff(bounds)), more), ends + bounds


def concatenated(values, offsets, chosen):
    """The chosen pieces of a flat array, one after the other.

    Args:
        values: (K,), pieces one after the other.
        offsets: int64 (N + 1,), where each begins and the last one ends.
        chosen: int (M,), which pieces.

    Returns:
        (values, offsets) of the M pieces.
    """
    lengths = np.diff(offsets)[chosen]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    within = np.arange(bounds[-1]) - np.repeat(bounds[:-1], lengths)
    return values[np.repeat(offsets[chosen], lengths) + within], bounds
