"""Raw text to the words that are tagged, and where they stand, in TensorFlow graph operations."""

from typing import NamedTuple

import tensorflow as tf

from kctx.arguments import check_choice

SPLITS = ("words", "characters")
# What does not end a word where it stands between two letters or digits, or between two digits.
_JOINERS = r"['’._&/@:‐‑-]"
_DIGIT_JOINERS = r"[,]"


class TextWords(NamedTuple):
    """Words of N texts, ragged (N, None) each.

    Attributes:
        words: string.
        starts, ends: int32, in code points of the text.
    """

    words: tf.RaggedTensor
    starts: tf.RaggedTensor
    ends: tf.RaggedTensor


def text_words(texts, split="words"):
    """Splits texts into words.

    Args:
        texts: string (N,), valid UTF-8.
        split: "words": at white space; marks and symbols are words of their own, except those
            within a word ("U.S", "e-mail", "1,000"), and so are Chinese characters. "characters":
            every character that is no white space is a word.

    Returns:
        `TextWords`
    """
    check_choice("split", split, SPLITS)
    characters = tf.strings.unicode_split(texts, "UTF-8", errors="replace")  # (N, None)
    text = characters.value_rowids()  # (C,)
    flat = characters.flat_values
    # Each rule is asked of each different character once.
    different, place = tf.unique(flat)

    def matches(pattern):
        return tf.gather(tf.strings.regex_full_match(different, pattern), place)

    def neighbour(values, padding, step):  # of the same text, `padding` beyond its ends
        size = tf.size(text)
        padded = tf.pad(values, [[1, 1]], constant_values=padding)[1 + step : 1 + step + size]
        same = tf.pad(text, [[1, 1]], constant_values=-1)[1 + step : 1 + step + size] == text
        return tf.where(same, padded, padding)

    space = matches(r"[\s\x00\x0b\x{85}\pZ]")
    if split == "characters":
        alone = ~space
    else:
        mark = matches(r"[\pP\pS]")
        plain = ~mark & ~space
        digit = matches(r"\p{Nd}")
        joining = matches(_JOINERS) & neighbour(plain, False, -1) & neighbour(plain, False, 1)
        joining |= (
            matches(_DIGIT_JOINERS) & neighbour(digit, False, -1) & neighbour(digit, False, 1)
        )
        alone = (mark & ~joining) | matches(r"\p{Han}")
    ended = neighbour(alone | space, True, -1)
    begins = ~space & (alone | ended)
    ends = ~space & (alone | neighbour(alone | space, True, 1))
    begin, end = tf.where(begins)[:, 0], tf.where(ends)[:, 0] + 1  # (W,)

    inside = tf.boolean_mask(flat, ~space)
    number = tf.boolean_mask(tf.cumsum(tf.cast(begins, tf.int32)) - 1, ~space)
    words = tf.strings.unsorted_segment_join(inside, number, tf.size(begin))
    row = tf.gather(text, begin)
    origin = tf.gather(characters.row_starts(), row)
    count = characters.nrows()

    def ragged(values):
        return tf.RaggedTensor.from_value_rowids(values, row, count, validate=False)

    return TextWords(
        ragged(words),
        ragged(tf.cast(begin - origin, tf.int32)),
        ragged(tf.cast(end - origin, tf.int32)),
    )
