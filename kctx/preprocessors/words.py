"""Raw text to the ids of whole words."""

from pathlib import Path

from kctx.arguments import check_count
from kctx.files import write_json
from kctx.preprocessors.batch import as_batch, padded
from kctx.preprocessors.model_input import ModelInput
from kctx.tokenizers import WordTokenizer


class WordsPreprocessor:
    """Words at white space, looked up in the vocabulary of static vectors.

    The same object works on Python strings, inside `tf.data`, and in exported graphs.

    Args:
        tokenizer: `WordTokenizer`.
        sequence_length: int, most words of a text; what is behind them is cut. Default 512.
        pad_to_length: bool. True pads every batch to `sequence_length`, for static shapes. Default
            False: to the longest row of the batch.
        pad_to_multiple: int, the longest row is rounded up to a multiple of it, so that few shapes
            are compiled. Default 1.
    """

    takes_pairs = False

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

    def __call__(self, texts):
        """Makes a batch of inputs.

        Args:
            texts: (B,) strings (list, array or tensor), or one string for a batch of one.

        Returns:
            dict of `token_ids` int32 (B, T) and `padding_mask` bool (B, T), True = a word.
        """
        token_ids, padding_mask = self._padded(self.tokenizer.look_up(self._words(texts)))
        return {"token_ids": token_ids, "padding_mask": padding_mask}

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

    def _words(self, texts):
        """The words that count: ragged string (B, None)."""
        words = self.tokenizer.split(as_batch(texts, "texts", keep_bytes=True))
        return words[:, : self.sequence_length]

    def _padded(self, ids):
        options = (self.sequence_length, self.pad_to_length, self.pad_to_multiple)
        return padded(ids, self.tokenizer.padding_id, *options)
