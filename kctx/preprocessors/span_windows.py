"""Questions on texts that may be longer than a model takes: windows of the text.

Graph operations throughout, so the same code runs eagerly, in tf.data and in an exported graph.
Letters: B questions, C tokens of all contexts, N windows, T tokens of a row, S tokens of contexts
in all windows.
"""

from typing import NamedTuple

import tensorflow as tf

from kctx.preprocessors.batch import as_batch


class SpanWindows(NamedTuple):
    """Rows of a model that hold each question and a part of its context.

    Attributes:
        inputs: dict of what the preprocessor makes, N rows, and `answer_mask` bool (N, T), True = a
            token of the context. Position 0 is a special token, which stands for "no answer".
        context_index: int32 (N,), ascending, the context that each window is of.
        offsets: int32 (N, T, 2), start and end of each token of the context in code points of its
            string, -1 elsewhere.
        max_context: bool (N, T), True in that window alone in which a token of the context has
            most context around it (run_squad.py of BERT's reference implementation).
    """

    inputs: dict
    context_index: tf.Tensor
    offsets: tf.Tensor
    max_context: tf.Tensor


def span_windows(preprocessor, questions, contexts, stride=128, question_length=64):
    """Makes `SpanWindows`.

    Args:
        preprocessor: one of this folder.
        questions, contexts: B strings each.
        stride: int, tokens from the start of one window to the start of the next, at most three
            quarters of what a window has room for: else an answer across a border might be in none.
        question_length: int, most tokens of a question; it never takes more than half of a row.

    Raises:
        ValueError: unequal numbers, or no room for a token of the context.
    """
    specials = preprocessor.special_tokens(2)
    space = preprocessor.sequence_length - specials
    for name, value in (("stride", stride), ("question_length", question_length)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {value}")
    if space < 1:
        raise ValueError(
            f"`sequence_length` must exceed {specials} for windows of this kind. "
            f"Received: {preprocessor.sequence_length}"
        )
    texts = [valid(as_batch(questions, "questions")), valid(as_batch(contexts, "contexts"))]
    counts = [text.shape[0] for text in texts]
    if None not in counts and counts[0] != counts[1]:
        raise ValueError(
            "`questions` and `contexts` must be equal in number. "
            f"Received: {counts[0]} and {counts[1]}"
        )
    size = tf.size(texts[0])
    ids, starts, ends, table = preprocessor.encode_texts(tf.concat(texts, 0))
    question = ids[:size, : min(question_length, space // 2)]
    context, starts, ends = ids[size:], starts[size:].flat_values, ends[size:].flat_values

    room = space - question.row_lengths()  # (B,)
    length = context.row_lengths()
    step = tf.minimum(tf.cast(stride, tf.int64), tf.maximum(room * 3 // 4, 1))
    count = 1 - (-tf.maximum(length - room, 0) // step)  # windows of each
    index = tf.repeat(tf.range(tf.size(count)), count)  # (N,)
    number = tf.range(tf.size(index, tf.int64)) - tf.gather(tf.cumsum(count, exclusive=True), index)
    begin = number * tf.gather(step, index)
    sizes = tf.minimum(tf.gather(room, index), tf.gather(length, index) - begin)  # (N,)
    begin += tf.gather(context.row_starts(), index)
    places = tf.ragged.range(begin, begin + sizes)  # (N, None), into (C,)
    rows = places.with_values(tf.gather(context.flat_values, places.values))
    inputs = preprocessor.pack(tf.gather(question, index), rows, table=table)

    # Behind a special token, the question, and another one.
    front = tf.gather(question.row_lengths(), index) + 2
    column = tf.range(tf.shape(inputs["padding_mask"], tf.int64)[1])[None] - front[:, None]
    mask = (column >= 0) & (column < sizes[:, None])  # (N, T)
    mask = tf.ensure_shape(mask, inputs["padding_mask"].shape)
    spot = tf.where(mask, places.row_starts()[:, None] + column, 0)  # (N, T), into (S,)

    def dense(values, padding):  # (S,) -> (N, T)
        values = tf.concat([values, [padding]], 0)  # there may be none
        return tf.where(mask, tf.gather(values, spot), padding)

    offsets = [tf.cast(tf.gather(values, places.values), tf.int32) for values in (starts, ends)]
    best = most_context(places, sizes, tf.size(context.flat_values, tf.int64))
    return SpanWindows(
        {**inputs, "answer_mask": mask},
        tf.cast(index, tf.int32),
        tf.stack([dense(values, -1) for values in offsets], axis=-1),
        dense(best, False),
    )


def most_context(places, sizes, total):
    """Whether each token of each window stands there with most context on its poorer side.

    Args:
        places: ragged int64 (N, None), tokens of each window by their number among all `total`.
        sizes: int64 (N,), how many.

    Returns:
        bool (S,)
    """
    window = places.value_rowids()
    place = tf.range(tf.size(window, tf.int64)) - tf.gather(places.row_starts(), window)
    size = tf.gather(sizes, window)
    score = 100 * tf.minimum(place, size - 1 - place) + size
    best = score == tf.gather(
        tf.math.unsorted_segment_max(score, places.values, total), places.values
    )
    first = tf.math.unsorted_segment_min(
        tf.where(best, window, window.dtype.max), places.values, total
    )
    return best & (window == tf.gather(first, places.values))


def valid(texts):
    """Texts in which invalid UTF-8 has become U+FFFD, to which offsets refer."""
    return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
