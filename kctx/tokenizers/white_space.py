"""Text to words at white space, in TensorFlow graph operations."""

import tensorflow as tf


def split_at_white_space(text):
    """Words between space, tab, CR, LF, VT, FF and NUL, the set of fastText's `readWord`.

    Bytes are not looked at otherwise: a no-break space and invalid UTF-8 are parts of words.

    Args:
        text: string (N,).

    Returns:
        ragged string (N, None), never an empty word.
    """
    return tf.strings.split(tf.strings.regex_replace(text, r"\x00", " "))


def white_space_offsets(text):
    """Where the words of `split_at_white_space` stand, in code points.

    Args:
        text: string (N,), valid UTF-8.

    Returns:
        (starts, ends): ragged int32 (N, None)
    """
    # With a space behind each text, every word ends before one.
    decoded = tf.strings.unicode_decode(tf.strings.join([text, " "]), "UTF-8", errors="replace")
    codes, splits = decoded.flat_values, decoded.row_splits  # (C,), (N + 1,)
    space = (codes == 0) | (codes == 32) | ((codes >= 9) & (codes <= 13))
    before = tf.concat([[True], space], 0)[:-1]
    starts = tf.where(before & ~space)[:, 0]  # (W,)
    ends = tf.where(space & ~before)[:, 0]
    row_splits = tf.searchsorted(starts, splits, out_type=tf.int64)
    ragged = tf.RaggedTensor.from_row_splits(starts, row_splits, validate=False)
    texts = tf.gather(splits, ragged.value_rowids())

    def within(places):
        return ragged.with_values(tf.cast(places - texts, tf.int32))

    return within(starts), within(ends)


def lower(words):
    """Lower-case by Unicode's rules; of words that are not valid UTF-8 the ASCII letters alone.

    Args:
        words: string, any shape.
    """
    valid = tf.strings.unicode_transcode(words, "UTF-8", "UTF-8", errors="replace") == words
    by_unicode = tf.strings.lower(tf.where(valid, words, ""), encoding="utf-8")
    return tf.where(valid, by_unicode, tf.strings.lower(words))
