"""Raw text to the ids of whole words."""

from pathlib import Path

import tensorflow as tf

from kctx.arguments import check_count
from kctx.files import write_json
from kctx.preprocessors.batch import as_batch, keep_first, longest_first, padded
from kctx.preprocessors.model_input import ModelInput
from kctx.preprocessors.span_windows import span_windows
from kctx.preprocessors.word_windows import word_windows
from kctx.tokenizers import WordTokenizer
from kctx.tokenizers.white_space import white_space_offsets


class WordsPreprocessor:
    """Words at white space, looked up in the vocabulary of static vectors.

    One text is its words alone. Two are `separator text separator pair`, where the unknown word is
    the separator; with questions, the first of them stands for "no answer". The same object works
    on Python strings, inside `tf.data`, and in exported graphs.

    Args:
        tokenizer: `WordTokenizer`.
        sequence_length: int, most words of a text; what is behind them is cut. Default 512.
        pad_to_length: bool. True pads every batch to `sequence_length`, for static shapes. Default
            False: to the longest row of the batch.
        pad_to_multiple: int, the longest row is rounded up to a multiple of it, so that few shapes
            are compiled. Default 1.
    """

    takes_pairs = True
    front_tokens = 0

    def __init__(self, tokenizer, sequence_length=512, pad_to_length=False, pad_to_multiple=1):
        check_count("sequence_length", sequence_length)
        check_count("pad_to_multiple", pad_to_multiple)
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.pad_to_length = pad_to_length
        self.pad_to_multiple = pad_to_multiple

    @classmethod
    def from_vectors(cls, vectors, lowercase=False, **options):
        """The preprocessor of `kctx.models.StaticEncoder.from_vectors(vectors)`.

        Args:
            vectors: `kctx.vectors.Vectors`.
            lowercase: bool, whether text is lower-cased before it is looked up.
            **options: as the constructor.
        """
        return cls(WordTokenizer(vectors.words, lowercase), **options)

    @property
    def inputs(self):
        """What a batch holds: dict of name to `ModelInput`."""
        return {
            "token_ids": ModelInput(
                "int32",
                self.tokenizer.padding_id,
                "rows of words in the table, 1 for an unknown word",
                count=self.tokenizer.vocabulary_size,
            ),
            "padding_mask": ModelInput(
                "bool", False, "true = a word; what lies behind the last is ignored"
            ),
        }

    def __call__(self, texts, pairs=None):
        """Makes a batch of inputs.

        Args:
            texts: (B,) strings (list, array or tensor), or one string for a batch of one.
            pairs: the second texts, as `texts`. Default: none.

        Returns:
            dict of `token_ids` int32 (B, T) and `padding_mask` bool (B, T), True = a word.

        Raises:
            ValueError: `texts` and `pairs` differ in number (InvalidArgumentError in a graph).
        """
        texts = as_batch(texts, "texts", keep_bytes=True)
        if pairs is None:
            words = self.tokenizer.split(texts)[:, : self.sequence_length]
            ids, table = self.encode_words(words.flat_values)
            return self.pack(words.with_flat_values(ids.values), table=table)
        pairs = as_batch(pairs, "pairs", keep_bytes=True)
        if texts.shape[0] is not None and pairs.shape[0] not in (None, texts.shape[0]):
            raise ValueError(
                "`texts` and `pairs` must be equal in number. "
                f"Received: {texts.shape[0]} and {pairs.shape[0]}"
            )
        words = self.tokenizer.split(tf.concat([texts, pairs], 0))[:, : self.sequence_length]
        ids, table = self.encode_words(words.flat_values)
        ids, count = words.with_flat_values(ids.values), tf.size(texts)
        first, second = ids[:count], ids[count:]
        lengths = [tf.cast(part.row_lengths(), tf.int32) for part in (first, second)]
        room = max(self.sequence_length - self.special_tokens(2), 0)
        kept = longest_first(*lengths, room)
        return self.pack(keep_first(first, kept[0]), keep_first(second, kept[1]), table=table)

    @property
    def unknown_id(self):
        """Id of the word for what the vocabulary lacks."""
        return self.tokenizer.unknown_id

    def special_tokens(self, segments):
        """How many special tokens a row of one or of two segments has."""
        return 0 if segments == 1 else 2

    def encode_words(self, words):
        """Tokens of words, one each: string (W,) -> (ragged int32 (W, 1), None)."""
        words = self.tokenizer.cased(words)
        return tf.RaggedTensor.from_tensor(self.tokenizer.look_up(words)[:, None]), None

    def encode_texts(self, texts):
        """Tokens of texts and their offsets: string (B,) -> three ragged (B, None), None."""
        words = self.tokenizer.split(texts)
        ids, table = self.encode_words(words.flat_values)
        starts, ends = white_space_offsets(texts)
        return words.with_flat_values(ids.values), starts, ends, table

    def pack(self, first, second=None, table=None):
        """Puts ids together, ragged int32 (B, None) once or twice, as a batch."""
        token_ids, padding_mask = self._padded(first, second, self.unknown_id)
        return {"token_ids": token_ids, "padding_mask": padding_mask}

    def words(self, word_lists, stride=None):
        """Makes a batch of sentences that are words already, in windows where they are too long.

        Args:
            word_lists: B lists of str, or ragged string (B, None).
            stride: int, most words from the start of one window to that of the next. Default: half
                a window.

        Returns:
            (inputs, sentence_index, word_starts), see `WordWindows`.
        """
        return word_windows(self, word_lists, stride)[:3]

    def spans(self, questions, contexts, stride=128, question_length=64):
        """Makes a batch of questions with their contexts, in windows of contexts that are too long.

        Args:
            questions, contexts: B strings each.
            stride: int, most words from the start of one window to that of the next, see
                `span_windows`.
            question_length: int, most words of a question.

        Returns:
            (inputs, context_index, offsets, max_context), see `SpanWindows`.
        """
        return tuple(span_windows(self, questions, contexts, stride, question_length))

    def with_options(self, **options):
        """The same vocabulary under other settings, for instance `pad_to_length=True`."""
        return type(self)(**{"tokenizer": self.tokenizer, **self.get_config(), **options})

    def get_config(self):
        """Every setting but the tokenizer."""
        return {
            "sequence_length": self.sequence_length,
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
        return cls(WordTokenizer.from_folder(folder), **config)

    def _padded(self, first, second, separator):
        if second is not None:
            separators = tf.fill([first.nrows(), 1], separator)
            first = tf.concat([separators, first, separators, second], axis=1)
        options = (self.sequence_length, self.pad_to_length, self.pad_to_multiple)
        return padded(first, self.tokenizer.padding_id, *options)
