"""A guard for datasets: every token id lies within the embedding table."""

import tensorflow as tf


def check_token_ids(dataset, vocabulary_size):
    """Check the ids of every batch as it passes.

    Args:
        dataset: `tf.data.Dataset` whose elements are a dict with `token_ids`, or a tuple that
            begins with one.
        vocabulary_size: rows of the embedding table; ids must be in [0, vocabulary_size).

    Returns:
        The same dataset; iterating raises `tf.errors.InvalidArgumentError` that names the id and
        the size.
    """

    def check(*element):
        token_ids = element[0]["token_ids"]
        values = token_ids.flat_values if isinstance(token_ids, tf.RaggedTensor) else token_ids
        values = tf.reshape(values, (-1,))
        size = tf.constant(vocabulary_size, values.dtype)
        wrong = tf.boolean_mask(values, (values < 0) | (values >= size))
        message = tf.strings.format(
            "A batch holds the token id {}, outside the embedding table of "
            f"{vocabulary_size} rows.",
            wrong[:1],
        )
        check = tf.debugging.Assert(tf.equal(tf.size(wrong), 0), [message])
        with tf.control_dependencies([] if check is None else [check]):
            return tf.nest.map_structure(tf.identity, element if len(element) > 1 else element[0])

    return dataset.map(check, num_parallel_calls=tf.data.AUTOTUNE)
