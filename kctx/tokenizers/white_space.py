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


def lower(words):
    """Lower-case by Unicode's rules; of words that are not valid UTF-8 the ASCII letters alone.

    Args:
        words: string, any shape.
    """
    valid = tf.strings.unicode_transcode(words, "UTF-8", "UTF-8", errors="replace") == words
    by_unicode = tf.strings.lower(tf.where(valid, words, ""), encoding="utf-8")
    return tf.where(valid, by_unicode, tf.strings.lower(words))
