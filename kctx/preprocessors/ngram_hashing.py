"""The n-grams of words and their buckets, as `kctx.vectors.Subwords`, in TensorFlow operations."""

import tensorflow as tf

_SEED, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF  # of FNV-1a with 32 bits


def ngram_buckets(words, subwords):
    """The buckets of the n-grams of words, in fastText's order.

    All words are hashed at once, n-grams of one more character going on from the shorter ones; the
    only loop whose length depends on the text is over the bytes of a character.

    Args:
        words: string (N,), any bytes.
        subwords: `kctx.vectors.Subwords`.

    Returns:
        ragged int32 (N, None). `</s>` has none.
    """
    least = max(subwords.min_n, 1)
    lengths = list(range(least, subwords.max_n + 1))
    if not lengths:
        return tf.RaggedTensor.from_row_lengths(
            tf.zeros([0], tf.int32), tf.zeros_like(tf.strings.length(words), tf.int64)
        )
    marked = tf.strings.join(["<", words, ">"])
    data = tf.cast(tf.io.decode_raw(tf.strings.reduce_join(marked), tf.uint8), tf.int64)  # (M,)
    ends = tf.cumsum(tf.cast(tf.strings.length(marked), tf.int64))  # (N,)

    # A character is a byte that continues none, with the bytes that continue it.
    begins = tf.not_equal(tf.bitwise.bitwise_and(data, tf.constant(0xC0, tf.int64)), 0x80)
    starts = tf.where(begins)[:, 0]  # (C,)
    widths = tf.concat([starts[1:], tf.shape(data, tf.int64)[:1]], 0) - starts  # bytes of each
    counted = tf.concat([[0], tf.cumsum(tf.cast(begins, tf.int64))], 0)
    after = tf.gather(counted, ends)  # (N,): the number of the next word's first character
    characters = after - tf.concat([[0], after[:-1]], 0)  # (N,)
    place = tf.range(tf.shape(starts, tf.int64)[0])  # (C,)
    left = tf.repeat(after, characters) - place  # characters to the end of the word

    values = _hashes(data, starts, widths, place, subwords.max_n)[least - 1 :]
    ids = tf.cast(tf.stack(values, 1) % subwords.buckets, tf.int32)  # (C, L)
    valid = left[:, None] >= tf.constant(lengths, tf.int64)
    valid &= tf.repeat(words != "</s>", characters)[:, None]
    if least == 1:  # neither "<" nor ">" alone
        first = place == tf.repeat(after - characters, characters)
        valid &= ~((first | (left == 1))[:, None] & (tf.constant(lengths) == 1))
    counts = tf.concat([[0], tf.cumsum(tf.reduce_sum(tf.cast(valid, tf.int64), 1))], 0)
    splits = tf.gather(counts, tf.concat([[0], after], 0))
    return tf.RaggedTensor.from_row_splits(tf.boolean_mask(ids, valid), splits, validate=False)


def _hashes(data, starts, widths, place, max_n):
    """Hashes of the n-grams of 1 to `max_n` characters that begin at each: list of int64 (C,).

    Those that would reach beyond their word are computed, too, and not used.
    """
    # The reference adds a byte as a signed number.
    signed = tf.where(data >= 0x80, tf.bitwise.bitwise_or(data, 0xFFFFFF00), data)
    last = tf.shape(starts, tf.int64)[0] - 1

    def add(value, byte):
        mixed = tf.bitwise.bitwise_xor(value, byte) * _PRIME
        return tf.bitwise.bitwise_and(mixed, tf.constant(_MASK, tf.int64))

    found, value = [], tf.fill(tf.shape(starts), tf.constant(_SEED, tf.int64))
    for length in range(max_n):
        reached = tf.minimum(place + length, last)  # the character that is added
        start, width = tf.gather(starts, reached), tf.gather(widths, reached)
        value = add(value, tf.gather(signed, start))

        def more(k, value, start=start, width=width):
            longer = tf.where(width > k)  # (K, 1)
            bytes_ = tf.gather(signed, tf.gather_nd(start, longer) + k)
            changed = add(tf.gather_nd(value, longer), bytes_)
            return k + 1, tf.tensor_scatter_nd_update(value, longer, changed)

        widest = tf.reduce_max(tf.concat([width, [0]], 0))
        _, value = tf.while_loop(
            lambda k, _, widest=widest: k < widest, more, (tf.constant(1, tf.int64), value)
        )
        found.append(value)
    return found
