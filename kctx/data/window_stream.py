"""Batches of blocks of text, epoch after epoch, resumable at any of them."""

import hashlib
import math

import numpy as np
import tensorflow as tf

from kctx import kernels
from kctx.arguments import check_choice, check_count, check_number
from kctx.data.ahead import ahead
from kctx.data.step_stream import StepStream
from kctx.data.window_blocks import WindowBlocks, expected_words, no_window, window_blocks
from kctx.data.word_sampling import keep_probabilities


class WindowStream(StepStream):
    """The training data of `Word2Vec` and `FastText`.

    A batch holds several steps; a step several blocks of consecutive words, whose blocks come from
    all over a chunk of about a million words. Every draw is seeded by (seed, epoch, chunk), so a
    resumed run sees what an unbroken one would have seen.

    Args:
        corpus: `IdCorpus`.
        counts: int (V,), of the words in it.
        targets: `NegativeSampling` or `HierarchicalSoftmax`.
        features: `WordFeatures`, the rows that words are made of, for `FastText`. Default: none.
        sample: t, words of a larger share of the corpus are left out at times, see
            `keep_probabilities`. 0: none are. Default 1e-3.
        num_tokens: int, what the shares are of. Default: the sum of `counts`.
        epochs: int, passes over the corpus; the rate falls to the end of the last. Default 5.
        window: W, int. Default 5.
        learning_rate: of the first step. Default 0.05.
        min_learning_rate: the rate falls no further than this share of it. Default 1e-4.
        block_words: C, int. Default 16.
        step_blocks: G, int, blocks of a step. Default 128.
        steps: S, int, steps of a batch. Default 4.
        predicted: "centres" (default), each by the words of its window; or "context", for
            skip-gram: these, each by the centre.
        row_rates: "sqrt" (default): the summed update of a row is divided by the square root of
            how often the row is expected in a step, if more than once, which keeps large steps
            stable; "sum": it is not.
        max_sentence_words: longer sentences are cut. Default 1000, as in the C tool.
        line_end_id: id of the word that a line's end counts as. Default: none.
        by_kernel: bool, whether batches hold the tree of hierarchical softmax and the rows of all
            words, and leave it to a kernel to look up what a step needs, see `kctx.kernels`.
            Default: where kernels are usable.
        seed: int.

    Attributes:
        steps_per_epoch: int, batches of an epoch.
        total_steps: int, batches of the whole run.
        words_per_batch: float, words of the text that a batch stands for, left out ones included.
    """

    def __init__(
        self,
        corpus,
        counts,
        targets,
        features=None,
        sample=1e-3,
        num_tokens=None,
        epochs=5,
        window=5,
        learning_rate=0.05,
        min_learning_rate=1e-4,
        block_words=16,
        step_blocks=128,
        steps=4,
        predicted="centres",
        row_rates="sqrt",
        max_sentence_words=1000,
        line_end_id=None,
        by_kernel=None,
        seed=0,
    ):
        for name, value, least in (
            ("epochs", epochs, 1),
            ("window", window, 1),
            ("block_words", block_words, 1),
            ("step_blocks", step_blocks, 1),
            ("steps", steps, 1),
            ("max_sentence_words", max_sentence_words, 2),
            ("seed", seed, 0),
        ):
            check_count(name, value, least)
        check_choice("row_rates", row_rates, ("sqrt", "sum"))
        check_choice("predicted", predicted, ("centres", "context"))
        check_number("learning_rate", learning_rate, above=0)
        check_number("min_learning_rate", min_learning_rate, least=0, most=1)
        check_number("sample", sample, least=0)
        if num_tokens is not None:
            check_count("num_tokens", num_tokens)
        self.corpus, self.targets, self.features = corpus, targets, features
        self.epochs, self.window = epochs, window
        counts = np.asarray(counts, np.int64)
        self.vocabulary_size = len(counts)
        if not len(counts) or counts.min() < 0 or targets.vocabulary_size != len(counts):
            raise ValueError(
                "`counts` must not be negative, and those of the words of `targets`. "
                f"Received: {len(counts)} counts, {counts[:5].tolist()}.., "
                f"targets of {targets.vocabulary_size} words"
            )
        if line_end_id is not None and not 0 <= line_end_id < len(counts):
            raise ValueError(
                f"`line_end_id` must be that of one of {len(counts)} words. "
                f"Received: line_end_id={line_end_id!r}"
            )
        self.sample, self.num_tokens = sample, int(num_tokens or counts.sum())
        self.keep = keep_probabilities(counts, self.num_tokens, sample).astype(np.float32)
        self.learning_rate, self.min_learning_rate = learning_rate, min_learning_rate
        self.block_words, self.step_blocks, self.steps = block_words, step_blocks, steps
        self.predicted, self.row_rates = predicted, row_rates
        self.max_sentence_words = max_sentence_words
        self.line_end_id, self.seed = line_end_id, seed
        self.blocks_per_batch = step_blocks * steps
        self._by_kernel = kernels.usable() if by_kernel is None else by_kernel
        self._plan()
        self._counts = counts
        self._input_scale, self._output_scale, *feature_scale = self._row_scales(counts)
        self._feature_scale = feature_scale[0] if feature_scale else None

    def _plan(self):
        """How many batches each chunk gives, the same in every epoch."""
        self._chunks, batches, words = [], [], 0
        for begin, ids in self.corpus.chunks():
            if ids.max() >= self.vocabulary_size:
                raise ValueError(
                    "`corpus` must hold ids of the words of `counts`. "
                    f"Received: {self.vocabulary_size} counts, an id of {ids.max()}"
                )
            mean, deviation = expected_words(ids, self.keep, self.line_end_id)
            # Six standard deviations above the mean: 1 chunk in 10^9 draws more.
            most = min(mean + 6 * deviation, len(ids))
            blocks = math.ceil(most / self.block_words)
            self._chunks.append((begin, len(ids)))
            batches.append(max(1, math.ceil(blocks / self.blocks_per_batch)))
            words += int(np.count_nonzero(ids >= 0))
        if not words:
            raise ValueError("`corpus` must hold a known word. Received: none")
        self._bounds = np.concatenate([[0], np.cumsum(batches)])
        self.steps_per_epoch = int(self._bounds[-1])
        self.total_steps = self.steps_per_epoch * self.epochs
        self.words_per_batch = words / self.steps_per_epoch

    def _row_scales(self, counts):
        """float32, for each row of the tables: what to multiply the rate by.

        Inputs and outputs go slower by how often they are expected in a step, rows of n-grams by
        how many of the step's words share them.
        """
        kept = counts * self.keep
        share = kept / max(kept.sum(), 1e-30)
        block_words = self.block_words + 2 * self.window
        predicting, predicted = block_words, self.block_words
        if self.predicted == "context":
            predicting, predicted = predicted, predicting
        inputs = self.step_blocks * predicting * share
        outputs = self.targets.expected(share, self.step_blocks, predicted)
        found = [inputs, outputs]
        if self.features is not None:
            found.append(self.features.expected(-np.expm1(-inputs)))
        power = 0.5 if self.row_rates == "sqrt" else 0
        return [(np.maximum(x, 1.0) ** -power).astype(np.float32) for x in found]

    def dataset(self, prefetch=8):
        """`tf.data.Dataset` of dicts, beginning where the stream was restored to.

        Each value has the steps S as its first axis: `words` (S, G, H), `first`, `last`
        (S, G, C), `input_rates` (S, G, I), `output_rates` (S, G, U), see
        `kctx.layers.window_products`, and what `targets` gives;
        also what `features` gives, with `feature_scales` float32 (S, E). For kernels `targets` and
        `features` give what they are made of, the same in each batch, with `node_scales`
        (V - 1,), `node_rate` () and `feature_scales` of all rows.
        """
        example = next(self._batches(0))
        varying = {"features", "feature_words", "feature_scales", "word_sizes"}
        if "nodes" in example:
            varying |= {"nodes", "paths", "output_rates"}
        signature = {
            name: tf.TensorSpec(
                (*value.shape[:-1], None if name in varying else value.shape[-1]), value.dtype
            )
            for name, value in example.items()
        }
        return tf.data.Dataset.from_generator(
            lambda: self._batches(self.first_step), output_signature=signature
        ).prefetch(prefetch)

    def batches(self):
        """Yields what `dataset` does as `(dict of arrays,)`, without tf.data, which costs more.

        Batches are made two ahead in a thread.
        """
        return ahead(((batch,) for batch in self._batches(self.first_step)), 2)

    def _batches(self, step):
        while step < self.total_steps:
            epoch, within = divmod(step, self.steps_per_epoch)
            chunk = int(np.searchsorted(self._bounds, within, side="right")) - 1
            skipped = within - int(self._bounds[chunk])
            for batch in self._chunk_batches(epoch, chunk, skipped, step - skipped):
                yield batch
                step += 1

    def _chunk_batches(self, epoch, chunk, skipped, first_step):
        begin, length = self._chunks[chunk]
        generator = np.random.default_rng([self.seed, epoch, chunk])
        blocks = window_blocks(
            np.asarray(self.corpus.ids[begin : begin + length]),
            self.keep,
            self.window,
            self.block_words,
            self.max_sentence_words,
            generator,
            self.line_end_id,
        )
        number = len(blocks.words)
        batches = int(self._bounds[chunk + 1] - self._bounds[chunk])
        size = self.blocks_per_batch
        order = generator.permutation(number)[: batches * size]
        # The blocks are spread evenly, so that no batch is nearly empty.
        shares = np.array_split(order, batches)
        for place in range(skipped, batches):
            # Of its own, so that a resumed run need not draw what it skips.
            draws = np.random.default_rng([self.seed, epoch, chunk, place])
            picked = WindowBlocks(*(array[shares[place]] for array in blocks))
            yield self._batch(self._filled(picked), first_step + place, draws)

    def _filled(self, blocks):
        missing = self.blocks_per_batch - len(blocks.words)
        if not missing:
            return blocks
        filler = no_window(missing, self.block_words, self.window)
        return WindowBlocks(*(np.concatenate(pair) for pair in zip(blocks, filler, strict=True)))

    def _batch(self, blocks, step, generator):
        inputs, predicted = blocks.words, blocks.centres()
        valid = blocks.first <= blocks.last
        if self.predicted == "context":
            inputs, predicted, valid = predicted, inputs, blocks.in_a_window()
        progress = step / self.total_steps
        rate = self.learning_rate * max(1 - progress, self.min_learning_rate)
        batch = {**blocks._asdict(), "input_rates": rate * self._input_scale[inputs]}
        whole = {}
        if self._by_kernel and hasattr(self.targets, "whole"):
            scales = {"node_scales": self._output_scale, "node_rate": np.float32(rate)}
            whole = {**self.targets.whole(), **scales}
        else:
            targets, rows = self.targets(predicted, valid, generator)
            batch |= {**targets, "output_rates": rate * self._output_scale[rows]}
        batch = {
            name: value.reshape(self.steps, self.step_blocks, *value.shape[1:])
            for name, value in batch.items()
        }
        if self.features is not None and self._by_kernel:
            whole |= {**self.features.whole(), "feature_scales": self._feature_scale}
        elif self.features is not None:
            batch |= self.features.of_steps(inputs.reshape(*batch["input_rates"].shape))
            batch["feature_scales"] = self._feature_scale[batch["features"]]
        return batch | whole

    def fingerprint(self):
        """What must be equal for the batches to be the same."""
        digest = hashlib.sha256(self._counts.tobytes())
        for _, ids in self.corpus.chunks():
            digest.update(ids.tobytes())
        settings = (
            "sample num_tokens epochs window learning_rate min_learning_rate block_words "
            "step_blocks steps predicted row_rates max_sentence_words line_end_id seed"
        )
        features = {}
        if self.features is not None:
            of_features = hashlib.sha256(self.features.rows.tobytes())
            of_features.update(self.features.offsets.tobytes())
            features = {"features_sha256": of_features.hexdigest()}
        return {
            "corpus_sha256": digest.hexdigest(),
            **features,
            "targets": {"class": type(self.targets).__name__, **self.targets.get_config()},
            **{name: getattr(self, name) for name in settings.split()},
        }
