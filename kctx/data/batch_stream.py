"""What the streams of fine-tuning share: endless shuffled batches, each from its number alone."""

import hashlib
import math

import tensorflow as tf

from kctx.arguments import check_count
from kctx.data.example_order import batch_indices
from kctx.data.step_stream import StepStream
from kctx.data.tokenizer_checks import tokenizer_digest


class BatchStream(StepStream):
    """Rows in a new order every epoch, cut into batches and prepared, endlessly.

    Epoch e is ordered by a generator seeded with (seed, e), and nothing depends on how often the
    dataset is iterated, so a resumed run sees the batches that an unbroken one would have seen.

    A subclass defines `signature`, specs of a raw batch; `raw(indices)`, the raw batch of these
    rows as arrays; `prepare(*raw)`, which makes it `(x, y)` in tf.data; and `content()`, which
    yields the bytes that tell its data from other data. It calls `check_stream` first.

    Args:
        preprocessor: of the encoder.
        lengths: int (n,), a measure of the length of each row.
        batch_size: int, the last batch of an epoch may be smaller.
        seed: int.
        window: int, batches within which rows are sorted by length, which saves padding; 0: no
            sorting.

    Attributes:
        steps_per_epoch: int.
    """

    def __init__(self, preprocessor, lengths, batch_size=32, seed=0, window=16):
        self.preprocessor = preprocessor
        self.lengths = lengths
        self.batch_size = batch_size
        self.seed = seed
        self.window = window
        self.steps_per_epoch = math.ceil(len(lengths) / batch_size)

    def dataset(self, prefetch=4):
        """`tf.data.Dataset` of `(x, y)`, beginning where the stream was restored to."""
        dataset = tf.data.Dataset.from_generator(self._raw_batches, output_signature=self.signature)
        return dataset.map(self.prepare, num_parallel_calls=2, deterministic=True).prefetch(
            prefetch
        )

    def _raw_batches(self):
        epoch, offset = divmod(self.first_step, self.steps_per_epoch)
        while True:
            order = batch_indices(self.lengths, self.batch_size, [self.seed, epoch], self.window)
            for indices in order[offset:]:
                yield self.raw(indices)
            epoch, offset = epoch + 1, 0

    def fingerprint(self):
        """What must be equal for the batches to be the same."""
        digest = hashlib.sha256()
        for part in self.content():
            digest.update(part)
        return {
            "examples": digest.hexdigest(),
            "tokenizer_sha256": tokenizer_digest(self.preprocessor.tokenizer),
            "preprocessor": self.preprocessor.get_config(),
            "batch_size": self.batch_size,
            "seed": self.seed,
            "window": self.window,
        }


def check_stream(examples, batch_size, seed, window):
    """Raises a `ValueError` unless there are rows, and the options of a `BatchStream` fit."""
    for name, value, least in (
        ("batch_size", batch_size, 1),
        ("seed", seed, 0),
        ("window", window, 0),
    ):
        check_count(name, value, least)
    if not len(examples):
        raise ValueError("`examples` must hold at least one row. Received: 0 rows")


def joined(texts):
    """Bytes that differ for different lists of texts, str or bytes."""
    encoded = [text.encode("utf-8", "replace") if isinstance(text, str) else text for text in texts]
    return b"\0".join([str(len(encoded)).encode(), *encoded])
