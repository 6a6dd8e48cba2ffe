"""Batches of labelled texts, of pairs, and of pairs to be compared."""

import numpy as np
import tensorflow as tf

from kctx.data.batch_stream import BatchStream, check_stream, joined
from kctx.data.example_order import example_columns


class ExampleStream(BatchStream):
    """The training side of classification and regression: every epoch in a new order, endlessly.

    `dataset()` gives dicts of encoder inputs, and labels int32 (B,), or float32 (B, 1) for
    regression.

    Args:
        examples: `Examples`, all of them labelled.
        preprocessor: maps a string tensor (B,), or two for pairs, to a dict of encoder inputs.
        batch_size: B; the last batch of an epoch may be smaller. Default 32.
        seed: int.
        window: number of batches within which examples are sorted by length, which saves padding.
            Default 16; 0: no sorting.

    Attributes:
        steps_per_epoch: int.

    Raises:
        ValueError: there are no rows, or one without a label, or all have the same class.
    """

    def __init__(self, examples, preprocessor, batch_size=32, seed=0, window=16):
        check_stream(examples, batch_size, seed, window)
        self.columns, lengths, self.labels = example_columns(examples)
        if examples.label_names is not None and len(np.unique(self.labels)) < 2:
            name = examples.label_names[self.labels[0]]
            raise ValueError(
                "`examples` must hold at least two classes, else there is nothing to learn. "
                f"Received: {len(examples)} rows, all labelled {name!r}"
            )
        super().__init__(preprocessor, lengths, batch_size, seed, window)

    @property
    def signature(self):
        texts = (tf.TensorSpec((None,), tf.string),) * len(self.columns)
        return texts, tf.TensorSpec((None, *self.labels.shape[1:]), self.labels.dtype)

    def raw(self, indices):
        return tuple(column[indices] for column in self.columns), self.labels[indices]

    def prepare(self, texts, labels):
        return self.preprocessor(*texts), labels

    def content(self):
        yield self.labels.tobytes()
        for column in self.columns:
            yield joined(column.tolist())


class SimilarityStream(BatchStream):
    """The training side of similarity: both texts of a pair as inputs of their own.

    `dataset()` gives the encoder's inputs of the first texts and, with the suffix `_b`, those of
    the second; labels are float32 (B, 1), scaled to [0, 1].

    Args:
        examples: `Examples` of pairs with numbers as labels (`regression=True`).
        preprocessor: maps a string tensor (B,) to a dict of encoder inputs.
        low, high: floats, labels that become 0 and 1. Default: the least and the greatest.
        batch_size, seed, window: as of `ExampleStream`.

    Raises:
        ValueError: there are no rows or no pairs, or labels that are classes, all the same or
            beyond `low` and `high`.
    """

    def __init__(
        self, examples, preprocessor, low=None, high=None, batch_size=32, seed=0, window=16
    ):
        check_stream(examples, batch_size, seed, window)
        if examples.pairs is None:
            raise ValueError("`examples` must be pairs: give `pair=` when reading them.")
        self.columns, lengths, labels = example_columns(examples)
        if examples.label_names is not None:
            raise ValueError(
                "The labels of `examples` must be numbers: give `regression=True` when reading "
                f"them. Received: classes {examples.label_names[:5]}"
            )
        self.low = float(labels.min()) if low is None else low
        self.high = float(labels.max()) if high is None else high
        if not self.low < self.high or labels.min() < self.low or labels.max() > self.high:
            raise ValueError(
                "`low` must be below `high`, and all labels between them. Received: "
                f"low={self.low}, high={self.high}, labels from {labels.min()} to {labels.max()}"
            )
        self.labels = ((labels - self.low) / (self.high - self.low)).astype(np.float32)
        super().__init__(preprocessor, lengths, batch_size, seed, window)

    @property
    def signature(self):
        return (tf.TensorSpec((None,), tf.string),) * 2, tf.TensorSpec((None, 1), tf.float32)

    def raw(self, indices):
        return tuple(column[indices] for column in self.columns), self.labels[indices]

    def prepare(self, texts, labels):
        first, second = (self.preprocessor(column) for column in texts)
        return {**first, **{f"{name}_b": value for name, value in second.items()}}, labels

    def content(self):
        yield self.labels.tobytes()
        for column in self.columns:
            yield joined(column.tolist())
