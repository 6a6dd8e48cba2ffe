"""What all preprocessors do: texts as a batch, ragged rows as padded ones."""

import tensorflow as tf

from kctx.tokenizers.text_input import as_text_tensor


def as_batch(texts, name, keep_bytes=False):
    """Texts as string (B,); one string becomes a batch of one.

    Args:
        texts: str, list, array or tensor.
        name: str, of the argument.
        keep_bytes: bool, see `as_text_tensor`.

    Raises:
        ValueError: more than one dimension.
    """
    texts = as_text_tensor(texts, keep_bytes)
    if texts.shape.rank == 0:
        texts = texts[None]
    if texts.shape.rank != 1:
        raise ValueError(f"`{name}` must have rank 0 or 1. Received: shape {texts.shape}")
    return texts


def padded(tokens, padding_id, sequence_length, pad_to_length=False, pad_to_multiple=1):
    """Rows of different lengths as a rectangle.

    Args:
        tokens: ragged int32 (B, None), rows of at most `sequence_length`.
        padding_id: int.
        sequence_length: int.
        pad_to_length: bool, whether every batch gets `sequence_length` columns. Else as many as its
            longest row has, rounded up to `pad_to_multiple`, but no more than `sequence_length`.
        pad_to_multiple: int.

    Returns:
        (token_ids, padding_mask): int32 and bool (B, T), True = a token.
    """
    shape = [None, sequence_length if pad_to_length else None]
    token_ids = tokens.to_tensor(padding_id, shape=shape)  # (B, T)
    if pad_to_multiple > 1 and not pad_to_length:
        longest = tf.shape(token_ids)[1]
        rounded = -(-longest // pad_to_multiple) * pad_to_multiple
        more = tf.minimum(rounded, sequence_length) - longest
        token_ids = tf.pad(token_ids, [[0, 0], [0, more]], constant_values=padding_id)
    length = tf.cast(tokens.row_lengths(), tf.int32)[:, None]  # (B, 1)
    return token_ids, tf.range(tf.shape(token_ids)[1])[None] < length


def longest_first(length_a, length_b, budget):
    """Lengths after dropping tokens one by one from the end of the longer, the second on a tie.

    Source: `_truncate_seq_pair` of the reference implementation's run_classifier.py, in closed
    form. Integer tensors of any shape in, two of the same shape out.
    """
    kept_a = tf.minimum(length_a, tf.maximum((budget + 1) // 2, budget - length_b))
    kept_a = tf.maximum(kept_a, 0)
    return kept_a, tf.minimum(length_b, budget - kept_a)


def keep_first(ragged, lengths):
    """The first `lengths` (B,) values of each row of a ragged (B, None)."""
    starts = tf.cast(ragged.row_starts(), tf.int32)
    places = tf.ragged.range(starts, starts + lengths)
    return places.with_values(tf.gather(ragged.values, places.values))
