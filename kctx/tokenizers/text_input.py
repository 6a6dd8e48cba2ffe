"""Text of any rank and type to a flat string tensor, and results back to that rank."""

import numpy as np
import tensorflow as tf


def as_text_tensor(text, keep_bytes=False):
    """str, bytes, (nested) lists, arrays or tensors of them -> string tensor, dense or ragged.

    A lone surrogate, which UTF-8 cannot hold, becomes U+FFFD, so that offsets stay right; with
    `keep_bytes`, those that Python's "surrogateescape" makes become the bytes they stand for.
    """
    if isinstance(text, (tf.Tensor, tf.RaggedTensor)):
        if text.dtype != tf.string:
            raise TypeError(f"`text` must hold strings. Received: {text.dtype.name}")
        return text
    if isinstance(text, np.ndarray):
        text = text.tolist()
    text = _encoded(text, keep_bytes)
    if isinstance(text, bytes):
        return tf.constant(text)
    if not text:
        return tf.zeros([0], tf.string)
    if isinstance(text[0], list):
        return tf.ragged.constant(text, dtype=tf.string, ragged_rank=1)
    return tf.constant(text, dtype=tf.string)


def _encoded(text, keep_bytes):
    if isinstance(text, str):
        try:
            return text.encode("utf-8", "surrogateescape" if keep_bytes else "strict")
        except UnicodeEncodeError:
            return "".join("\ufffd" if "\ud800" <= x <= "\udfff" else x for x in text).encode()
    if isinstance(text, bytes):
        return text
    if isinstance(text, (list, tuple)):
        return [_encoded(item, keep_bytes) for item in text]
    raise TypeError(
        "`text` must be str, bytes, or lists, arrays or tensors of them. "
        f"Received: {text!r} of type {type(text).__name__}"
    )


def with_rank(text, tokenize):
    """Calls `tokenize` on a flat (N,) string tensor and gives its ragged results `text`'s rank."""
    text = as_text_tensor(text)
    rank = text.shape.rank
    if rank == 0:
        return tf.nest.map_structure(lambda x: x[0], tokenize(text[None]), expand_composites=False)
    if rank == 1:
        return tokenize(text)
    if rank == 2:
        if isinstance(text, tf.Tensor):
            text = tf.RaggedTensor.from_tensor(text)
        return tf.nest.map_structure(text.with_values, tokenize(text.values))
    raise ValueError(f"`text` must have rank 0, 1 or 2. Received: rank {rank}")
