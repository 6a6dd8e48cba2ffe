"""Raw text to the rows of words and of their n-grams."""

from pathlib import Path

import numpy as np
import tensorflow as tf

from kctx.arguments import check_count
from kctx.files import read_array, whole_file
from kctx.preprocessors.model_input import ModelInput
from kctx.preprocessors.ngram_hashing import ngram_buckets
from kctx.preprocessors.words import WordsPreprocessor
from kctx.tokenizers import WordTokenizer
from kctx.vectors import Subwords

_PLACES_FILE = "subword_places.npy"


class SubwordsPreprocessor(WordsPreprocessor):
    """Words at white space, each as its own row, if it is known, and those of its n-grams.

    Row 0 is padding, word i of the tokenizer has row i + 1, bucket j of the n-grams row
    `ngram_row` + j. So unknown words have vectors, too, in a served graph as everywhere. The
    separator of two texts is a token without rows.

    Args:
        tokenizer: `WordTokenizer`.
        subwords: `kctx.vectors.Subwords`.
        ngram_row: int, row of the first bucket. Default: behind the words.
        places: int32 (buckets,), the place of each bucket behind `ngram_row`, -1 for those that are
            left out, as in pruned fastText models. Default: each at its own.
        whole_words: bool, whether a known word has no rows but its own. Default False.
        max_subwords: int, most rows of a word; of longer words the first so many count. Default
            256, enough for 65 characters with n-grams of 3 to 6.
        sequence_length, pad_to_length, pad_to_multiple: as of `WordsPreprocessor`. With
            `pad_to_length`, the rows of a word are padded to `max_subwords`, too; else to a power
            of two.
    """

    def __init__(
        self,
        tokenizer,
        subwords,
        ngram_row=None,
        places=None,
        whole_words=False,
        max_subwords=256,
        sequence_length=512,
        pad_to_length=False,
        pad_to_multiple=1,
    ):
        super().__init__(tokenizer, sequence_length, pad_to_length, pad_to_multiple)
        check_count("max_subwords", max_subwords)
        self.subwords = subwords
        self.ngram_row = 1 + len(tokenizer.words) if ngram_row is None else ngram_row
        check_count("ngram_row", self.ngram_row, least=1 + len(tokenizer.words))
        self.whole_words = whole_words
        self.max_subwords = max_subwords
        self.places = None if places is None else np.asarray(places, np.int32)
        if places is not None and self.places.shape != (subwords.buckets,):
            raise ValueError(
                f"`places` must hold a number for each of {subwords.buckets} buckets. "
                f"Received: shape {self.places.shape}"
            )

    @classmethod
    def from_vectors(cls, vectors, lowercase=False, **options):
        """The preprocessor of `kctx.models.SubwordEncoder.from_vectors(vectors)`.

        Args:
            vectors: `kctx.vectors.Vectors` with subwords.
            lowercase: bool, whether text is lower-cased before it is looked up.
            **options: as the constructor.
        """
        rows = vectors.subword_places()
        whole_words = not hasattr(vectors.table, "inputs")
        return cls(
            WordTokenizer(vectors.words, lowercase),
            vectors.subwords,
            1 + (len(vectors) if whole_words else rows.num_words),
            rows.places,
            whole_words,
            **options,
        )

    @property
    def inputs(self):
        """What a batch holds: dict of name to `ModelInput`."""
        ngram_rows = self.subwords.buckets
        if self.places is not None:
            ngram_rows = 1 + int(self.places.max(initial=-1))
        return {
            "subword_ids": ModelInput(
                "int32",
                0,
                "rows of a word and of its n-grams in the table, 0 behind the last",
                axes=("B", "T", "S"),
                count=self.ngram_row + ngram_rows,
            ),
            "padding_mask": super().inputs["padding_mask"],
        }

    @property
    def unknown_id(self):
        """Number of the token without rows, which stands for nothing."""
        return 0

    def encode_words(self, words):
        """Tokens of words, one each: string (W,) -> numbers in the table, and the table.

        Returns:
            (numbers, table): ragged int32 (W, 1) and int32 (1 + W, S), the rows of each token, none
            for number 0.
        """
        table = tf.pad(self.rows_of(self.tokenizer.cased(words)), [[1, 0], [0, 0]])
        numbers = 1 + tf.range(tf.size(words))
        return tf.RaggedTensor.from_tensor(numbers[:, None]), table

    def pack(self, first, second=None, table=None):
        """Puts numbers of tokens together, ragged int32 (B, None) once or twice, as a batch.

        Returns:
            dict of `subword_ids` int32 (B, T, S) and `padding_mask` bool (B, T), True = a word.
        """
        numbers, padding_mask = self._padded(first, second, self.unknown_id)  # (B, T)
        return {"subword_ids": tf.gather(table, numbers), "padding_mask": padding_mask}

    def rows_of(self, words):
        """The rows of words, their own first: string (N,) -> int32 (N, S), 0 behind the last."""
        ids = self.tokenizer.look_up(words)
        known = ids >= self.tokenizer.first_id
        own = tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(ids, known) - (self.tokenizer.first_id - 1), tf.cast(known, tf.int64)
        )
        # As much of a long word as `max_subwords` can need, if its bytes are valid UTF-8.
        cut = tf.where(known, "</s>", words) if self.whole_words else words
        cut = tf.strings.substr(cut, 0, 4 * (self.max_subwords + self.subwords.max_n + 2))
        ngrams = ngram_buckets(cut, self.subwords)
        if self.places is not None:
            places = tf.gather(self.places, ngrams.flat_values)
            ngrams = tf.ragged.boolean_mask(
                ngrams.with_flat_values(places), ngrams.with_flat_values(places >= 0)
            )
        rows = tf.concat([own, ngrams + self.ngram_row], axis=1)[:, : self.max_subwords]
        width = self.max_subwords
        if not self.pad_to_length:
            longest = tf.cast(tf.reduce_max(tf.concat([rows.row_lengths(), [1]], 0)), tf.int32)
            powers = tf.constant([1 << i for i in range(self.max_subwords.bit_length() + 1)])
            rounded = tf.reduce_min(tf.boolean_mask(powers, powers >= longest))
            width = tf.minimum(rounded, self.max_subwords)
        dense = rows.to_tensor(0)
        dense = tf.pad(dense, [[0, 0], [0, width - tf.shape(dense)[1]]])
        return tf.ensure_shape(dense, [None, self.max_subwords]) if self.pad_to_length else dense

    def with_options(self, **options):
        """The same vocabulary and n-grams under other settings."""
        parts = {"tokenizer": self.tokenizer, "subwords": self.subwords, "places": self.places}
        config = {**self.get_config()}
        del config["subwords"], config["is_pruned"]
        return type(self)(**{**parts, **config, **options})

    def get_config(self):
        """Every setting but the tokenizer and the places."""
        return {
            **super().get_config(),
            "subwords": self.subwords.get_config(),
            "ngram_row": self.ngram_row,
            "whole_words": self.whole_words,
            "max_subwords": self.max_subwords,
            "is_pruned": self.places is not None,
        }

    def save(self, folder):
        """Writes preprocessor.json, the tokenizer's files beside it, and the places if need be."""
        super().save(folder)
        if self.places is not None:
            with whole_file(Path(folder) / _PLACES_FILE) as file:
                np.save(file, self.places, allow_pickle=False)

    @classmethod
    def from_folder(cls, folder, config):
        """Reads what `save` wrote."""
        config = dict(config)
        subwords = Subwords(**config.pop("subwords"))
        places = None
        if config.pop("is_pruned"):
            places = read_array(Path(folder) / _PLACES_FILE)
        return cls(WordTokenizer.from_folder(folder), subwords, places=places, **config)
