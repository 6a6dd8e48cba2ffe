"""A block of unmasked pretraining sequences, packed without padding."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Block:
    """n sequences `[CLS] A [SEP] B [SEP]` or `[CLS] A [SEP]`, one behind the other.

    Attributes:
        tokens: int32 (total tokens,).
        lengths: int32 (n,), tokens of each sequence.
        first_lengths: int32 (n,), tokens up to the first [SEP], that included.
        random_next: int32 (n,), 1 where B comes from another document.
        keys: int32 (n, 3), what names a sequence for good: pass over the corpus, block of the
            pass, place in the block before shuffling.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    first_lengths: np.ndarray
    random_next: np.ndarray
    keys: np.ndarray

    def __post_init__(self):
        ends = np.cumsum(self.lengths, dtype=np.int64)
        object.__setattr__(self, "_offsets", np.concatenate([np.zeros(1, np.int64), ends]))

    def __len__(self):
        return len(self.lengths)

    @classmethod
    def from_segments(cls, firsts, seconds, random_next, keys, start_id, separator_id):
        """Pack lists of int32 arrays; `seconds` is None for sequences of one segment."""
        start = np.asarray([start_id], np.int32)
        separator = np.asarray([separator_id], np.int32)
        parts = []
        for i, first in enumerate(firsts):
            parts += [start, first, separator]
            if seconds is not None:
                parts += [seconds[i], separator]
        first_lengths = np.asarray([len(first) + 2 for first in firsts], np.int32)
        lengths = first_lengths
        if seconds is not None:
            lengths = lengths + np.asarray([len(second) + 1 for second in seconds], np.int32)
        return cls(
            np.concatenate(parts).astype(np.int32) if parts else np.zeros(0, np.int32),
            lengths,
            first_lengths,
            np.asarray(random_next, np.int32),
            np.asarray(keys, np.int32).reshape(-1, 3),
        )

    def rows(self, begin, end):
        """The sequences [begin, end), views of the same memory."""
        return Block(
            self.tokens[self._offsets[begin] : self._offsets[end]],
            self.lengths[begin:end],
            self.first_lengths[begin:end],
            self.random_next[begin:end],
            self.keys[begin:end],
        )

    @classmethod
    def concatenate(cls, blocks):
        """One block of the sequences of several."""
        if len(blocks) == 1:
            return blocks[0]
        names = ("tokens", "lengths", "first_lengths", "random_next", "keys")
        return cls(*(np.concatenate([getattr(block, name) for block in blocks]) for name in names))

    def permuted(self, order):
        """The sequences in another order; `order` is an int array (n,)."""
        lengths = self.lengths[order]
        ends = np.cumsum(lengths, dtype=np.int64)
        # Source of every token: the start of its sequence there, plus its place within it.
        shift = np.repeat(self._offsets[:-1][order] - (ends - lengths), lengths)
        return Block(
            self.tokens[shift + np.arange(len(shift))],
            lengths,
            self.first_lengths[order],
            self.random_next[order],
            self.keys[order],
        )

    def dense(self, sequence_length, padding_id):
        """Padded tensors: token_ids, segment_ids int32 (n, T) and padding_mask bool (n, T)."""
        place = np.arange(sequence_length)
        padding_mask = place < self.lengths[:, None]  # (n, T)
        token_ids = np.full(padding_mask.shape, padding_id, np.int32)
        token_ids[padding_mask] = self.tokens
        segment_ids = (padding_mask & (place >= self.first_lengths[:, None])).astype(np.int32)
        return token_ids, segment_ids, padding_mask
