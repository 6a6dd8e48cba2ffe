"""Batches of labelled examples, preprocessed as they are asked for."""

import itertools

import numpy as np
import tensorflow as tf


def batch_indices(lengths, batch_size, seed=None, window=0):
    """Order of the examples of one epoch, cut into batches.

    Args:
        lengths: int (n,), a measure of each example's length.
        batch_size: B; the last batch may be smaller.
        seed: int or list of int; `None` keeps the order of the file.
        window: number of batches within which examples are sorted by length, so that those of a
            batch are about equally long; the batches of a window are shuffled again. 0: no sorting.

    Returns:
        List of int64 arrays that together hold each example once.
    """
    rng = np.random.default_rng(seed)
    order = np.arange(len(lengths)) if seed is None else rng.permutation(len(lengths))
    if not window:
        return [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    batches = []
    for begin in range(0, len(order), batch_size * window):
        part = order[begin : begin + batch_size * window]
        part = part[np.argsort(np.asarray(lengths)[part], kind="stable")]
        batches += [part[i : i + batch_size] for i in range(0, len(part), batch_size)]
    if seed is not None:
        batches = [batches[i] for i in rng.permutation(len(batches))]
    return batches


def example_columns(examples, with_labels=True):
    """Examples as arrays.

    Returns:
        (columns, lengths, labels): the texts, and the pairs if there are any, as object arrays of
        UTF-8 bytes (n,); their joint lengths (n,); labels int32 (n,), or float32 (n, 1) for
        regression, or None without labels.

    Raises:
        ValueError: labels are asked for and there are none, or one is missing; names the line.
    """
    labels = None
    if with_labels:
        if examples.labels is None:
            raise ValueError("The examples have no labels: give `label=` when reading them.")
        if None in examples.labels:
            line = examples.lines[examples.labels.index(None)]
            raise ValueError(f"The example of line {line} has no label: give with_labels=False.")
        regression = examples.label_names is None
        labels = np.asarray(examples.labels, np.float32 if regression else np.int32)
        labels = labels[:, None] if regression else labels
    columns = [examples.texts] + ([] if examples.pairs is None else [examples.pairs])
    lengths = np.sum([[len(text) for text in column] for column in columns], axis=0)
    columns = [np.asarray([text.encode() for text in column], object) for column in columns]
    return columns, lengths, labels


def batches(
    examples,
    preprocessor,
    batch_size=32,
    *,
    shuffle=True,
    seed=0,
    window=0,
    drop_remainder=False,
    with_labels=True,
    prefetch=2,
):
    """`tf.data.Dataset` of preprocessed examples.

    Args:
        examples: `Examples`.
        preprocessor: maps a string tensor (B,), or two for pairs, to a dict of encoder inputs.
        batch_size: B.
        shuffle: a new order each time the dataset is iterated, fixed by `seed` and how often it
            was iterated before.
        seed: int.
        window: see `batch_indices`; with `shuffle=False` leave it 0 if predictions must come in
            the order of the file.
        drop_remainder: leave out a last batch smaller than B.
        with_labels: yield `(x, y)`, y int32 (B,) or, for regression, float32 (B, 1); else x.
        prefetch: batches prepared ahead.

    Raises:
        ValueError: labels are asked for and there are none, or one is missing; names the line.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1. Received: batch_size={batch_size}")
    columns, lengths, labels = example_columns(examples, with_labels)
    label_spec = None
    if with_labels:
        label_spec = tf.TensorSpec((None, *labels.shape[1:]), labels.dtype)
    epochs = itertools.count()

    def make():
        order_seed = [seed, next(epochs)] if shuffle else None
        for indices in batch_indices(lengths, batch_size, order_seed, window):
            if drop_remainder and len(indices) < batch_size:
                continue
            texts = tuple(column[indices] for column in columns)
            yield (texts, labels[indices]) if with_labels else (texts,)

    text_spec = (tf.TensorSpec((None,), tf.string),) * len(columns)
    dataset = tf.data.Dataset.from_generator(
        make, output_signature=(text_spec, label_spec) if with_labels else (text_spec,)
    )

    def preprocess(texts, *label):
        x = preprocessor(*texts)
        return (x, *label) if label else x

    size = len(examples) / batch_size
    number = int(size) if drop_remainder else -int(-size // 1)
    dataset = dataset.map(preprocess, num_parallel_calls=2, deterministic=True)
    return dataset.apply(tf.data.experimental.assert_cardinality(number)).prefetch(prefetch)
