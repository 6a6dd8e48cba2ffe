"""Contexts of words and what follows them, from one stream of word ids."""

import hashlib

import numpy as np
import tensorflow as tf

from kctx.arguments import check_count
from kctx.data.step_stream import StepStream


class WordWindows(StepStream):
    """Endless shuffled batches of (the words before, the word) of a part of a stream of ids.

    Epoch e has an order of its own, from a generator seeded with (seed, e). Batches are full, so
    that their shape is static; what is left over at the end of an epoch is not seen in it. Nothing
    depends on how often the dataset is iterated, so a resumed run sees the batches that an unbroken
    one would have seen.

    Args:
        ids: int32 (N,), all words of the text in their order. Windows begin before `start`, where
            the text goes on from there.
        context_length: int, n - 1, words of a context.
        start, stop: int, the part whose words are predicted. Default: all. The first words of the
            text have no whole context and are not predicted.
        batch_size: int, or as many as there are, if fewer. Default 256.
        seed: int.

    Attributes:
        targets: int64 (M,), places of the predicted words.
        steps_per_epoch: int.

    Raises:
        ValueError: no word of the part has a whole context.
    """

    def __init__(self, ids, context_length, start=0, stop=None, batch_size=256, seed=0):
        for name, value, least in (
            ("context_length", context_length, 1),
            ("start", start, 0),
            ("batch_size", batch_size, 1),
            ("seed", seed, 0),
        ):
            check_count(name, value, least)
        stop = len(ids) if stop is None else stop
        self.ids = np.asarray(ids, np.int32)
        self.context_length = context_length
        self.targets = np.arange(max(start, context_length), stop)
        if not len(self.targets) or stop > len(ids):
            raise ValueError(
                f"`start` and `stop` must hold a word with {context_length} words before it. "
                f"Received: start={start}, stop={stop} of {len(ids)} words"
            )
        self.batch_size = min(batch_size, len(self.targets))
        self.seed = seed
        self.steps_per_epoch = len(self.targets) // self.batch_size

    def at(self, places):
        """The windows of some predicted words.

        Args:
            places: int (B,), where they stand in the text.

        Returns:
            (contexts, words): int32 (B, n - 1) in reading order, and (B,).
        """
        before = np.arange(-self.context_length, 0)
        return self.ids[places[:, None] + before], self.ids[places]

    def dataset(self, prefetch=8):
        """`tf.data.Dataset` of `({"context_ids": (B, n - 1)}, (B,))`, int32.

        It begins where the stream was restored to.
        """
        size = self.batch_size
        context = {"context_ids": tf.TensorSpec((size, self.context_length), tf.int32)}
        return tf.data.Dataset.from_generator(
            self._batches, output_signature=(context, tf.TensorSpec((size,), tf.int32))
        ).prefetch(prefetch)

    def _batches(self):
        epoch, first = divmod(self.first_step, self.steps_per_epoch)
        while True:
            order = np.random.default_rng([self.seed, epoch]).permutation(self.targets)
            for step in range(first, self.steps_per_epoch):
                places = order[step * self.batch_size : (step + 1) * self.batch_size]
                contexts, words = self.at(places)
                yield {"context_ids": contexts}, words
            epoch, first = epoch + 1, 0

    def fingerprint(self):
        """What must be equal for the batches to be the same."""
        return {
            "text": hashlib.sha256(self.ids.tobytes()).hexdigest(),
            "context_length": self.context_length,
            "start": int(self.targets[0]),
            "stop": int(self.targets[-1]) + 1,
            "batch_size": self.batch_size,
            "seed": self.seed,
        }
