"""Batches of co-occurrence records for GloVe, resumable at any of them."""

import hashlib
import math

import numpy as np
import tensorflow as tf
from scipy import sparse

from kctx.arguments import check_count
from kctx.data.cooccurrence_records import check_cooccurrences
from kctx.data.step_stream import StepStream

_LEAST_BATCHES = 64
_LARGEST_BATCH = 1 << 16
_SAMPLES, _SAMPLE = 64, 256


def default_batch_size(num_records):
    """Large batches are fast; small corpora need some dozens of them in an epoch to converge."""
    return max(1, min(_LARGEST_BATCH, num_records // _LEAST_BATCHES))


class CooccurrenceStream(StepStream):
    """Batches of neighbouring records of a shuffled file, in a new order in each epoch.

    Epoch e is ordered by a generator seeded with (seed, e), and nothing depends on how often the
    dataset is iterated, so a resumed run sees the batches that an unbroken one would have seen.

    A batch of N records, U different words and U' different contexts is a dict of

        word_ids         int32 (U,), rising, from 0
        context_ids      int32 (U',)
        word_places      int32 (N,), of each record's word in `word_ids`; rising
        context_places   int32 (N,)
        context_order    int32 (N,), the records in the order of their contexts
        log_values       float32 (N,)
        num_records      int32 (), N, or fewer where arrays are padded

    Args:
        records: array of `RECORD` in random order, ids from 1, from `shuffle_cooccurrences` or
            `open_cooccurrences`; usually memory-mapped. Those of an id below 1 are left out, with
            a warning.
        vocabulary_size: int V.
        batch_size: int. Default: 65,536, and at least 64 batches an epoch.
        seed: int, of the order of the batches.
        static_shapes: whether all arrays are padded to the same shapes, as compiled steps on
            accelerators need it. Padded records have no weight.

    Attributes:
        steps_per_epoch: int.
    """

    def __init__(self, records, vocabulary_size, batch_size=None, seed=0, static_shapes=False):
        if len(records):
            records = check_cooccurrences(records, vocabulary_size)
        if not len(records):
            raise ValueError("`records` must hold at least one. Received: 0 records")
        if batch_size is None:
            batch_size = default_batch_size(len(records))
        check_count("vocabulary_size", vocabulary_size)
        check_count("batch_size", batch_size)
        check_count("seed", seed, least=0)
        self.records = records
        self.vocabulary_size = vocabulary_size
        self.batch_size = batch_size
        self.seed = seed
        self.static_shapes = static_shapes
        self.steps_per_epoch = math.ceil(len(records) / batch_size)

    def dataset(self, prefetch=4):
        """`tf.data.Dataset` of batches, endless, beginning where the stream was restored to."""
        size = self.batch_size if self.static_shapes else None
        rows = min(size, self.vocabulary_size) if size else None
        integer = tf.TensorSpec((size,), tf.int32)
        signature = {
            "word_ids": tf.TensorSpec((rows,), tf.int32),
            "context_ids": tf.TensorSpec((rows,), tf.int32),
            "word_places": integer,
            "context_places": integer,
            "context_order": integer,
            "log_values": tf.TensorSpec((size,), tf.float32),
            "num_records": tf.TensorSpec((), tf.int32),
        }
        dataset = tf.data.Dataset.from_generator(
            lambda: (batch for (batch,) in self.batches()), output_signature=signature
        )
        return dataset.prefetch(prefetch)

    def batches(self):
        """Yields the batches of `dataset` as arrays, each in a tuple, as Keras takes generators."""
        epoch, offset = divmod(self.first_step, self.steps_per_epoch)
        while True:
            order = np.random.default_rng([self.seed, epoch]).permutation(self.steps_per_epoch)
            for number in order[offset:]:
                start = int(number) * self.batch_size
                yield (self._batch(np.asarray(self.records[start : start + self.batch_size])),)
            epoch, offset = epoch + 1, 0

    def _batch(self, records):
        word_ids, words = self._local(records["word1"] - 1)
        context_ids, contexts = self._local(records["word2"] - 1)
        order = _sorted_order(words, len(word_ids))
        place = np.empty_like(order)
        place[order] = np.arange(len(order), dtype=np.int32)
        batch = {
            "word_ids": word_ids,
            "context_ids": context_ids,
            "word_places": words[order],
            "context_places": contexts[order],
            "context_order": place[_sorted_order(contexts, len(context_ids))],
            "log_values": np.log(records["value"][order]).astype(np.float32),
            "num_records": np.array(len(records), np.int32),
        }
        return self._padded(batch) if self.static_shapes else batch

    def _local(self, ids):
        """The different ids, rising, and the place of each id among them."""
        seen = np.zeros(self.vocabulary_size, bool)
        seen[ids] = True
        different = np.flatnonzero(seen).astype(np.int32)
        places = np.empty(self.vocabulary_size, np.int32)
        places[different] = np.arange(len(different), dtype=np.int32)
        return different, places[ids]

    def _padded(self, batch):
        size, num_records = self.batch_size, int(batch["num_records"])
        rows = min(size, self.vocabulary_size)
        extra = size - num_records
        for name in ("word_ids", "context_ids"):
            batch[name] = np.pad(batch[name], (0, rows - len(batch[name])))
        # The last place keeps both orders sorted.
        for name in ("word_places", "context_places"):
            batch[name] = np.pad(batch[name], (0, extra), constant_values=rows - 1)
        rest = np.arange(num_records, size, dtype=np.int32)
        batch["context_order"] = np.concatenate([batch["context_order"], rest])
        batch["log_values"] = np.pad(batch["log_values"], (0, extra))
        return batch

    def fingerprint(self):
        """What must be equal for the batches to be the same; of the records, samples are read."""
        digest = hashlib.sha256()
        for start in np.linspace(0, len(self.records), _SAMPLES, endpoint=False, dtype=np.int64):
            digest.update(np.asarray(self.records[start : start + _SAMPLE]).tobytes())
        return {
            "records": len(self.records),
            "records_sha256": digest.hexdigest(),
            "vocabulary_size": self.vocabulary_size,
            "batch_size": self.batch_size,
            "seed": self.seed,
        }


def _sorted_order(places, size):
    """The order that sorts `places`, all below `size`, in linear time: int32 (N,)."""
    # A matrix with a one for each record, turned over, lists the records of each row.
    starts = np.arange(len(places) + 1, dtype=np.int32)
    ones = np.ones(len(places), np.int8)
    return sparse.csr_matrix((ones, places, starts), (len(places), size)).tocsc().indices
