"""Words of a fixed vocabulary, split at white space: what static vectors take."""

from pathlib import Path

import tensorflow as tf

from kctx.files import read_json, write_json
from kctx.tokenizers.text_input import as_text_tensor, with_rank
from kctx.tokenizers.white_space import lower, split_at_white_space, white_space_offsets
from kctx.tokenizers.word_file import read_words, write_words
from kctx.words import to_bytes


class WordTokenizer:
    """Splits text at white space and looks each word up.

    Id 0 is padding, id 1 any unknown word; word i of `words` has id i + 2. Neither special entry
    can come from a text.

    Args:
        words: list of different str. Bytes that are not UTF-8 are held by lone surrogates.
        lowercase: bool, whether text is lower-cased before it is looked up. Default False.

    Raises:
        ValueError: no words, or one twice.
    """

    padding_id, unknown_id, first_id = 0, 1, 2
    unknown_token = "[UNK]"  # only how it is shown

    def __init__(self, words, lowercase=False):
        self.words = list(words)
        self.lowercase = lowercase
        if not self.words:
            raise ValueError("`words` must hold at least one word. Received: []")
        self._ids = {word: self.first_id + i for i, word in enumerate(self.words)}
        if len(self._ids) < len(self.words):
            seen = set()
            twice = next(word for word in self.words if word in seen or seen.add(word))
            raise ValueError(f"`words` must differ from each other. Received twice: {twice!r}")
        with tf.init_scope():
            keys = tf.constant([to_bytes(word) for word in self.words])
            ids = tf.range(self.first_id, self.vocabulary_size, dtype=tf.int32)
            self._table = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(keys, ids), self.unknown_id
            )
        signature = [tf.TensorSpec([None], tf.string)]
        self._flat_ids = tf.function(self._ids_of, signature, autograph=False)
        self._flat_offsets = tf.function(self._offsets_of, signature, autograph=False)

    @property
    def vocabulary_size(self):
        """Number of ids, the two special ones included."""
        return self.first_id + len(self.words)

    @property
    def vocabulary(self):
        """What each id stands for: list of str."""
        return ["[PAD]", self.unknown_token, *self.words]

    def id_to_token(self, index):
        """The word of an id; raises IndexError outside [0, vocabulary_size)."""
        if not 0 <= index < self.vocabulary_size:
            raise IndexError(
                f"`index` must lie in [0, {self.vocabulary_size}). Received: {int(index)}"
            )
        return ("[PAD]", self.unknown_token)[index] if index < 2 else self.words[int(index) - 2]

    def token_to_id(self, token):
        """The id of a word, or of the unknown word."""
        return self._ids.get(token, self.unknown_id)

    def __call__(self, text):
        """Tokenises.

        Args:
            text: str, bytes, nested lists or arrays of them, or a string tensor, of rank 0, 1 or 2.

        Returns:
            int32 ids with one more dimension than `text`: `tf.Tensor` for rank 0, else
            `tf.RaggedTensor`.
        """
        return with_rank(as_text_tensor(text, keep_bytes=True), self._flat_ids)

    def tokenize_with_offsets(self, text):
        """Tokenises and says where each word stands.

        Returns:
            (ids, starts, ends), all as from `__call__`; word i is `text[starts[i]:ends[i]]` in code
            points of the original string.
        """
        return with_rank(as_text_tensor(text, keep_bytes=True), self._flat_offsets)

    def split(self, text):
        """Words of flat text, lower-cased if asked for: string (N,) -> ragged string (N, None)."""
        words = split_at_white_space(text)
        return words.with_flat_values(self.cased(words.flat_values))

    def cased(self, words):
        """Words as they are looked up, lower-cased if asked for: string, any shape."""
        return lower(words) if self.lowercase else words

    def look_up(self, words):
        """Ids of words: string tensor, ragged or not -> int32 of the same shape."""
        return self._table.lookup(words)

    def _ids_of(self, text):
        return self.look_up(self.split(text))

    def _offsets_of(self, text):
        return self._ids_of(text), *white_space_offsets(text)

    def detokenize(self, ids):
        """Ids back to text, words joined by spaces, padding left out.

        Args:
            ids: list of int, or array of one dimension.
        """
        return " ".join(self.id_to_token(i) for i in map(int, ids) if i != self.padding_id)

    def get_config(self):
        """Every setting but the words."""
        return {"lowercase": self.lowercase}

    def with_options(self, **options):
        """The same words under other settings."""
        return type(self)(self.words, **{**self.get_config(), **options})

    def save_assets(self, folder):
        """Writes words.txt and tokenizer.json."""
        folder = Path(folder)
        write_words(self.words, folder / "words.txt")
        write_json(folder / "tokenizer.json", self.get_config())

    @classmethod
    def from_folder(cls, folder):
        """Reads what `save_assets` wrote."""
        config = read_json(Path(folder) / "tokenizer.json")
        return cls(read_words(Path(folder) / "words.txt"), **config)
