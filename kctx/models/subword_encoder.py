"""Word vectors made of n-grams as an encoder: no word is unknown."""

import keras

from kctx.arguments import check_count
from kctx.layers import SubwordEmbedding
from kctx.models.encoder import Encoder
from kctx.models.word_rows import fill_rows, table_shape


@keras.saving.register_keras_serializable("kctx")
class SubwordEncoder(Encoder):
    """fastText's vectors, the mean of a word's own row and of its n-grams' (Bojanowski et al.,
    2017, section 3.2).

    New against `StaticEncoder`: a word that is not in the vocabulary still has n-grams.

    Args:
        table_size: int, rows of the table: 1 for padding, the words, the buckets of n-grams.
        hidden_dim: int, D.
        initializer: of the table. Default "uniform", in [-0.05, 0.05].
        dtype: dtype policy. Default: the global one.
        trainable: whether fine-tuning moves the table. Default True.

    Inputs, a dict:
        subword_ids: int32 (B, T, S), the rows of each token, 0 behind the last of them.
        padding_mask: bool (B, T), True = a real token.

    Outputs, a dict:
        sequence_output: (B, T, D), zeros for a token without rows. hidden_states: list of one
        (B, T, D), the same.
    """

    def __init__(
        self,
        table_size,
        hidden_dim,
        initializer="uniform",
        dtype=None,
        name="subword_encoder",
        **kwargs,
    ):
        check_count("table_size", table_size)
        check_count("hidden_dim", hidden_dim)

        # layers
        self.subword_embedding = SubwordEmbedding(
            table_size,
            hidden_dim,
            embeddings_initializer=initializer,
            dtype=dtype,
            name="subword_embedding",
        )

        # graph
        inputs = {
            "subword_ids": keras.Input((None, None), dtype="int32", name="subword_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        super().__init__(
            inputs=inputs, outputs=self.encode(inputs), dtype=dtype, name=name, **kwargs
        )

        self.table_size = table_size
        self.hidden_dim = hidden_dim

    @classmethod
    def from_vectors(cls, vectors, **kwargs):
        """An encoder that answers as the vectors do, for known words and for others.

        Its table is fastText's input matrix where the vectors hold it. Where they hold each word's
        vector as a whole (of `Vectors.only` and `stored_as`), it is these and then the n-grams. It
        is copied as in `StaticEncoder.from_vectors`. `SubwordsPreprocessor.from_vectors` gives the
        ids that belong to it.

        Args:
            vectors: `kctx.vectors.Vectors` with subwords.
            **kwargs: as the constructor.

        Raises:
            ValueError: the vectors have no subwords.
        """
        if vectors.subwords is None:
            raise ValueError(
                "`vectors` must have subwords, as those of a fastText .bin file. Received: "
                f"{len(vectors.words):,} words without; use `StaticEncoder`"
            )
        inputs = getattr(vectors.table, "inputs", None)
        parts = [(inputs, 0)]
        if inputs is None:
            ngrams = vectors.subword_table, vectors.subword_places().num_words
            parts = [(vectors.table, 0), ngrams]
        encoder = cls(*table_shape(parts, first=1), initializer="zeros", **kwargs)
        fill_rows(encoder.subword_embedding.embeddings, parts, first=1, words=vectors.words)
        return encoder

    def encode(self, inputs):
        x = self.subword_embedding(inputs["subword_ids"])  # (B, T, D)
        return {"sequence_output": x, "hidden_states": [x]}

    def id_limits(self):
        return {"subword_ids": self.table_size}

    def get_config(self):
        return {
            **super().get_config(),
            "table_size": self.table_size,
            "hidden_dim": self.hidden_dim,
        }
