"""Word vectors apart from what trained them."""

import numbers
from collections.abc import Iterable

import numpy as np

from kctx.arguments import check_count
from kctx.vectors import storage
from kctx.vectors.neighbours import (
    METHODS,
    largest,
    multiplied,
    similarities,
    table_inverse_norms,
    unit,
)
from kctx.vectors.subword_table import SubwordRows, means_of_rows
from kctx.vectors.tables import DenseTable, as_table, check_storage, stored_as
from kctx.words import to_text, word_list

_WHITESPACE = "\t\n\v\f\r "
_NO_SUBWORDS = (
    "these vectors have no subwords, so that only the words of the table have a vector. A .vec or "
    "word2vec file holds words only; fastText's .bin of the same model also holds the n-grams that "
    "give any word one"
)


class Vectors:
    """A table of word vectors: lookup, similarity, analogies, words outside the vocabulary.

    Similarity is the cosine; a vector of zeros, or with NaN, is similar to nothing (0).
    Everything that looks at all words does it chunk by chunk, so that a memory-mapped table stays
    on the disk.

    Args:
        words: list of str, most frequent first. Bytes that are not UTF-8 stand in them as lone
            surrogates ("surrogateescape").
        table: (V, D) float32 or float16 array, memory-mapped or not, or a table of
            `kctx.vectors.tables`.
        subwords: `Subwords`, for vectors of words outside the table; needs `subword_table`.
        subword_table: (R, D) array or table, the rows of n-grams. With `subword_rows` left out it
            has a row for each bucket.
        subword_rows: `SubwordRows`, where the n-grams' rows lie if not in the order of the buckets.
        labels: list of str, of a supervised model. Default: none.
        counts: (V,) int64, how often each word was seen. Default: not known.

    Raises:
        ValueError: words that are no str; shapes that do not fit; the same word twice
            (`kctx.convert.load_vectors` keeps the first one of a file).
    """

    def __init__(
        self,
        words,
        table,
        subwords=None,
        subword_table=None,
        subword_rows=None,
        labels=None,
        counts=None,
    ):
        self.words, self.table = word_list(words), as_table(table)
        if self.table.shape[1] < 1:
            raise ValueError(
                "`table` must hold one number a word at least. "
                f"Received: shape {tuple(self.table.shape)}"
            )
        if len(self.words) != self.table.shape[0]:
            raise ValueError(
                "`words` and `table` must be of the same length. "
                f"Received: {len(self.words)} words, {self.table.shape[0]} rows"
            )
        self._index = dict(zip(self.words, range(len(self.words)), strict=True))
        if len(self._index) < len(self.words):
            double = next(w for i, w in enumerate(self.words) if self._index[w] != i)
            raise ValueError(f"`words` must not hold a word twice. Received: {double!r} twice")
        if counts is not None and len(counts) != len(self.words):
            raise ValueError(
                f"`counts` must have an entry for each word. Received: {len(counts)} for "
                f"{len(self.words)} words"
            )
        self.counts = None if counts is None else np.asarray(counts, np.int64)
        self.labels = list(labels or [])
        self.subwords, self.subword_table, self._subword_rows = subwords, None, None
        if subwords is not None:
            self._set_subwords(subword_table, subword_rows)
        elif subword_table is not None:
            raise ValueError("`subword_table` needs `subwords`. Received: subwords=None")
        self._scales = None

    def _set_subwords(self, table, rows):
        if table is None:
            raise ValueError("`subwords` need `subword_table`. Received: subword_table=None")
        self.subword_table = as_table(table)
        if rows is None:
            rows = SubwordRows([], self.subwords)
            expected = (self.subwords.buckets, self.dim)
            if tuple(self.subword_table.shape) != expected:
                raise ValueError(
                    f"`subword_table` must have shape {expected}, a row for each bucket. "
                    f"Received: shape {tuple(self.subword_table.shape)}"
                )
        self._subword_rows = rows

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return word in self._index

    def __repr__(self):
        return (
            f"Vectors({len(self)} words, dim {self.dim}, {self.table.storage}"
            f"{'' if self.subwords is None else f', {self.subwords!r}'})"
        )

    @property
    def dim(self):
        """Width of the vectors."""
        return self.table.shape[1]

    def index(self, word):
        """The row of a word of the table; raises a `KeyError` for others."""
        if word not in self._index:
            raise KeyError(f"{word!r} is not among the {len(self)} words of the table.")
        return self._index[word]

    def __getitem__(self, word):
        """The vector of a word, (D,) float32; of a list of words, (N, D).

        A word outside the table has the mean of its n-grams' rows, and zeros where it has no
        n-grams. Without subwords it has none.

        Raises:
            KeyError: a word outside the table, without subwords; says why.
        """
        if not isinstance(word, (str, bytes)):
            return self.get(word)
        place = self._index.get(word)
        if place is not None:
            return self.table.rows(place)
        if self.subwords is None or isinstance(word, bytes):
            return self.get([word])[0]
        rows = self._subword_rows.of_word(word)
        scale = np.float32(1.0 / max(len(rows), 1))
        return self.subword_table.rows(rows).sum(axis=0) * scale

    def get(self, words):
        """Vectors of many words at once: list of str -> (N, D) float32; raises as `[]` does."""
        words = word_list(words, bytes)
        words = [to_text(w) if isinstance(w, bytes) else w for w in words]
        places = np.fromiter((self._index.get(w, -1) for w in words), np.int64, len(words))
        outside = np.flatnonzero(places < 0)
        if not len(outside):
            return self.table.rows(places)
        missing = [words[i] for i in outside]
        if self.subwords is None:
            raise KeyError(f"No vector for {missing[0]!r}: {_NO_SUBWORDS}.")
        result = np.empty((len(words), self.dim), np.float32)
        known = places >= 0
        if known.any():
            result[known] = self.table.rows(places[known])
        result[outside] = means_of_rows(self.subword_table, *self._subword_rows.of_words(missing))
        return result

    def similarity(self, a, b):
        """Cosine of two words or vectors: float in [-1, 1]."""
        first, second = unit(self._vector(a)), unit(self._vector(b))
        return float(first @ second)

    def neighbours(self, word_or_vector, top=10, restrict=None):
        """The most similar words to a word, which is left out itself, or to a (D,) vector.

        Args:
            top, restrict: as `most_similar`.

        Returns:
            list of (word, cosine), most similar first.
        """
        return self.most_similar([word_or_vector], top=top, restrict=restrict)

    def analogy(self, a, b, c, top=10, restrict=None, method="3cosadd"):
        """The words d with "a is to b as c is to d": near b - a + c.

        Args:
            a, b, c: words or vectors; `analogy("man", "king", "woman")` gives queen. The words are
                left out of the answers.
            top, restrict, method: as `most_similar`.

        Returns:
            list of (word, score), best first.
        """
        return self.most_similar([b, c], [a], top, restrict, method)

    def most_similar(self, positive, negative=(), top=10, restrict=None, method="3cosadd"):
        """The words that are most similar to some and least similar to others.

        Args:
            positive, negative: list of words or (D,) vectors, or one of them. The words are left
                out of the answers.
            top: int, how many answers. Default 10.
            restrict: int, only the first so many words are answers. Default: all.
            method: "3cosadd", the cosine to the sum of the unit vectors, the negative ones
                subtracted (Mikolov et al., 2013); or "3cosmul", the product of the shifted cosines
                divided by that of the negative ones (Levy and Goldberg, 2014). Default "3cosadd".

        Returns:
            list of (word, score), best first; equal scores in the order of the table.
        """
        check_count("top", top)
        if restrict is not None:
            check_count("restrict", restrict)
        if method not in METHODS:
            raise ValueError(f"`method` must be one of {METHODS}. Received: {method!r}")
        positive, negative = _as_list(positive), _as_list(negative)
        if not positive and not negative:
            raise ValueError("`positive` and `negative` must not both be empty.")
        units = unit(np.stack([self._vector(x) for x in positive + negative]))
        if method == "3cosadd":
            if len(units) > 1 or negative:
                signs = np.repeat([1.0, -1.0], [len(positive), len(negative)])
                units = unit(signs.astype(np.float32)[None] @ units)
            scores = similarities(self.table, self.scales, units, restrict)[0]
        else:
            parts = similarities(self.table, self.scales, units, restrict)
            scores = multiplied(list(parts[: len(positive)]), list(parts[len(positive) :]))
        own = [self._index.get(x, -1) for x in positive + negative if isinstance(x, str)]
        own = [i for i in set(own) if 0 <= i < len(scores)]
        scores[own] = -np.inf
        best = largest(scores, min(top, len(scores) - len(own)))
        return [(self.words[i], float(scores[i])) for i in best]

    @property
    def scales(self):
        """(V,) float32: 1 / norm of each row, 0 where it has no direction; computed once."""
        if self._scales is None:
            self._scales = table_inverse_norms(self.table)
        return self._scales

    def sentence(self, text):
        """The mean of the unit vectors of a text's words, as fastText has it: (D,) float32.

        Words are separated by ASCII whitespace. Words without a vector, or with one of zeros, do
        not count; a text without any other words has zeros.
        """
        words = text.translate(dict.fromkeys(map(ord, _WHITESPACE), " ")).split(" ")
        words = [w for w in words if w and (self.subwords is not None or w in self._index)]
        if not words:
            return np.zeros(self.dim, np.float32)
        units = unit(self.get(words))
        count = int(units.any(axis=1).sum())
        return units.sum(axis=0) / np.float32(max(count, 1))

    def first(self, count):
        """The vectors of the first `count` words; subwords and labels stay."""
        check_count("count", count)
        count = min(count, len(self))
        table = self.table
        table = table.first(count) if hasattr(table, "first") else DenseTable(table.chunk(0, count))
        return self._with(self.words[:count], table, None if self.counts is None else slice(count))

    def only(self, words):
        """The vectors of these words, in the order of the table; words it lacks are left out."""
        words = word_list(words)
        ids = sorted({self._index[word] for word in words if word in self._index})
        table = DenseTable(self.table.rows(np.array(ids, np.int64)))
        if self.table.storage in ("float16", "int8"):
            table = stored_as(table, self.table.storage)
        return self._with([self.words[i] for i in ids], table, ids)

    def stored_as(self, storage):
        """A copy whose numbers take less memory, or more.

        Args:
            storage: "float32"; "float16", half the size, about 3 digits; or "int8", a quarter, a
                step of 1/127 of each row's largest number. Rows of n-grams are converted, too.

        Raises:
            ValueError: unknown storage, or a number that float16 cannot hold.
        """
        check_storage(storage)
        subword_table = self.subword_table and stored_as(self.subword_table, storage)
        return self._with(self.words, stored_as(self.table, storage), slice(None), subword_table)

    def save(self, folder):
        """Writes the native format: a folder that is loaded without reading the numbers.

        Any words (bytes that are not UTF-8 and line breaks among them), the storage, subwords,
        labels and counts are kept. See `kctx.vectors.storage`.
        """
        storage.save(self, folder)

    @classmethod
    def load(cls, folder, memory_map=True):
        """Loads what `save` wrote; with `memory_map`, the numbers stay on the disk until used."""
        return storage.load(cls, folder, memory_map)

    def subword_places(self):
        """`SubwordRows`: which rows of `subword_table` an n-gram has; None without subwords."""
        return self._subword_rows

    def _with(self, words, table, chosen, subword_table=None):
        counts = self.counts if self.counts is None or chosen is None else self.counts[chosen]
        return Vectors(
            words,
            table,
            self.subwords,
            self.subword_table if subword_table is None else subword_table,
            self._subword_rows,
            self.labels,
            counts,
        )

    def _vector(self, word_or_vector):
        if isinstance(word_or_vector, (str, bytes)):
            return self[word_or_vector]
        vector = np.asarray(word_or_vector, np.float32)
        if vector.shape != (self.dim,):
            raise ValueError(
                f"A vector must have shape ({self.dim},). Received: shape {vector.shape}"
            )
        return vector


def _as_list(words):
    """A list of words or vectors, from one of them or several."""
    if isinstance(words, (str, bytes)):
        return [words]
    if isinstance(words, np.ndarray) and words.ndim == 1:
        return [words]
    if not isinstance(words, Iterable):
        raise ValueError(f"Give words or vectors. Received: {words!r}")
    words = list(words)
    if words and isinstance(words[0], numbers.Number):
        return [np.asarray(words, np.float32)]
    return words
