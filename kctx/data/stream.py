"""The stream of BERT's pretraining batches: masked, padded, seeded, resumable at any batch."""

import collections
import threading

import numpy as np
import tensorflow as tf

from kctx.data.block import Block
from kctx.data.blocks_in_order import blocks_in_order, next_address
from kctx.data.masking import draw_uniforms, mask_batch
from kctx.data.tokenizer_checks import check_vocabulary_size, tokenizer_digest

_BLOCK_NAMES = ("tokens", "lengths", "first_lengths", "random_next", "keys")


class PretrainingStream:
    """Batches of masked sequences from a source of blocks.

    Threads make blocks ahead, in order; content and order depend on the seed alone. Batch number n
    (from 0) is masked with numbers seeded by (seed, n), or, with static masking, each sequence by
    its own key.

    Args:
        blocks: `CorpusBlocks` or `RecordBlocks`.
        tokenizer: gives the vocabulary and the special ids.
        max_predictions: M, most masked pieces of a sequence.
        batch_size: B.
        masked_lm_probability: share of the pieces that are predicted.
        whole_word: mask whole words (pieces beginning with `##` belong to the word before).
        static_masking: mask a sequence alike each time it comes.
        replace_with_special: random replacements may be special tokens, as in the original.
        seed: int.
        epochs: passes over the corpus, `None` for endless.
        vocabulary_size: of the model that is to be trained; the tokenizer's may not exceed it.
        workers: threads that make blocks.
        history: for how many batches back `state_at` can be asked.
    """

    def __init__(
        self,
        blocks,
        tokenizer,
        *,
        max_predictions=20,
        batch_size=32,
        masked_lm_probability=0.15,
        whole_word=False,
        static_masking=False,
        replace_with_special=True,
        seed=0,
        epochs=None,
        vocabulary_size=None,
        workers=2,
        history=512,
    ):
        check_vocabulary_size(tokenizer, vocabulary_size)
        for name, value in (
            ("max_predictions", max_predictions),
            ("batch_size", batch_size),
            ("workers", workers),
            ("history", history),
            ("epochs", 1 if epochs is None else epochs),
        ):
            if value < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
        if not 0 < masked_lm_probability < 1:
            raise ValueError(
                "`masked_lm_probability` must be between 0 and 1. "
                f"Received: masked_lm_probability={masked_lm_probability}"
            )
        self.blocks = blocks
        self.sequence_length = blocks.sequence_length
        self.max_predictions = max_predictions
        self.batch_size = batch_size
        self.masked_lm_probability = masked_lm_probability
        self.whole_word = whole_word
        self.static_masking = static_masking
        self.replace_with_special = replace_with_special
        self.seed = seed
        self.epochs = epochs
        self.workers = workers
        self.history = history
        self._padding_id, self._mask_id = tokenizer.padding_id, tokenizer.mask_id
        vocabulary = list(tokenizer.vocabulary)
        self._special = np.zeros(len(vocabulary), bool)
        self._special[
            [tokenizer.padding_id, tokenizer.start_id, tokenizer.separator_id, tokenizer.mask_id]
        ] = True
        self._continuation = np.asarray([token.startswith("##") for token in vocabulary])
        replacements = np.arange(len(vocabulary), dtype=np.int32)
        if not replace_with_special:
            usual = ~self._special
            usual[tokenizer.unknown_id] = False
            replacements = replacements[usual]
        self._replacement_ids = replacements
        self._tokenizer_digest = tokenizer_digest(tokenizer)
        self._lock = threading.Lock()
        self._start = (0, 0, 0, 0, None)  # batch, epoch, block, row, the block if it is made
        self._positions = collections.OrderedDict({0: self._start})

    # ---- batches

    def dataset(self, prefetch=8):
        """`tf.data.Dataset` of `(x, y, sample_weight)` with static shapes.

        x: token_ids, segment_ids int32 (B, T), padding_mask bool (B, T), mask_positions int32
        (B, M); y and sample_weight: masked_lm (B, M) and, for pairs, next_sentence (B,), int32
        and float32. Every iterator begins where the stream was restored to, else at batch 0.
        """
        B, T, M = self.batch_size, self.sequence_length, self.max_predictions
        x = {
            "token_ids": tf.TensorSpec((B, T), tf.int32),
            "segment_ids": tf.TensorSpec((B, T), tf.int32),
            "padding_mask": tf.TensorSpec((B, T), tf.bool),
            "mask_positions": tf.TensorSpec((B, M), tf.int32),
        }
        y = {"masked_lm": tf.TensorSpec((B, M), tf.int32)}
        weight = {"masked_lm": tf.TensorSpec((B, M), tf.float32)}
        if self.blocks.next_sentence:
            y["next_sentence"] = tf.TensorSpec((B,), tf.int32)
            weight["next_sentence"] = tf.TensorSpec((B,), tf.float32)
        return tf.data.Dataset.from_generator(
            self.batches, output_signature=(x, y, weight)
        ).prefetch(prefetch)

    def batches(self):
        """Iterate over the same batches as dicts of numpy arrays."""
        begun_at, _, _, row, _ = start = self._start
        batch, rows, count, empty = begun_at, [], 0, 0
        for epoch, position, block in blocks_in_order(
            self.blocks, self.epochs, self.workers, *start[1:3], start[4]
        ):
            empty = 0 if len(block) else empty + 1
            if empty >= self.blocks.num_blocks(epoch):
                raise ValueError("No document of the corpus gives a single sequence.")
            while row < len(block):
                taken = min(len(block) - row, self.batch_size - count)
                rows.append(block.rows(row, row + taken))
                count, row = count + taken, row + taken
                if count == self.batch_size:
                    batch += 1
                    if row < len(block):
                        self._note(batch, epoch, position, row, block)
                    else:
                        self._note(batch, *next_address(self.blocks, epoch, position), 0, None)
                    yield self._masked(batch - 1, Block.concatenate(rows))
                    rows, count = [], 0
            row = 0
        if batch == begun_at == 0:
            raise ValueError(
                f"The corpus gives {count} sequences in {self.epochs} epoch(s), fewer than one "
                f"batch. Received: batch_size={self.batch_size}"
            )

    def _masked(self, batch, rows):
        token_ids, segment_ids, padding_mask = rows.dense(self.sequence_length, self._padding_id)
        shape = self.sequence_length, self.max_predictions
        if self.static_masking:
            uniforms = np.concatenate(
                [draw_uniforms([self.seed, 4, *key], 1, *shape) for key in rows.keys.tolist()]
            )
        else:
            uniforms = draw_uniforms([self.seed, 3, batch], len(rows), *shape)
        masked, positions, labels, weights = mask_batch(
            token_ids,
            padding_mask & ~self._special[token_ids],
            rows.lengths,
            uniforms,
            mask_id=self._mask_id,
            replacement_ids=self._replacement_ids,
            max_predictions=self.max_predictions,
            probability=self.masked_lm_probability,
            continuation=self._continuation[token_ids] if self.whole_word else None,
        )
        x = {
            "token_ids": masked,
            "segment_ids": segment_ids,
            "padding_mask": padding_mask,
            "mask_positions": positions,
        }
        y, weight = {"masked_lm": labels}, {"masked_lm": weights}
        if self.blocks.next_sentence:
            y["next_sentence"] = rows.random_next
            weight["next_sentence"] = np.ones(len(rows), np.float32)
        return x, y, weight

    # ---- resuming

    def state_at(self, batches):
        """What a checkpoint must keep to go on after the first `batches` batches.

        `batches` counts from the very start of the run, resumed or not. Prefetching does not
        matter: the state is that of the batch asked for.

        Returns:
            dict of numpy arrays (no objects): the address and the rest of the block in use, so
            nothing that was consumed is tokenised again.

        Raises:
            ValueError: the batch was not made yet, or lies before what is remembered.
        """
        with self._lock:
            if batches not in self._positions:
                known = sorted(self._positions)
                raise ValueError(
                    f"No state is remembered for batch {batches}, only for {known[0]} to "
                    f"{known[-1]}. Ask for the batches just consumed, or raise `history` "
                    f"(history={self.history})."
                )
            batch, epoch, position, row, block = self._positions[batches]
        state = {
            "batch": np.asarray(batch, np.int64),
            "epoch": np.asarray(epoch, np.int64),
            "block": np.asarray(position, np.int64),
            "block_is_made": np.asarray(block is not None),
        }
        if block is not None:
            rest = block.rows(row, len(block))
            state |= {name: getattr(rest, name).copy() for name in _BLOCK_NAMES}
        return state

    def restore(self, state):
        """Go on after the batch of a state: the next iterator begins there.

        The state must come from a stream with the same `fingerprint()`, which
        `kctx.training.Checkpoints` sees to.
        """
        block = None
        if bool(state["block_is_made"]):
            block = Block(*(np.asarray(state[name]) for name in _BLOCK_NAMES))
        batch, epoch, position = (int(state[name]) for name in ("batch", "epoch", "block"))
        with self._lock:
            self._start = (batch, epoch, position, 0, block)
            self._positions = collections.OrderedDict({batch: self._start})

    def fingerprint(self):
        """dict of everything that must be equal for the batches to be the same (JSON types)."""
        return self.blocks.fingerprint() | {
            "tokenizer_sha256": self._tokenizer_digest,
            "max_predictions": self.max_predictions,
            "batch_size": self.batch_size,
            "masked_lm_probability": self.masked_lm_probability,
            "whole_word": self.whole_word,
            "static_masking": self.static_masking,
            "replace_with_special": self.replace_with_special,
            "masking_seed": self.seed,
        }

    def _note(self, batch, epoch, position, row, block):
        with self._lock:
            self._positions[batch] = (batch, epoch, position, row, block)
            self._positions.move_to_end(batch)
            while len(self._positions) > self.history:
                self._positions.popitem(last=False)
