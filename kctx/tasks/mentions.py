"""Mentions in texts, and the windows that they are read in."""

import numpy as np
import tensorflow as tf

from kctx.arguments import is_integer


def check_mentions(texts, mentions, first=0):
    """Raises unless each mention is a (start, end) within its text or words.

    Args:
        texts: list of str (or bytes), or of lists of words.
        mentions: list of lists of pairs, for each text.
        first: int, number of the first text.
    """
    for index, (text, row) in enumerate(zip(texts, mentions, strict=True), first):
        name = f"mentions[{index}]"
        if not isinstance(row, (list, tuple)):
            raise TypeError(f"`{name}` must be a list of (start, end). Received: {row!r}")
        size = len(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
        for place, pair in enumerate(row):
            pair_of_ints = isinstance(pair, (list, tuple)) and len(pair) == 2
            if not pair_of_ints or not all(map(is_integer, pair)):
                raise TypeError(
                    f"`{name}[{place}]` must be (start, end), two ints. Received: {pair!r}"
                )
            if not 0 <= pair[0] < pair[1] <= size:
                unit = "code points" if isinstance(text, (str, bytes)) else "words"
                raise ValueError(
                    f"`{name}[{place}]` must lie within its text of {size} {unit}, and not be "
                    f"empty. Received: {tuple(pair)}"
                )


def as_mention_tensor(mentions):
    """Checked mentions as int32 (B, M, 2), -1 behind the last of each text."""
    most = max(map(len, mentions), default=0)
    found = np.full((len(mentions), most, 2), -1, "int32")
    for target, row in zip(found, mentions, strict=True):
        if row:
            target[: len(row)] = row
    return tf.constant(found)


def word_spans(mentions, starts, ends, texts=None):
    """The words that mentions touch, and where mentions stand in their texts.

    Args:
        mentions: int32 (B, M, 2). starts, ends: ragged int32 (B, None), of the words of each text.
        texts: string (B,), in whose code points mentions are; None: in words.

    Returns:
        (spans, bounds): int32 (B, M, 2) each; the first word and the one behind the last, 0 and 0
        where there is no such mention or no word in it; start and end in code points, -1 and -1
        where there is no such mention.
    """
    count = tf.cast(starts.row_lengths(), tf.int32)[:, None]  # (B, 1)
    # There is one more column, so that there is one.
    starts, ends = (tf.pad(x.to_tensor(1 << 30), [[0, 0], [0, 1]]) for x in (starts, ends))
    column = tf.range(tf.shape(starts)[1])[None, None] < count[:, None]  # (B, 1, W + 1)
    begin, end = mentions[..., 0], mentions[..., 1]  # (B, M)
    given = (begin >= 0) & (end > begin)
    if texts is None:
        given &= end <= count
        first, limit = tf.where(given, begin, 0), tf.where(given, end, 0)
        begin = tf.gather(starts, first, batch_dims=1)
        end = tf.gather(ends, tf.maximum(limit - 1, 0), batch_dims=1)
    else:
        given &= end <= tf.strings.length(texts, unit="UTF8_CHAR")[:, None]

        def number(words):  # of real words
            return tf.reduce_sum(tf.cast(words & column, tf.int32), axis=-1)

        first = number(ends[:, None] <= begin[..., None])
        limit = number(starts[:, None] < end[..., None])
    touched = given & (limit > first)
    spans = tf.stack([first, limit], axis=-1)
    bounds = tf.stack([begin, end], axis=-1)
    return (
        tf.where(touched[..., None], spans, 0),
        tf.where(given[..., None], bounds, -1),
    )


def most_context(mask, sentence_index, column, before, is_real):
    """In which window each mention is read: the one that holds most words before it.

    Args:
        mask: bool (N, K), mentions of each window. sentence_index: int32 (N,), ascending.
        column: int32 (N, K), which of the mentions of its text each is.
        before: int32 (N, K), words of the window before it.
        is_real: bool (B, M), only its shape is used.

    Returns:
        (places, found): int32 (B, M, 2), window and place in it, and bool (B, M), whether any
        window holds it whole; else its place is that of the first window.
    """
    shape = tf.shape(is_real)
    where = tf.cast(tf.where(mask), tf.int32)  # (E, 2)
    mention = tf.gather(sentence_index, where[:, 0]) * shape[1] + tf.gather_nd(column, where)
    total = shape[0] * shape[1]
    context = tf.gather_nd(before, where)
    best = tf.gather(tf.math.unsorted_segment_max(context, mention, total), mention)
    number = tf.where(context == best, tf.range(tf.size(mention)), 1 << 30)
    number = tf.math.unsorted_segment_min(number, mention, total)  # (B * M,)
    found = number < tf.size(mention)
    where = tf.pad(where, [[0, 1], [0, 0]])  # there may be none
    places = tf.gather(where, tf.where(found, number, 0))
    places = tf.where(found[:, None], places, 0)
    return tf.reshape(places, [shape[0], shape[1], 2]), tf.reshape(found, shape)
