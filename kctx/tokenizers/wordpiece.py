"""WordPiece, as BERT has it."""

import os
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from kctx.files import read_json, write_json
from kctx.tokenizers.decode import join_pieces
from kctx.tokenizers.text_input import with_rank
from kctx.tokenizers.unicode_tables import unicode_tables
from kctx.tokenizers.vocabulary import read_vocabulary, write_vocabulary
from kctx.tokenizers.vocabulary_checks import (
    SUFFIX_INDICATOR,
    check_apart,
    check_vocabulary,
    warn_of_unreachable,
)
from kctx.tokenizers.words import split_words


class WordPieceTokenizer:
    """Text to the ids that the original BERT tokenizer gives, on any Unicode, and back.

    Cleans, sets spaces around CJK, normalises, splits at white space and punctuation, and cuts each
    word greedily into the longest pieces of the vocabulary (Devlin et al., 2018, section 3; Wu et
    al., 2016, section 4.1; rules of the reference implementation's `tokenization.py`). It is built
    of graph operations alone, without tables that a graph would have to own, so the very same code
    runs eagerly, in `tf.data` and inside an exported SavedModel.

    Args:
        vocabulary: list of str, or path of a vocab.txt in which a line's number is its id.
        lowercase: bool, default True (the uncased models).
        strip_accents: bool. Default: as `lowercase`, which is what the original does.
        split_cjk: bool, whether each ideograph is a word of its own. Default True.
        max_word_chars: int, longer words become the unknown token. Default 200, as in the original
            since November 2018; 100 before that and in Hugging Face's tokenizers.
        special_tokens_in_text: bool, whether a special token spelt out in the text, such as
            "[MASK]", is taken for the token. Default False: text is text, which is safe for text
            of strangers and is what the original does.
        unknown_token, padding_token, start_token, separator_token, mask_token: str.

    Raises:
        ValueError: the vocabulary is empty, repeats a token, lacks a special one, or holds a token
            that no trie can store; the file is not UTF-8 (its name and the byte's offset are told);
            special tokens to be found in the text could overlap there.
        FileNotFoundError: no such file.
    """

    def __init__(
        self,
        vocabulary,
        lowercase=True,
        strip_accents=None,
        split_cjk=True,
        max_word_chars=200,
        special_tokens_in_text=False,
        unknown_token="[UNK]",
        padding_token="[PAD]",
        start_token="[CLS]",
        separator_token="[SEP]",
        mask_token="[MASK]",
    ):
        if isinstance(vocabulary, (str, os.PathLike)):
            vocabulary = read_vocabulary(vocabulary)
        if max_word_chars < 1:
            raise ValueError(f"`max_word_chars` must be at least 1. Received: {max_word_chars}")
        self.vocabulary = list(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = lowercase if strip_accents is None else strip_accents
        self.split_cjk = split_cjk
        self.max_word_chars = max_word_chars
        self.special_tokens_in_text = special_tokens_in_text
        self.special_tokens = {
            "unknown_token": unknown_token,
            "padding_token": padding_token,
            "start_token": start_token,
            "separator_token": separator_token,
            "mask_token": mask_token,
        }
        self._ids = check_vocabulary(self.vocabulary, self.special_tokens)
        for role, token in self.special_tokens.items():
            setattr(self, role, token)
            setattr(self, f"{role.removesuffix('_token')}_id", self._ids[token])
        if special_tokens_in_text:
            check_apart(sorted(set(self.special_tokens.values())))
        warn_of_unreachable(
            self.vocabulary, self.special_tokens, self.lowercase, self.strip_accents
        )
        self._tables = unicode_tables(self.lowercase, self.strip_accents, self.split_cjk)
        self._pieces = tf_text.FastWordpieceTokenizer(
            self.vocabulary,
            suffix_indicator=SUFFIX_INDICATOR,
            max_bytes_per_word=1 << 30,  # the limit of the original is in characters: see below
            token_out_type=tf.int32,
            unknown_token=unknown_token,
            no_pretokenization=True,
        )
        # Compiled once for texts typed in by hand; inside tf.data and exports they are inlined.
        signature = [tf.TensorSpec([None], tf.string)]
        self._flat_ids = tf.function(self._ids_of, signature, autograph=False)
        self._flat_offsets = tf.function(self._offsets_of, signature, autograph=False)

    @property
    def vocabulary_size(self):
        """Number of tokens."""
        return len(self.vocabulary)

    def id_to_token(self, index):
        """The token of an id; raises IndexError outside [0, vocabulary_size)."""
        if not 0 <= index < len(self.vocabulary):
            raise IndexError(
                f"`index` must lie in [0, {len(self.vocabulary)}). Received: {int(index)}"
            )
        return self.vocabulary[int(index)]

    def token_to_id(self, token):
        """The id of a token, or of the unknown token."""
        return self._ids.get(token, self.unknown_id)

    def __call__(self, text):
        """Tokenises.

        Args:
            text: str, bytes, nested lists or arrays of them, or a string tensor, of rank 0, 1 or 2
                (ragged allowed). Invalid UTF-8 is ignored, and so are lone surrogates.

        Returns:
            int32 ids with one more dimension than `text`: `tf.Tensor` for rank 0, else
            `tf.RaggedTensor`.
        """
        return with_rank(text, self._flat_ids)

    def tokenize_with_offsets(self, text):
        """Tokenises and says where each token stands.

        Returns:
            (ids, starts, ends), all as from `__call__`; token i is `text[starts[i]:ends[i]]` of the
            original string in code points (of its valid part, where bytes are not valid UTF-8).
        """
        return with_rank(text, self._flat_offsets)

    def _pieces_of(self, text):
        """string (N,) -> `Words`, bool (W,) too long, pieces and byte offsets (W, None)."""
        special = tuple(self.special_tokens.values()) if self.special_tokens_in_text else ()
        found = split_words(text, self._tables, special)
        too_long = found.code_splits[1:] - found.code_splits[:-1] > self.max_word_chars  # (W,)
        words = tf.cond(
            tf.reduce_any(too_long),
            lambda: tf.where(too_long, self.unknown_token, found.words),
            lambda: found.words,
        )
        return found, too_long, *self._pieces.tokenize_with_offsets(words)

    def _ids_of(self, text):
        """string (N,) -> int32 ragged (N, None)."""
        found, _, pieces, _, _ = self._pieces_of(text)
        splits = tf.gather(pieces.row_splits, found.row_splits)  # (N + 1,)
        return tf.RaggedTensor.from_row_splits(pieces.flat_values, splits, validate=False)

    def _offsets_of(self, text):
        """string (N,) -> ids, starts, ends, each int32 ragged (N, None)."""
        found, too_long, pieces, byte_starts, byte_ends = self._pieces_of(text)
        splits = tf.gather(pieces.row_splits, found.row_splits)  # (N + 1,)

        # Byte offsets in normalised words -> code points of the original text.
        first, last = found.code_splits[:-1], found.code_splits[1:]  # (W,)
        piece_words = pieces.value_rowids()  # (P,)
        widths = 1 + sum(tf.cast(found.codes > last, tf.int64) for last in (0x7F, 0x7FF, 0xFFFF))
        byte_places = tf.cumsum(tf.concat([[0], widths], 0))  # (X + 1,)
        origin = tf.gather(byte_places, tf.gather(first, piece_words))

        def code_of(byte_offsets):
            place = origin + tf.cast(byte_offsets.flat_values, tf.int64)
            return tf.searchsorted(byte_places, place, out_type=tf.int64)

        whole = tf.gather(too_long, piece_words)
        begin = code_of(byte_starts)
        end = tf.where(whole, tf.gather(last, piece_words), code_of(byte_ends))
        texts = tf.RaggedTensor.from_row_splits(begin, splits, validate=False).value_rowids()
        text_starts = tf.gather(found.text_starts, texts)

        def ragged(values):
            values = tf.cast(values, tf.int32)
            return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

        starts = tf.gather(found.places, begin) - text_starts
        ends = tf.gather(found.places, end - 1) + 1 - text_starts
        return ragged(pieces.flat_values), ragged(starts), ragged(ends)

    def detokenize(self, ids, skip_special_tokens=False):
        """Ids back to text: pieces joined, no spaces next to CJK, padding left out.

        Args:
            ids: ints of rank 1 or 2 (list, array, tensor, ragged).
            skip_special_tokens: bool, whether [CLS], [SEP], [MASK] and [UNK] are left out as well.

        Returns:
            str for rank 1, list of str for rank 2.
        """
        rows = ids.to_list() if isinstance(ids, tf.RaggedTensor) else list(ids)
        if rows and np.ndim(rows[0]) > 0:
            return [self.detokenize(row, skip_special_tokens) for row in rows]
        skipped = {self.padding_id}
        if skip_special_tokens:
            skipped = {self._ids[token] for token in self.special_tokens.values()}
        tokens = [self.id_to_token(int(index)) for index in rows if int(index) not in skipped]
        return join_pieces(tokens, SUFFIX_INDICATOR)

    def get_config(self):
        """Every setting but the vocabulary."""
        return {
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "split_cjk": self.split_cjk,
            "max_word_chars": self.max_word_chars,
            "special_tokens_in_text": self.special_tokens_in_text,
            **self.special_tokens,
        }

    def with_options(self, **options):
        """The same vocabulary under other settings, for instance `special_tokens_in_text=True`."""
        return type(self)(self.vocabulary, **{**self.get_config(), **options})

    def save_assets(self, folder):
        """Writes vocabulary.txt and tokenizer.json."""
        folder = Path(folder)
        write_vocabulary(self.vocabulary, folder / "vocabulary.txt")
        write_json(folder / "tokenizer.json", self.get_config())

    @classmethod
    def from_folder(cls, folder):
        """Reads what `save_assets` wrote."""
        config = read_json(Path(folder) / "tokenizer.json")
        return cls(Path(folder) / "vocabulary.txt", **config)
