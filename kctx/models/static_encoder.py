"""Static word vectors as an encoder: the first layer of any later model."""

import keras

from kctx.arguments import check_count
from kctx.layers import TokenEmbedding
from kctx.models.encoder import Encoder
from kctx.models.word_rows import fill_rows, table_shape

UNKNOWN_ROWS = ("zeros", "mean")


@keras.saving.register_keras_serializable("kctx")
class StaticEncoder(Encoder):
    """Looks each word up in a table: one vector whatever stands around it.

    Row 0 is padding, row 1 stands for every unknown word, word i of the vectors has row i + 2.

    Args:
        vocabulary_size: int, V, rows of the table, those two included.
        hidden_dim: int, D.
        initializer: of the table. Default "uniform", in [-0.05, 0.05].
        dtype: dtype policy. Default: the global one.
        trainable: whether fine-tuning moves the table. Default True.

    Inputs, a dict:
        token_ids: int32 (B, T). padding_mask: bool (B, T), True = a real token.

    Outputs, a dict:
        sequence_output: (B, T, D). hidden_states: list of one (B, T, D), the same.

    Example:
        encoder = kctx.models.StaticEncoder.from_vectors(vectors)
        classifier = kctx.heads.attach(encoder, kctx.heads.Classifier(2, pooling="mean"))
    """

    def __init__(
        self,
        vocabulary_size,
        hidden_dim,
        initializer="uniform",
        dtype=None,
        name="static_encoder",
        **kwargs,
    ):
        check_count("vocabulary_size", vocabulary_size)
        check_count("hidden_dim", hidden_dim)

        # layers
        self.token_embedding = TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=initializer,
            dtype=dtype,
            name="token_embedding",
        )

        # graph
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        super().__init__(
            inputs=inputs, outputs=self.encode(inputs), dtype=dtype, name=name, **kwargs
        )

        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim

    @classmethod
    def from_vectors(cls, vectors, unknown="zeros", **kwargs):
        """An encoder whose table is that of trained vectors.

        On a CPU the table is copied piece by piece: 2 million words of 300 dimensions take 2.4 GB
        and no more. On an accelerator it is as a whole in the memory of both for a moment. Rows
        with NaN or infinity become zeros, with a warning.

        Args:
            vectors: `kctx.vectors.Vectors`. Their n-grams, if they have some, are left aside: see
                `SubwordEncoder`.
            unknown: row of unknown words: "zeros", so that they do not move a mean but by their
                number, or "mean" of all rows that are finite.
            **kwargs: as the constructor.

        Raises:
            ValueError: unknown choice, or no words.
        """
        if unknown not in UNKNOWN_ROWS:
            raise ValueError(f"`unknown` must be one of {UNKNOWN_ROWS}. Received: {unknown!r}")
        parts = [(vectors.table, 0)]
        encoder = cls(*table_shape(parts, first=2), initializer="zeros", **kwargs)
        mean_row = 1 if unknown == "mean" else None
        table = encoder.token_embedding.embeddings
        fill_rows(table, parts, first=2, mean_row=mean_row, words=vectors.words)
        return encoder

    def encode(self, inputs):
        x = self.token_embedding(inputs["token_ids"])  # (B, T, D)
        return {"sequence_output": x, "hidden_states": [x]}

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
        }
