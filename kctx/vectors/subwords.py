"""Character n-grams of words and n-grams of words, hashed into buckets as fastText does.

The hash is FNV-1a of 32 bits with one peculiarity: a byte counts as a signed number, so that every
byte of 0x80 and above flips the upper 24 bits as well. ASCII is not affected, all else is: a
hash over unsigned bytes or over code points reads other rows of a published table, without a word.

An n-gram is counted in characters, but a character is what the reference takes for one: a byte
that is no UTF-8 continuation byte, with the continuation bytes behind it. So bytes that are not
valid UTF-8 (kept in a `str` by "surrogateescape") are hashed as in the reference, too.

Bojanowski et al., 2017, section 3.2; Joulin et al., 2017, section 2 (n-grams of words).
"""

import numpy as np

from kctx.arguments import check_count
from kctx.words import to_bytes, to_text

END_OF_SENTENCE = "</s>"  # the token that stands for the end of a line; it has no n-grams
_END_BYTES = b"</s>"
_SEED, _PRIME = 2166136261, 16777619
_WORD_NGRAM_FACTOR = np.uint64(116049371)
# Words hashed in one go: their arrays stay in the processor's cache.
_WORDS_AT_ONCE = 8192
# A longer run of bytes is hashed by itself; no valid character is longer.
_MAX_CHARACTER_BYTES = 4
_MAX_TOKEN_BYTES = 64
_MOST_BUCKETS = 2**31 - 1  # their numbers are of 32 bits


def fnv1a(data, seed=_SEED):
    """FNV-1a of 32 bits over bytes taken as signed numbers: int in [0, 2**32)."""
    value = seed
    for byte in data:
        if byte >= 0x80:
            byte |= 0xFFFFFF00
        value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
    return value


def hash_tokens(tokens):
    """Hashes of whole tokens, as fastText keeps them for n-grams of words.

    Args:
        tokens: list of str (or bytes).

    Returns:
        (N,) int32 array: the 32 bits of the hash, read as a signed number.
    """
    encoded = [to_bytes(token) for token in tokens]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    hashes = np.full(len(encoded), _SEED, np.uint32)
    short = np.flatnonzero(lengths <= _MAX_TOKEN_BYTES)
    # Longest first: the tokens that have a byte at a position are always the first so many.
    order = short[np.argsort(-lengths[short], kind="stable")]
    data = _signed_bytes(b"".join(encoded))
    starts = (np.cumsum(lengths) - lengths)[order]
    sorted_lengths = lengths[order]
    values = hashes[order]
    for position in range(int(sorted_lengths[0]) if len(order) else 0):
        live = int(np.searchsorted(-sorted_lengths, -position, side="left"))
        values[:live] ^= data[starts[:live] + position]
        values[:live] *= np.uint32(_PRIME)
    hashes[order] = values
    for index in np.flatnonzero(lengths > _MAX_TOKEN_BYTES):
        hashes[index] = fnv1a(encoded[index])
    return hashes.view(np.int32)


def word_ngram_ids(token_hashes, n, buckets, offsets=None):
    """Bucket ids of the n-grams of 2 to `n` words, in fastText's order.

    The order is: by first token, then growing length. No n-gram crosses the end of a line.

    Args:
        token_hashes: (T,) int32, `hash_tokens` of the tokens of one line, or of several lines one
            after the other. Labels are left out; words outside the vocabulary are not.
        n: int, the longest n-gram; 1 gives none.
        buckets: int, number of buckets.
        offsets: (L + 1,) int, where each line begins and the last one ends. Default: one line.

    Returns:
        (K,) int32 of ids in [0, buckets); with `offsets` given, the pair (ids, (L + 1,) int64 of
        where the ids of each line begin and the last ones end).
    """
    check_count("n", n)
    check_count("buckets", buckets)
    hashes = np.ascontiguousarray(token_hashes, np.int32)
    ends = np.asarray([0, len(hashes)] if offsets is None else offsets, np.int64)
    if ends[0] != 0 or ends[-1] != len(hashes):
        raise ValueError(
            "`offsets` must run from 0 to the number of `token_hashes`. "
            f"Received: {ends[0]} to {ends[-1]}, {len(hashes)} hashes"
        )
    tokens = hashes.astype(np.int64).view(np.uint64)  # the sign is extended to 64 bits
    n = min(n, max(int(np.diff(ends).max(initial=1)), 1))  # a header may say anything
    left = np.repeat(ends[1:], np.diff(ends)) - np.arange(len(hashes))  # tokens to the line's end
    ids = np.empty((len(hashes), n - 1), np.int32)
    value = tokens.copy()
    for length in range(2, n + 1):
        value = value[: max(len(hashes) - length + 1, 0)]
        value *= _WORD_NGRAM_FACTOR
        value += tokens[length - 1 :]
        ids[: len(value), length - 2] = value - value // np.uint64(buckets) * np.uint64(buckets)
    chosen = ids[left[:, None] >= np.arange(2, n + 1)]
    if offsets is None:
        return chosen
    counts = np.minimum(left, n) - 1
    return chosen, _offsets(counts, ends)


