"""Raw text to BERT's inputs."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from kctx.files import write_json
from kctx.preprocessors.batch import as_batch, keep_first, longest_first, padded
from kctx.preprocessors.model_input import ModelInput
from kctx.preprocessors.span_windows import span_windows
from kctx.preprocessors.word_windows import word_windows
from kctx.tokenizers import WordPieceTokenizer

TRUNCATIONS = ("longest_first", "only_second")


def only_second(length_a, length_b, budget):
    """Lengths after dropping tokens from the end of the second text, of the first if need be."""
    kept_a = tf.minimum(length_a, budget)
    return kept_a, tf.minimum(length_b, budget - kept_a)


def window_starts(length, room, stride):
    """Starts and lengths of windows over `length` tokens (run_squad.py of the reference).

    Args:
        length: int, number of tokens.
        room: int, tokens that fit into one window.
        stride: int, how far each window begins behind the one before.

    Returns:
        list of (start, length); one window of length 0 if there are no tokens.
    """
    windows, start = [], 0
    while True:
        size = min(room, length - start)
        windows.append((start, size))
        if start + size >= length:
            return windows
        start += min(size, stride)


class BERTPreprocessor:
    """`[CLS] text [SEP]` or `[CLS] text [SEP] pair [SEP]` (Devlin et al., 2018, section 3).

    The same object works on Python strings, inside `tf.data`, and in exported graphs.

    Args:
        tokenizer: `WordPieceTokenizer`.
        sequence_length: int, most tokens a row may have, special ones included. Default 512.
        truncation: "longest_first" (drop from the longer of the two, as the original's
            classification does) or "only_second" (keep the first whole, as for questions).
        pad_to_length: bool. True pads every batch to `sequence_length`, for static shapes. Default
            False: to the longest row of the batch.
        pad_to_multiple: int, the longest row is rounded up to a multiple of it, so that few shapes
            are compiled. Default 1.
    """

    takes_pairs = True
    front_tokens = 1

    def __init__(
        self,
        tokenizer,
        sequence_length=512,
        truncation="longest_first",
        pad_to_length=False,
        pad_to_multiple=1,
    ):
        if sequence_length < 3:
            raise ValueError(
                "`sequence_length` must be at least 3, for three special tokens. "
                f"Received: {sequence_length}"
            )
        if truncation not in TRUNCATIONS:
            raise ValueError(f"`truncation` must be one of {TRUNCATIONS}. Received: {truncation!r}")
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.truncation = truncation
        if pad_to_multiple < 1:
            raise ValueError(f"`pad_to_multiple` must be at least 1. Received: {pad_to_multiple}")
        self.pad_to_length = pad_to_length
        self.pad_to_multiple = pad_to_multiple

    @property
    def inputs(self):
        """What a batch holds: dict of name to `ModelInput`."""
        padding_id = self.tokenizer.padding_id
        return {
            "token_ids": ModelInput("int32", padding_id, "ids of tokens, special ones included"),
            "segment_ids": ModelInput("int32", 0, "0 for the first segment, 1 for the second"),
            "padding_mask": ModelInput(
                "bool", False, "true = a real token; what lies behind it is ignored"
            ),
        }

    def __call__(self, texts, pairs=None):
        """Makes a batch of inputs.

        Args:
            texts: (B,) strings (list, array or tensor), or one string for a batch of one.
            pairs: the second texts, as `texts`. Default: none.

        Returns:
            dict of `token_ids` int32 (B, T), `segment_ids` int32 (B, T), `padding_mask` bool
            (B, T), True = a real token.

        Raises:
            ValueError: `texts` and `pairs` differ in number (InvalidArgumentError in a graph).
        """
        first = self._tokens(texts, "texts")
        second = None if pairs is None else self._tokens(pairs, "pairs")
        return self.pack(first, second)

    @property
    def unknown_id(self):
        """Id of the token for what the vocabulary lacks."""
        return self.tokenizer.unknown_id

    def special_tokens(self, segments):
        """How many special tokens a row of one or of two segments has."""
        return segments + 1

    def encode_words(self, words):
        """Tokens of words: string (W,) -> (ragged int32 (W, None), None)."""
        return self.tokenizer(words), None

    def encode_texts(self, texts):
        """Tokens of texts and their offsets: string (B,) -> three ragged (B, None), None."""
        return (*self.tokenizer.tokenize_with_offsets(texts), None)

    def pack(self, first, second=None, table=None):
        """Adds the special tokens to ids: ragged int32 (B, None), once or twice, to a batch."""
        start = tf.fill([first.nrows(), 1], self.tokenizer.start_id)
        separator = tf.fill([first.nrows(), 1], self.tokenizer.separator_id)
        if second is None:
            parts = [start, first[:, : self.sequence_length - 2], separator]
            second_length = None
        else:
            first, second = self._truncate(first, second)
            parts = [start, first, separator, second, separator]
            second_length = tf.cast(second.row_lengths(), tf.int32) + 1  # (B,)
        tokens = tf.concat(parts, axis=1)  # (B, None)
        options = (self.sequence_length, self.pad_to_length, self.pad_to_multiple)
        token_ids, padding_mask = padded(tokens, self.tokenizer.padding_id, *options)  # (B, T)
        segment_ids = tf.zeros_like(token_ids)
        if second_length is not None:
            length = tf.cast(tokens.row_lengths(), tf.int32)[:, None]  # (B, 1)
            places = tf.range(tf.shape(token_ids)[1])[None]  # (1, T)
            behind_first = places >= length - second_length[:, None]
            segment_ids = tf.cast(behind_first & padding_mask, tf.int32)
        return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": padding_mask}

    def windows(self, texts, stride, questions=None):
        """Cuts long texts into overlapping windows instead of truncating them.

        Args:
            texts: list of B strings.
            stride: int, tokens from the start of one window to the start of the next.
            questions: list of B strings put before every window of their text, truncated to leave
                room for at least one token. Default: none.

        Returns:
            (inputs, text_index, starts): a batch of W windows as from `__call__`; int32 (W,), which
            text each came from; int32 (W,), the first token of each in the tokens of its text.
        """
        if stride < 1:
            raise ValueError(f"`stride` must be at least 1. Received: {stride}")
        tokens = self._tokens(texts, "texts").to_list()
        specials = 2 if questions is None else 3
        if self.sequence_length <= specials:
            raise ValueError(
                f"`sequence_length` must exceed {specials} for windows of this kind. "
                f"Received: {self.sequence_length}"
            )
        heads = [[]] * len(tokens)
        if questions is not None:
            heads = self._tokens(questions, "questions")[:, : self.sequence_length - 4].to_list()
            if len(heads) != len(tokens):
                raise ValueError(
                    "`texts` and `questions` must be equal in number. "
                    f"Received: {len(tokens)} and {len(heads)}"
                )
        pieces, fronts, text_index, starts = [], [], [], []
        for index, (row, head) in enumerate(zip(tokens, heads, strict=True)):
            room = self.sequence_length - specials - len(head)
            for start, size in window_starts(len(row), room, stride):
                pieces.append(row[start : start + size])
                fronts.append(head)
                text_index.append(index)
                starts.append(start)

        def ragged(rows):
            return tf.ragged.constant(rows, dtype=tf.int32, ragged_rank=1)

        pieces = ragged(pieces)
        inputs = self.pack(pieces) if questions is None else self.pack(ragged(fronts), pieces)
        return inputs, np.array(text_index, np.int32), np.array(starts, np.int32)

    def words(self, word_lists, stride=None):
        """Makes a batch of sentences that are words already, in windows where they are too long.

        Every word is in at least one window; see `WordWindows` for what is returned.

        Args:
            word_lists: B lists of str, or ragged string (B, None).
            stride: int, most tokens from the start of one window to that of the next. Default: half
                a window.

        Returns:
            (inputs, sentence_index, word_starts)
        """
        return word_windows(self, word_lists, stride)[:3]

    def spans(self, questions, contexts, stride=128, question_length=64):
        """Makes a batch of questions with their contexts, in windows of contexts that are too long.

        Args:
            questions, contexts: B strings each.
            stride: int, most tokens from the start of one window to that of the next, see
                `span_windows`.
            question_length: int, most tokens of a question.

        Returns:
            (inputs, context_index, offsets, max_context), see `SpanWindows`.
        """
        return tuple(span_windows(self, questions, contexts, stride, question_length))

    def with_options(self, **options):
        """The same tokenizer under other settings, for instance `pad_to_length=True`."""
        return type(self)(**{"tokenizer": self.tokenizer, **self.get_config(), **options})

    def get_config(self):
        """Every setting but the tokenizer."""
        return {
            "sequence_length": self.sequence_length,
            "truncation": self.truncation,
            "pad_to_length": self.pad_to_length,
            "pad_to_multiple": self.pad_to_multiple,
        }

    def save(self, folder):
        """Writes preprocessor.json, and the tokenizer's files beside it."""
        folder = Path(folder)
        self.tokenizer.save_assets(folder)
        config = {"class_name": type(self).__name__, "config": self.get_config()}
        write_json(folder / "preprocessor.json", config)

    @classmethod
    def from_folder(cls, folder, config):
        """Reads the tokenizer that `save` wrote."""
        return cls(WordPieceTokenizer.from_folder(folder), **config)

    def _tokens(self, texts, name):
        """Ragged int32 (B, None); one string becomes a batch of one."""
        return self.tokenizer(as_batch(texts, name))

    def _truncate(self, first, second):
        length_a = tf.cast(first.row_lengths(), tf.int32)
        length_b = tf.cast(second.row_lengths(), tf.int32)
        message = "`texts` and `pairs` must be equal in number."
        if tf.executing_eagerly() and len(length_a) != len(length_b):
            raise ValueError(f"{message} Received: {len(length_a)} and {len(length_b)}")
        check = tf.debugging.assert_equal(tf.size(length_a), tf.size(length_b), message=message)
        with tf.control_dependencies([check] if check is not None else []):
            length_a = tf.identity(length_a)
        rule = longest_first if self.truncation == "longest_first" else only_second
        kept_a, kept_b = rule(length_a, length_b, self.sequence_length - 3)
        return keep_first(first, kept_a), keep_first(second, kept_b)
