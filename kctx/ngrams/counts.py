"""Counts of all n-grams up to an order, as arrays in suffix order."""

import dataclasses
import functools

import numpy as np

from kctx.arguments import check_count
from kctx.ngrams.suffix_order import find, sorted_rows
from kctx.ngrams.text import SPECIAL_WORDS, START, checked_word
from kctx.words import to_bytes, to_text

_MOST_NGRAMS = 2**31 - 1  # their places are numbers of 32 bits


@dataclasses.dataclass(frozen=True)
class OrderCounts:
    """The n-grams of one order k, sorted by the last word, then the one before it, and so on.

    Attributes:
        suffix: (n,) int32, place of the n-gram without its first word in the table of order k - 1;
            for unigrams 0.
        word: (n,) int32, the first word. The table of unigrams holds every word at its id.
        count: (n,) int64, occurrences. `<s>` as a unigram has 0: it is never predicted.
    """

    suffix: np.ndarray
    word: np.ndarray
    count: np.ndarray

    def __len__(self):
        return len(self.word)


class NGramCounts:
    """Counts of all n-grams of orders 1 to `order`.

    Sentences begin with one `<s>`, which is context only, and end with `</s>`.

    Args:
        words: list of bytes, the word of each id; `<unk>`, `<s>`, `</s>` come first.
        orders: list of `OrderCounts`, from unigrams up.
        fixed_vocabulary: bool, whether the words were given rather than found.
    """

    def __init__(self, words, orders, fixed_vocabulary=False):
        self.words = words
        self.orders = orders
        self.fixed_vocabulary = fixed_vocabulary

    @property
    def order(self):
        """int, the highest order."""
        return len(self.orders)

    @property
    def sizes(self):
        """Number of different n-grams of each order; the unigrams hold `<unk>` and `<s>`."""
        return [len(table) for table in self.orders]

    @property
    def tokens(self):
        """int, words and ends of sentences."""
        return int(self.orders[0].count.sum())

    @functools.cached_property
    def keys(self):
        """For each order k the sorted int64 keys `suffix * len(words) + word`."""
        size = len(self.words)
        return [table.suffix.astype(np.int64) * size + table.word for table in self.orders]

    @functools.cached_property
    def prefixes(self):
        """For each order k, the place of each n-gram without its last word at order k - 1."""
        return prefixes(
            [table.suffix for table in self.orders],
            [table.word for table in self.orders],
            self.keys,
            len(self.words),
        )

    def up_to(self, order):
        """The counts of orders 1 to `order` alone, as if no longer n-grams had been counted."""
        check_count("order", order)
        return NGramCounts(self.words, self.orders[:order], self.fixed_vocabulary)

    def ids_of(self, order):
        """(n, order) int32, the word ids of all n-grams of one order."""
        table, columns = self.orders[order - 1], []
        place = np.arange(len(table))
        for k in range(order, 0, -1):
            columns.append(self.orders[k - 1].word[place])
            place = self.orders[k - 1].suffix[place]
        return np.stack(columns, axis=1)

    def items(self, order):
        """Yields (tuple of str, int count) of all n-grams of one order, `<s>` alone left out."""
        texts = [to_text(word) for word in self.words]
        for ids, count in zip(
            self.ids_of(order).tolist(), self.orders[order - 1].count.tolist(), strict=True
        ):
            if count:
                yield tuple(texts[index] for index in ids), count

    def count(self, *words):
        """int, occurrences of one n-gram, given word by word; 0 for one that never occurs."""
        if not 1 <= len(words) <= self.order:
            raise ValueError(f"Give 1 to {self.order} words. Received: {words}")
        index = {word: place for place, word in enumerate(self.words)}
        place = 0
        for k, word in enumerate(reversed(words)):
            word = index.get(to_bytes(word))
            if word is None:
                return 0
            key = np.array([place * len(self.words) + word], np.int64)
            place = word if k == 0 else int(find(self.keys[k], key)[0])
            if place < 0:
                return 0
        return int(self.orders[len(words) - 1].count[place])

    @classmethod
    def from_items(cls, items, order, vocabulary=None):
        """Counts put together elsewhere, for instance by `beam_counts`.

        Args:
            items: iterable of (tuple of `order` words, count): n-grams of the highest order only,
                those at the beginning of a sentence filled up with several `<s>`. The same n-gram
                may come several times.
            order: int.
            vocabulary: list of words that fixes ids and their order. Default: the words found,
                sorted by their bytes.

        Raises:
            ValueError: an n-gram of another length, a count below 1, or no n-grams.
        """
        grams, values = [], []
        for gram, count in items:
            if len(gram) != order or count < 1:
                raise ValueError(
                    f"`items` must hold n-grams of {order} words with counts of at least 1. "
                    f"Received: {gram!r}, {count!r}"
                )
            grams.append([to_bytes(word) for word in gram])
            values.append(count)
        if not grams:
            raise ValueError("`items` must hold at least one n-gram. Received: none")
        found = {word for gram in grams for word in gram}
        listed = sorted(found) if vocabulary is None else [checked_word(x) for x in vocabulary]
        words = [*SPECIAL_WORDS, *(word for word in listed if word not in SPECIAL_WORDS)]
        index = {word: place for place, word in enumerate(words)}
        ids = np.array([[index.get(word, 0) for word in gram] for gram in grams], np.int32)
        columns = [np.ascontiguousarray(ids[:, k]) for k in range(order - 1, -1, -1)]
        columns, counted = merged(columns, np.array(values, np.int64), len(words))
        return cls(words, orders_of(columns, counted, len(words)), vocabulary is not None)