class Subwords:
    """Character n-grams of a word and their buckets.

    The n-grams of `<` + word + `>` with `min_n` to `max_n` characters, by their first character and
    then by length. A single `<` or `>` is none. `</s>` has none.

    Args:
        min_n, max_n: int, lengths in characters; `max_n` = 0 means no n-grams at all.
        buckets: int, number of hash buckets, below 2**31; 0 only with `max_n` = 0.

    Raises:
        ValueError: an argument that is negative, too large or no integer, n-grams without buckets,
            or `min_n` above `max_n`.
    """

    def __init__(self, min_n, max_n, buckets):
        check_count("min_n", min_n, least=0)
        check_count("max_n", max_n, least=0)
        check_count("buckets", buckets, least=1 if max_n else 0)
        if 0 < max_n < min_n:
            raise ValueError(
                f"`min_n` must not be above `max_n`. Received: min_n={min_n}, max_n={max_n}"
            )
        if buckets > _MOST_BUCKETS:
            raise ValueError(
                f"`buckets` must be at most {_MOST_BUCKETS:,}. Received: buckets={buckets}"
            )
        self.min_n, self.max_n, self.buckets = min_n, max_n, buckets
        self._least = max(min_n, 1)

    def __repr__(self):
        return f"Subwords(min_n={self.min_n}, max_n={self.max_n}, buckets={self.buckets})"

    def __eq__(self, other):
        return isinstance(other, Subwords) and self.get_config() == other.get_config()

    __hash__ = None

    def get_config(self):
        """The arguments, as a dict."""
        return {"min_n": self.min_n, "max_n": self.max_n, "buckets": self.buckets}

    @staticmethod
    def hash(data):
        """The hash of bytes or of a str's UTF-8: int in [0, 2**32)."""
        return fnv1a(to_bytes(data))

    def ngrams(self, word):
        """The n-grams of a word as list of str, in the order of `ids`."""
        return [to_text(ngram) for ngram, _ in self._ngrams(word)]

    def ids(self, word):
        """The buckets of a word's n-grams: list of int in [0, buckets), fastText's order."""
        data = to_bytes(word)
        if not data.isascii():
            return [value % self.buckets for _, value in self._ngrams(word)]
        if data == _END_BYTES or not self.max_n:
            return []
        data, found = b"<" + data + b">", []
        last = len(data) - 1
        for first in range(len(data)):
            value = _SEED
            for length, byte in enumerate(data[first : first + self.max_n], start=1):
                value = ((value ^ byte) * _PRIME) & 0xFFFFFFFF
                if length >= self._least and (length > 1 or 0 < first < last):
                    found.append(value % self.buckets)
        return found

    def ids_of(self, words):
        """The buckets of many words' n-grams.

        Args:
            words: list of str (or bytes), a whole vocabulary at once.

        Returns:
            (ids, offsets): (K,) int32 array of the ids of all words, one word after the other, each
            in the order of `ids`; (len(words) + 1,) int64 array, word i has
            `ids[offsets[i]:offsets[i + 1]]`.
        """
        parts = [
            self._ids_of_some(words[start : start + _WORDS_AT_ONCE])
            for start in range(0, len(words), _WORDS_AT_ONCE)
        ]
        offsets = np.zeros(len(words) + 1, np.int64)
        if not parts:
            return np.empty(0, np.int32), offsets
        np.cumsum(np.concatenate([counts for _, counts in parts]), out=offsets[1:])
        return np.concatenate([ids for ids, _ in parts]), offsets

    def _ngrams(self, word):
        """The pairs (bytes, hash) of a word's n-grams."""
        word = to_bytes(word)
        if word == _END_BYTES or not self.max_n:
            return
        data = b"<" + word + b">"
        starts = [i for i, byte in enumerate(data) if byte & 0xC0 != 0x80]
        ends = [*starts[1:], len(data)]
        for first in range(len(starts)):
            value = _SEED
            for last in range(first, min(first + self.max_n, len(starts))):
                value = fnv1a(data[starts[last] : ends[last]], value)
                alone = first == last and (first == 0 or last == len(starts) - 1)
                if last - first + 1 >= self._least and not alone:
                    yield data[starts[first] : ends[last]], value

    def _ids_of_some(self, words):
        """Ids of some words, and how many each has."""
        counts = np.zeros(len(words), np.int64)
        if self.max_n < self._least:
            return np.empty(0, np.int32), counts
        encoded = [to_bytes(word) for word in words]
        data = np.frombuffer(b"<" + b"><".join(encoded) + b">", np.uint8)
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(words)) + 2)
        starts = np.flatnonzero((data & 0xC0) != 0x80)  # of characters; each word has "<" and ">"
        after = np.searchsorted(starts, ends)  # of each word: the number of the next one's first
        characters = np.diff(after, prepend=0)
        if int(characters.max()) < self._least:
            return np.empty(0, np.int32), counts
        widths = np.diff(starts, append=len(data))  # bytes of each character
        left = np.repeat(after, characters) - np.arange(len(starts))  # characters to the word's end
        longest = max(min(self.max_n, int(characters.max())), self._least)
        lengths = np.arange(self._least, longest + 1)
        valid = left[:, None] >= lengths
        if self._least == 1:
            valid[after - 1, 0] = False  # ">"
            valid[after - characters, 0] = False  # "<"
        ids = self._ids_by_length(_signed_bytes(data), starts, widths, longest)
        odd = {i for i, word in enumerate(encoded) if word == _END_BYTES}
        if int(widths.max()) > _MAX_CHARACTER_BYTES:
            wide = np.flatnonzero(widths > _MAX_CHARACTER_BYTES)
            odd.update(np.searchsorted(after, wide, side="right").tolist())
        counts = np.add.reduceat(valid.sum(axis=1), after - characters)
        if not odd:
            return ids[valid], counts
        pieces = np.split(ids[valid], np.cumsum(counts)[:-1])
        for index in odd:
            pieces[index] = np.array(self.ids(encoded[index]), np.int32)
            counts[index] = len(pieces[index])
        return np.concatenate(pieces), counts

    def _ids_by_length(self, data, starts, widths, longest):
        """(characters, lengths) int32: the bucket of the n-gram that begins at each character.

        The hash of a longer n-gram goes on from that of the shorter one. Entries that would reach
        beyond their word are computed, too, and not used.
        """
        prime, buckets = np.uint32(_PRIME), np.uint32(self.buckets)
        first_bytes = data[starts]
        # Characters that have a second, third and fourth byte.
        more = [np.flatnonzero(widths > k) for k in range(1, _MAX_CHARACTER_BYTES)]
        ids = np.empty((len(starts), longest - self._least + 1), np.int32)
        value = np.full(len(starts), _SEED, np.uint32)
        for length in range(1, longest + 1):
            value = value[: max(len(starts) - length + 1, 0)]
            value ^= first_bytes[length - 1 :]
            value *= prime
            for k, longer in enumerate(more, start=1):
                longer = longer[np.searchsorted(longer, length - 1) :]
                if len(longer):
                    reached = longer - (length - 1)
                    value[reached] = (value[reached] ^ data[starts[longer] + k]) * prime
            if length >= self._least:
                ids[: len(value), length - self._least] = value - value // buckets * buckets
        return ids


def _signed_bytes(data):
    """Each byte as the uint32 that a signed byte becomes."""
    return np.frombuffer(data, np.int8).astype(np.int32).view(np.uint32)


def _offsets(counts, ends):
    """Where the ids of each line begin, from the number at each token and the lines' ends."""
    return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])[ends]
