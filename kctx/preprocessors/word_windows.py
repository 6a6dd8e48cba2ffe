"""Sentences that are words already, and windows of whole words where a sentence is too long.

Graph operations throughout, so the same code runs eagerly, in tf.data and in an exported graph.
Letters: B sentences, W words of all of them, N windows, T tokens and V words of a window.
"""

from typing import NamedTuple

import tensorflow as tf

from kctx.tokenizers.text_input import as_text_tensor


class WordWindows(NamedTuple):
    """Rows of a model that hold every word of B sentences at least once.

    Attributes:
        inputs: dict of what the preprocessor makes, N rows, and `word_positions` int32 (N, V), the
            token with which each word begins, 0 behind the last word; `word_mask` bool (N, V).
        sentence_index: int32 (N,), ascending, the sentence that each window is of.
        word_starts: int32 (N,), the first word of each among the words of its sentence.
        word_ends: int32 (N, V), the token behind each word, 0 behind the last word.
    """

    inputs: dict
    sentence_index: tf.Tensor
    word_starts: tf.Tensor
    word_ends: tf.Tensor


def word_windows(preprocessor, word_lists, stride=None):
    """Makes `WordWindows` of sentences.

    Args:
        preprocessor: one of this folder.
        word_lists: B lists of str, or ragged string (B, None).
        stride: int, most tokens from the start of one window of a sentence to that of the next.
            Default: half a window.

    A word that yields no token (a control character) takes the unknown token; of a word of more
    tokens than a window holds, the first ones count. So every word has a place in some window.
    """
    words = as_word_lists(word_lists)
    room = preprocessor.sequence_length - preprocessor.special_tokens(1)
    stride = max(1, room // 2) if stride is None else stride
    if stride < 1:
        raise ValueError(f"`stride` must be at least 1. Received: {stride}")
    tokens, table = preprocessor.encode_words(words.flat_values)
    empty = tf.equal(tokens.row_lengths(), 0)
    count = tf.reduce_sum(tf.cast(empty, tf.int32))
    unknown = tf.RaggedTensor.from_row_lengths(
        tf.fill([count], preprocessor.unknown_id), tf.cast(empty, tf.int64)
    )
    tokens = tf.concat([tokens, unknown], axis=1)[:, :room]  # (W, None), at least one each
    ends = tf.cumsum(tokens.row_lengths())  # (W,)
    places = tf.concat([[0], ends], 0)  # (W + 1,), of words among the tokens of all
    index, first, last = window_bounds(places, words.row_splits, room, stride)  # (N,)

    token_places = tf.ragged.range(tf.gather(places, first), tf.gather(places, last))
    rows = token_places.with_values(tf.gather(tokens.flat_values, token_places.values))
    inputs = preprocessor.pack(rows, table=table)
    row_words = tf.ragged.range(first, last)  # (N, None)
    front = tf.gather(places, first) - preprocessor.front_tokens  # (N,)
    width = preprocessor.sequence_length if preprocessor.pad_to_length else None
    if preprocessor.pad_to_length or preprocessor.pad_to_multiple > 1:
        # As many columns as tokens: two lengths that vary by themselves would make more shapes.
        columns = tf.shape(inputs["padding_mask"], tf.int64)[1]
    else:
        columns = tf.maximum(row_words.bounding_shape(axis=1), 1)

    def dense(bounds):  # (W,) -> (N, V)
        values = tf.gather(bounds, row_words.values) - tf.gather(front, row_words.value_rowids())
        values = row_words.with_values(tf.cast(values, tf.int32)).to_tensor(0)
        values = tf.pad(values, [[0, 0], [0, columns - tf.shape(values, tf.int64)[1]]])
        return tf.ensure_shape(values, [None, width])

    positions = dense(places[:-1])
    mask = tf.range(tf.shape(positions)[1])[None] < tf.cast(last - first, tf.int32)[:, None]
    return WordWindows(
        {**inputs, "word_positions": positions, "word_mask": tf.ensure_shape(mask, [None, width])},
        tf.cast(index, tf.int32),
        tf.cast(first - tf.gather(words.row_splits, index), tf.int32),
        dense(ends),
    )


def as_word_lists(word_lists):
    """Lists of words as ragged string (B, None).

    Raises:
        TypeError: something is no list of words.
    """
    if isinstance(word_lists, tf.RaggedTensor):
        return word_lists
    rows = [list(row) if not isinstance(row, (str, bytes)) else row for row in word_lists]
    for index, row in enumerate(rows):
        if not isinstance(row, list) or not all(isinstance(word, (str, bytes)) for word in row):
            raise TypeError(f"`word_lists[{index}]` must be a list of words. Received: {row!r}")
    words = as_text_tensor([word for row in rows for word in row], keep_bytes=True)
    lengths = tf.constant([len(row) for row in rows], tf.int64)
    return tf.RaggedTensor.from_row_lengths(words, lengths)


def window_bounds(places, row_splits, room, stride):
    """Which words each window holds: as many whole ones as there is room for.

    Args:
        places: int64 (W + 1,), where each word begins among the tokens of all, no two alike.
        row_splits: int64 (B + 1,), where the words of each sentence begin.
        room: int, tokens of a window; no word has more.
        stride: int, most tokens from the start of one window to the start of the next.

    Returns:
        (sentence, first, last): int64 (N,) each; words first to last - 1. A sentence without words
        has one window without words.
    """
    begin, limit = row_splits[:-1], row_splits[1:]
    number = tf.size(places, tf.int64) - 1
    word = tf.range(number)
    sentence = tf.searchsorted(limit, word, side="right", out_type=tf.int64)
    stop = tf.gather(limit, sentence)

    def furthest(tokens):  # of each word the last one that begins at most so many tokens behind
        reached = places[:-1] + tokens
        return tf.searchsorted(places, reached, side="right", out_type=tf.int64) - 1

    # The window that each word would begin, and the word with which the next one would.
    end = tf.minimum(furthest(room), stop)
    after = tf.minimum(tf.maximum(furthest(stride), word + 1), end)
    following = tf.concat([tf.where(end < stop, after, number), [number]], 0)  # (W + 1,)
    starts = _reached(following, tf.boolean_mask(begin, begin < limit))

    none = tf.boolean_mask(tf.range(tf.size(begin, tf.int64)), begin == limit)  # without words
    empty = tf.gather(begin, none)
    sentence = tf.concat([none, tf.gather(sentence, starts)], 0)
    order = tf.argsort(sentence, stable=True)
    bounds = (
        sentence,
        tf.concat([empty, starts], 0),
        tf.concat([empty, tf.gather(end, starts)], 0),
    )
    return tuple(tf.gather(values, order) for values in bounds)


def _reached(following, begin):
    """Places on the ways from some places on, in order.

    Args:
        following: int64 (W + 1,), the place behind each; W is the end of all ways.
        begin: int64 (B,), where ways begin.
    """
    end = tf.size(following, tf.int64) - 1
    found = tf.scatter_nd(begin[:, None], tf.ones_like(begin, tf.int32), [end + 1])

    def twice_as_far(found, leap):  # found: all places nearer than a leap
        further = tf.math.unsorted_segment_max(found, leap, end + 1)
        return tf.maximum(found, further), tf.gather(leap, leap)

    found, _ = tf.while_loop(
        lambda _, leap: tf.reduce_any(leap < end), twice_as_far, (found, following)
    )
    return tf.where(found[:-1] > 0)[:, 0]


def best_windows(word_mask, sentence_index, word_starts, num_sentences):
    """In which window, and where, each word is seen with most context on its poorer side.

    Args:
        word_mask: bool (N, V). sentence_index, word_starts: int (N,). As `WordWindows` has them.
        num_sentences: int or scalar tensor, B.

    Returns:
        ragged int64 (B, None): for each word of each sentence, `window * V + column`.
    """
    mask = tf.convert_to_tensor(word_mask)
    sentences = tf.cast(sentence_index, tf.int64)
    starts = tf.cast(word_starts, tf.int64)
    sizes = tf.reduce_sum(tf.cast(mask, tf.int64), axis=1)  # (N,)
    num_sentences = tf.cast(num_sentences, tf.int64)
    lengths = tf.math.unsorted_segment_max(starts + sizes, sentences, num_sentences)  # (B,)
    lengths = tf.maximum(lengths, 0)
    splits = tf.concat([[0], tf.cumsum(lengths)], 0)
    window, column = tf.unstack(tf.where(mask), axis=1)  # (S,) each, a word in a window
    word = tf.gather(tf.gather(splits, sentences) + starts, window) + column
    context = tf.minimum(column, tf.gather(sizes, window) - 1 - column)
    place = window * tf.shape(mask, tf.int64)[1] + column
    best = tf.gather(tf.math.unsorted_segment_max(context, word, splits[-1]), word)
    place = tf.where(context == best, place, place.dtype.max)  # of two alike, the first
    chosen = tf.math.unsorted_segment_min(place, word, splits[-1])
    return tf.RaggedTensor.from_row_splits(chosen, splits, validate=False)
