"""Endless shuffled batches of labelled examples, resumable at any batch."""

import hashlib
import math

import tensorflow as tf

from kctx.arguments import check_count
from kctx.data.example_order import batch_indices, example_columns
from kctx.data.step_stream import StepStream
from kctx.data.tokenizer_checks import tokenizer_digest


class ExampleStream(StepStream):
    """The training side of fine-tuning: every epoch in a new order, endlessly.

    Epoch e is ordered by a generator seeded with (seed, e), and nothing depends on how often the
    dataset is iterated, so a resumed run sees the batches that an unbroken one would have seen.

    Args:
        examples: `Examples`, all of them labelled.
        preprocessor: maps a string tensor (B,), or two for pairs, to a dict of encoder inputs.
        batch_size: B; the last batch of an epoch may be smaller. Default 32.
        seed: int.
        window: number of batches within which examples are sorted by length, which saves padding.
            Default 16; 0: no sorting.

    Attributes:
        steps_per_epoch: int.
    """

    def __init__(self, examples, preprocessor, batch_size=32, seed=0, window=16):
        if not len(examples):
            raise ValueError("`examples` must hold at least one row. Received: 0 rows")
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("seed", seed, 0),
            ("window", window, 0),
        ):
            check_count(name, value, least)
        self.columns, self.lengths, self.labels = example_columns(examples)
        self.preprocessor = preprocessor
        self.batch_size = batch_size
        self.seed = seed
        self.window = window
        self.steps_per_epoch = math.ceil(len(examples) / batch_size)

    def dataset(self, prefetch=4):
        """`tf.data.Dataset` of `(x, y)`, beginning where the stream was restored to."""
        text_spec = (tf.TensorSpec((None,), tf.string),) * len(self.columns)
        label_spec = tf.TensorSpec((None, *self.labels.shape[1:]), self.labels.dtype)
        dataset = tf.data.Dataset.from_generator(
            self._raw_batches, output_signature=(text_spec, label_spec)
        )
        return dataset.map(
            lambda texts, label: (self.preprocessor(*texts), label),
            num_parallel_calls=2,
            deterministic=True,
        ).prefetch(prefetch)

    def _raw_batches(self):
        epoch, offset = divmod(self.first_step, self.steps_per_epoch)
        while True:
            order = batch_indices(self.lengths, self.batch_size, [self.seed, epoch], self.window)
            for indices in order[offset:]:
                yield tuple(column[indices] for column in self.columns), self.labels[indices]
            epoch, offset = epoch + 1, 0

    def fingerprint(self):
        """What must be equal for the batches to be the same."""
        digest = hashlib.sha256(self.labels.tobytes())
        for column in self.columns:
            digest.update(b"\0".join(column.tolist()))
        return {
            "examples": digest.hexdigest(),
            "tokenizer_sha256": tokenizer_digest(self.preprocessor.tokenizer),
            "preprocessor": self.preprocessor.get_config(),
            "batch_size": self.batch_size,
            "seed": self.seed,
            "window": self.window,
        }
