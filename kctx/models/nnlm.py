"""The neural probabilistic language model (Bengio, Ducharme, Vincent and Jauvin, JMLR 3, 2003)."""

import keras
import numpy as np
from keras import ops

from kctx.arguments import check_count
from kctx.layers import CheckedInputs, Dropout, TokenEmbedding, check_ids
from kctx.models.sizes import HasSizes


def _size(order, hidden, dim, direct, vocabulary_size=16383):
    return {
        "vocabulary_size": vocabulary_size,
        "context_length": order - 1,
        "embedding_dim": dim,
        "hidden_dim": hidden,
        "direct_connections": direct,
    }


@keras.saving.register_keras_serializable("kctx")
class NNLM(CheckedInputs, HasSizes, keras.Model):
    """The next word from the vectors of the words before it (section 2).

    New against the n-gram: words are points, and what was learnt of one context serves all that
    lie near it. With x the vectors of the context, one below the other,

        logits = b + W x + U tanh(d + H x)

    `token_embedding` holds C, `hidden` H and d; `output` holds b and, in one kernel, the rows of
    W and then of U. Softmax and logits are float32 under every dtype policy.

    The paper gives no ranges for the random start; here all weights but the biases, which are 0,
    begin uniform in [-0.1, 0.1]. Dropout is not the paper's, and off by default.

    Args:
        vocabulary_size: int, |V|.
        context_length: int, n - 1, words of the context.
        embedding_dim: int, m.
        hidden_dim: int, h, units of the hidden layer; 0: there is none, and the direct connections
            do all.
        direct_connections: bool, whether there is W. Default True.
        dropout: float, rate on x and on the hidden layer. Default 0.
        dtype: dtype policy. Default: the global one.

    Inputs, a dict:
        context_ids: int32 (B, n - 1), in reading order, the last word next to the predicted one.

    Outputs:
        float32 logits (B, |V|)

    Example:
        model = kctx.models.NNLM.from_size("mlp5", vocabulary_size=9000)
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    """

    # Tables 1 and 2 of the paper. Those of even numbers are those before them, mixed with a
    # trigram; MLP10 of AP News is named apart.
    SIZES = {
        "mlp1": _size(5, 50, 60, True),
        "mlp2": _size(5, 50, 60, True),
        "mlp3": _size(5, 0, 60, True),
        "mlp4": _size(5, 0, 60, True),
        "mlp5": _size(5, 50, 30, True),
        "mlp6": _size(5, 50, 30, True),
        "mlp7": _size(3, 50, 30, True),
        "mlp8": _size(3, 50, 30, True),
        "mlp9": _size(5, 100, 30, False),
        "mlp10": _size(5, 100, 30, False),
        "ap_mlp10": _size(6, 60, 100, True, 17964),
        "ap_no_direct": _size(6, 60, 100, False, 17964),
    }

    def __init__(
        self,
        vocabulary_size,
        context_length,
        embedding_dim,
        hidden_dim,
        direct_connections=True,
        dropout=0.0,
        dtype=None,
        name="nnlm",
    ):
        for argument, value, least in (
            ("vocabulary_size", vocabulary_size, 1),
            ("context_length", context_length, 1),
            ("embedding_dim", embedding_dim, 1),
            ("hidden_dim", hidden_dim, 0),
        ):
            check_count(argument, value, least)
        if not hidden_dim and not direct_connections:
            raise ValueError(
                "`direct_connections` must be True without a hidden layer. "
                "Received: hidden_dim=0, direct_connections=False"
            )
        if not isinstance(dropout, (int, float)) or not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must lie in [0, 1). Received: {dropout!r}")

        # layers
        start = keras.initializers.RandomUniform(-0.1, 0.1)
        token_embedding = TokenEmbedding(
            vocabulary_size,
            embedding_dim,
            embeddings_initializer=start.clone(),
            dtype=dtype,
            name="token_embedding",
        )
        hidden = keras.layers.Dense(
            hidden_dim or 1,
            activation="tanh",
            kernel_initializer=start.clone(),
            dtype=dtype,
            name="hidden",
        )
        output = keras.layers.Dense(
            vocabulary_size, kernel_initializer=start.clone(), dtype="float32", name="output"
        )

        # graph
        inputs = {"context_ids": keras.Input((context_length,), dtype="int32", name="context_ids")}
        x = token_embedding(inputs["context_ids"])  # (B, n - 1, m)
        x = keras.layers.Reshape((context_length * embedding_dim,), dtype=dtype, name="x")(x)
        x = Dropout(dropout, dtype=dtype, name="x_dropout")(x)
        parts = [x] if direct_connections else []
        if hidden_dim:
            parts.append(Dropout(dropout, dtype=dtype, name="hidden_dropout")(hidden(x)))
        joined = parts[0]
        if len(parts) == 2:
            joined = keras.layers.Concatenate(dtype=dtype, name="x_and_hidden")(parts)
        super().__init__(inputs=inputs, outputs=output(joined), name=name)

        self.token_embedding = token_embedding
        self.hidden = hidden if hidden_dim else None
        self.output_layer = output
        self.vocabulary_size = vocabulary_size
        self.context_length = context_length
        self.embedding_dim = embedding_dim
        self.hidden_dim = hidden_dim
        self.direct_connections = direct_connections
        self.dropout = dropout

    def check_inputs(self, inputs):
        """Raises a `ValueError` on ids outside the table."""
        check_ids("context_ids", inputs["context_ids"], self.vocabulary_size, "token")

    def log_probabilities(self, context_ids, word_ids, batch_size=1024):
        """Natural logarithms of the probabilities of words after contexts.

        Args:
            context_ids: int (N, n - 1).
            word_ids: int (N,).
            batch_size: int, contexts at a time; memory for so many times |V| numbers is taken.
                Default 1024.

        Returns:
            float64 (N,)
        """
        context_ids, word_ids = np.asarray(context_ids), np.asarray(word_ids)
        found = np.empty(len(word_ids), "float64")
        for start in range(0, len(word_ids), batch_size):
            some = slice(start, start + batch_size)
            logits = self({"context_ids": context_ids[some]}, training=False)  # (B, |V|)
            words = ops.expand_dims(ops.convert_to_tensor(word_ids[some], "int32"), 1)
            chosen = ops.take_along_axis(logits, words, axis=1)[:, 0]
            found[some] = ops.convert_to_numpy(chosen - ops.logsumexp(logits, axis=1))
        return found

    def get_config(self):
        return {
            "vocabulary_size": self.vocabulary_size,
            "context_length": self.context_length,
            "embedding_dim": self.embedding_dim,
            "hidden_dim": self.hidden_dim,
            "direct_connections": self.direct_connections,
            "dropout": self.dropout,
            "dtype": keras.dtype_policies.serialize(self.token_embedding.dtype_policy),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)