def merged(columns, counts, size):
    """Sorted rows without duplicates, and the sums of their counts."""
    order, new = sorted_rows(columns, [size] * len(columns))
    first = order[new]
    counts = counts[order]
    return [column[first] for column in columns], np.add.reduceat(counts, np.flatnonzero(new))


def orders_of(columns, counts, size):
    """The tables of all orders from the n-grams of the highest order.

    Args:
        columns: list of (U,) int32 arrays: the last words, the words before them, and so on, of
            different n-grams in suffix order. Where a sentence begins they are filled up with
            `<s>`: n-grams with several `<s>` stand for the shorter one with one `<s>`.
        counts: (U,) int64.
        size: int, number of words.
    """
    if len(counts) > _MOST_NGRAMS:
        raise ValueError(
            f"The text must have at most {_MOST_NGRAMS:,} different n-grams of the highest order. "
            f"Received: {len(counts):,}. Lower `order`, or count less text."
        )
    orders = []
    place = columns[0]  # (U,) of the suffix of order k - 1 of each row
    new = np.zeros(len(counts), bool)
    for k, column in enumerate(columns):
        new[:1] = True
        np.logical_or(new[1:], column[1:] != column[:-1], out=new[1:])
        # Sums over the rows with the same last k + 1 words.
        starts = np.flatnonzero(new)
        sums = counts if len(starts) == len(counts) else np.add.reduceat(counts, starts)
        if k == 0:
            count = np.zeros(size, np.int64)
            count[column[starts]] = sums
            table = OrderCounts(np.zeros(size, np.int32), np.arange(size, dtype=np.int32), count)
        else:
            real = columns[k - 1][starts] != START
            starts, sums = starts[real], sums[real]
            table = OrderCounts(place[starts], column[starts], sums)
            if k < len(columns) - 1:
                marks = np.zeros(len(counts), np.int32)
                marks[starts] = 1
                place = np.cumsum(marks, dtype=np.int32)
                place -= 1
        orders.append(table)
    return orders


def prefixes(suffixes, words, keys, size):
    """For each order, the place of each n-gram without its last word in the order below.

    The prefix of `w s` is the prefix of `s` with `w` before it: one look-up an order.
    """
    found = [np.zeros(len(words[0]), np.int32)]
    if len(words) > 1:
        found.append(words[1])
    for k in range(2, len(words)):
        inner = found[k - 1][suffixes[k]].astype(np.int64)
        wanted = inner * size + words[k]
        wanted[inner < 0] = -1
        found.append(find(keys[k - 1], wanted))
    return found
