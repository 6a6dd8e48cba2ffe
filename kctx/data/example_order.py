"""Labelled examples as arrays, and the order in which an epoch takes them."""

import numpy as np


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


def example_columns(examples):
    """Examples as arrays.

    Returns:
        (columns, lengths, labels): the texts, and the pairs if there are any, as object arrays of
        UTF-8 bytes (n,); their joint lengths (n,); labels int32 (n,), or float32 (n, 1) for
        regression.

    Raises:
        ValueError: there are no labels, or one is missing; names the line.
    """
    if examples.labels is None:
        raise ValueError("The examples have no labels: give `label=` when reading them.")
    if None in examples.labels:
        line = examples.lines[examples.labels.index(None)]
        raise ValueError(f"The example of line {line} has no label: only labelled ones can train.")
    regression = examples.label_names is None
    labels = np.asarray(examples.labels, np.float32 if regression else np.int32)
    labels = labels[:, None] if regression else labels
    columns = [examples.texts] + ([] if examples.pairs is None else [examples.pairs])
    lengths = np.sum([[len(text) for text in column] for column in columns], axis=0)
    columns = [np.asarray([text.encode() for text in column], object) for column in columns]
    return columns, lengths, labels
