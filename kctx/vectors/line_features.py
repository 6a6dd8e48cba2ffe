"""The rows of fastText's input table that a line of text is made of."""

import re

import numpy as np

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
        subwords: `Subwords`.
        word_ngrams: n, int, longest n-gram of words; 1: none.
        prune_map: as `SubwordRows`.
    """

    def __init__(self, words, subwords, word_ngrams=1, prune_map=None):
        self.ids = dict(zip(words, range(len(words)), strict=True))
        self.rows = SubwordRows(words, subwords, prune_map)
        self.word_ngrams, self.buckets = word_ngrams, subwords.buckets

    def of_lines(self, lines):
        """Rows of many lines.

        Args:
            lines: list of lists of str, the tokens of each, without labels and without `</s>`.

        Returns:
            (rows, offsets): int64 (K,), of all lines, one after the other; int64 (N + 1,).
        """
        places, flat, offsets = {}, [], [0]
        for line in lines:
            flat += [places.setdefault(token, len(places)) for token in line]
            flat.append(places.setdefault(END_OF_SENTENCE, len(places)))
            offsets.append(len(flat))
        flat, offsets = np.array(flat, np.int64), np.array(offsets, np.int64)
        tokens = list(places)
        known = np.fromiter((self.ids.get(token, -1) for token in tokens), np.int64, len(tokens))
        rows, starts = concatenated(*self.rows.of_words(tokens, known), flat)
        ends = starts[offsets]
        if self.word_ngrams < 2 or not self.buckets:
            return rows, ends
        hashes = hash_tokens(tokens)[flat]
        more, bounds = self.rows.of_buckets(
            *word_ngram_ids(hashes, self.word_ngrams, self.buckets, offsets)
        )
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
