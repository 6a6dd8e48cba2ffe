"""Tags of words to entities, in TensorFlow graph operations."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from kctx import tag_schemes


class Entities(NamedTuple):
    """Entities of N sentences, flat: E of them.

    Attributes:
        first, last: int64 (E,), the first and the last word of each among all words.
        labels: string (E,)
    """

    first: tf.Tensor
    last: tf.Tensor
    labels: tf.Tensor


def marks_entities(tag_names):
    """Whether tags are "O" and others that say where entities begin and go on, in any scheme."""
    return all(
        any(tag_schemes.is_tag_of(tag, scheme) for scheme in tag_schemes.SCHEMES)
        for tag in tag_names
    )


def entities_of(tags, row_splits, tag_names):
    """The entities in tagged sentences, of any scheme, by the rule of `tag_schemes.tag_spans`.

    Args:
        tags: int32 (W,), of all words.
        row_splits: int64 (N + 1,), where the words of each sentence begin.
        tag_names: list of str, for which `marks_entities` holds.
    """
    split = [tag_schemes.split_tag(tag) for tag in tag_names]
    labels = sorted({label for prefix, label in split if prefix != tag_schemes.OUTSIDE}) or [""]
    codes = np.array([labels.index(label) if label in labels else 0 for _, label in split], "int32")
    outside = np.array([prefix == tag_schemes.OUTSIDE for prefix, _ in split])
    begins = np.array([prefix in tag_schemes.BEGINS for prefix, _ in split])
    ends = np.array([prefix in tag_schemes.ENDS for prefix, _ in split])

    def of_words(table, front, tail):  # by the word, with values in front of and behind all
        return tf.concat([[front], tf.gather(tf.constant(table), tags), [tail]], 0)

    outside, ends = of_words(outside, True, True), of_words(ends, True, True)
    begins, codes = of_words(begins, True, True), of_words(codes, -1, -1)
    size = tf.size(tags, tf.int64)
    first_words = tf.tensor_scatter_nd_update(
        tf.zeros([size + 2], tf.bool),
        row_splits[:, None] + 1,
        tf.ones_like(row_splits, tf.bool),
    )  # (W + 2,): where a sentence begins, or behind the last one
    after_end = outside[:-1] | ends[:-1] | (codes[:-1] != codes[1:]) | first_words[1:]
    starts = ~outside[1:] & (begins[1:] | after_end)  # (W + 1,)
    stops = ~outside[1:-1] & (outside[2:] | starts[1:] | first_words[2:])  # (W,)
    first, last = tf.where(starts[:-1])[:, 0], tf.where(stops)[:, 0]
    return Entities(first, last, tf.gather(tf.constant(labels), tf.gather(codes, first + 1)))
