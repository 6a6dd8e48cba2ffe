"""BERT: deep bidirectional Transformers (Devlin et al., 2018, arXiv:1810.04805)."""

import keras

from kctx.arguments import check_count
from kctx.layers import (
    Dropout,
    PositionEmbedding,
    PostNormBlock,
    SegmentEmbedding,
    TokenEmbedding,
    first_and_chosen,
    truncated_normal,
)
from kctx.models.encoder import Encoder


def _size(layers, width, vocabulary_size=30522):
    """Heads are 64 wide and the feed-forward network 4 times the width in every release."""
    return {
        "vocabulary_size": vocabulary_size,
        "num_layers": layers,
        "hidden_dim": width,
        "num_heads": width // 64,
        "intermediate_dim": 4 * width,
    }


@keras.saving.register_keras_serializable("kctx")
class BERT(Encoder):
    """A Transformer encoder that sees both sides of every token.

    New against GPT: no causal mask, so each position is conditioned on left and right context in
    every layer; a learned segment vector tells two sentences apart; the vector of the first
    token, through a tanh layer, stands for the whole input. It is pretrained with
    `kctx.objectives.MaskedLM` and `kctx.objectives.NextSentence`.

    As the reference implementation does, only keys are masked: padded positions still get
    (meaningless) outputs. A row of nothing but padding is finite.

    Args:
        vocabulary_size: int, V.
        num_layers: int, L.
        hidden_dim: int, D.
        num_heads: int, H; must divide `hidden_dim`.
        intermediate_dim: int, width of the feed-forward networks.
        max_sequence_length: int, rows of the position table. Default 512.
        num_segments: int, rows of the segment table. Default 2.
        activation: "gelu_erf" (as released in 2018, and in the PyTorch ports), "gelu_tanh" (the
            reference repository since February 2019) or "relu". Default "gelu_erf".
        dropout: float, rate on embeddings and on the output of each part. Default 0.1.
        attention_dropout: float, rate on attention probabilities. Default 0.1.
        layer_norm_epsilon: float. Default 1e-12.
        pooler: bool, whether there is a `pooled_output`. Default True.
        dtype: dtype policy. Default: the global one.

    Inputs, a dict:
        token_ids: int32 (B, T). segment_ids: int32 (B, T).
        padding_mask: bool (B, T), True = a real token.

    Outputs, a dict:
        sequence_output: (B, T, D). pooled_output: (B, D), if `pooler`.
        hidden_states: list of L+1 (B, T, D), embeddings first.

    Example:
        encoder = kctx.models.BERT.from_size("tiny")
        # Gives the head the padding mask, and checks ids before a step rather than within it.
        classifier = kctx.heads.attach(encoder, kctx.heads.Classifier(2))
    """

    takes_positions = True
    SIZES = {
        "tiny": _size(2, 128),
        "mini": _size(4, 256),
        "small": _size(4, 512),
        "medium": _size(8, 512),
        "base": _size(12, 768),
        "large": _size(24, 1024),
        "base_cased": _size(12, 768, 28996),
        "large_cased": _size(24, 1024, 28996),
        "base_chinese": _size(12, 768, 21128),
        "base_multilingual_cased": _size(12, 768, 119547),
        "base_multilingual_uncased": _size(12, 768, 105879),
        # The 24 compact models (Turc et al., 2019, arXiv:1908.08962).
        **{
            f"L{layers}_H{width}": _size(layers, width)
            for layers in (2, 4, 6, 8, 10, 12)
            for width in (128, 256, 512, 768)
        },
    }

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        hidden_dim,
        num_heads,
        intermediate_dim,
        max_sequence_length=512,
        num_segments=2,
        activation="gelu_erf",
        dropout=0.1,
        attention_dropout=0.1,
        layer_norm_epsilon=1e-12,
        pooler=True,
        dtype=None,
        **kwargs,
    ):
        for argument, value in (
            ("vocabulary_size", vocabulary_size),
            ("num_layers", num_layers),
            ("hidden_dim", hidden_dim),
            ("num_heads", num_heads),
            ("intermediate_dim", intermediate_dim),
            ("max_sequence_length", max_sequence_length),
            ("num_segments", num_segments),
        ):
            check_count(argument, value)
        if not 0 <= layer_norm_epsilon < 1:
            raise ValueError(
                f"`layer_norm_epsilon` must lie in [0, 1). Received: {layer_norm_epsilon!r}"
            )
        if hidden_dim % num_heads:
            raise ValueError(
                "`num_heads` must divide `hidden_dim`. "
                f"Received: hidden_dim={hidden_dim}, num_heads={num_heads}"
            )

        # layers
        self.token_embedding = TokenEmbedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=truncated_normal(),
            dtype=dtype,
            name="token_embedding",
        )
        self.position_embedding = PositionEmbedding(
            max_sequence_length, dtype=dtype, name="position_embedding"
        )
        self.segment_embedding = SegmentEmbedding(
            num_segments,
            hidden_dim,
            embeddings_initializer=truncated_normal(),
            dtype=dtype,
            name="segment_embedding",
        )
        self.embedding_norm = keras.layers.LayerNormalization(
            epsilon=layer_norm_epsilon, dtype=dtype, name="embedding_norm"
        )
        self.embedding_dropout = Dropout(dropout, dtype=dtype, name="embedding_dropout")
        self.blocks = [
            PostNormBlock(
                num_heads,
                intermediate_dim,
                activation=activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
                layer_norm_epsilon=layer_norm_epsilon,
                dtype=dtype,
                name=f"block_{index}",
            )
            for index in range(num_layers)
        ]
        self.pooler = (
            keras.layers.Dense(
                hidden_dim,
                activation="tanh",
                kernel_initializer=truncated_normal(),
                dtype=dtype,
                name="pooler",
            )
            if pooler
            else None
        )

        # graph
        inputs = {
            "token_ids": keras.Input((None,), dtype="int32", name="token_ids"),
            "segment_ids": keras.Input((None,), dtype="int32", name="segment_ids"),
            "padding_mask": keras.Input((None,), dtype="bool", name="padding_mask"),
        }
        super().__init__(inputs=inputs, outputs=self.encode(inputs), dtype=dtype, **kwargs)

        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length = max_sequence_length
        self.num_segments = num_segments
        self.activation = activation
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.layer_norm_epsilon = layer_norm_epsilon

    def encode(self, inputs, positions=None):
        x = self.token_embedding(inputs["token_ids"])  # (B, T, D)
        x = x + self.position_embedding(x) + self.segment_embedding(inputs["segment_ids"])
        x = self.embedding_dropout(self.embedding_norm(x))
        mask = keras.ops.expand_dims(inputs["padding_mask"], 1)  # (B, 1, T)
        hidden_states = [x]
        for block in self.blocks[:-1]:
            x = block(x, attention_mask=mask)  # (B, T, D)
            hidden_states.append(x)
        queries = first_and_chosen(x, positions)
        x = self.blocks[-1](x, attention_mask=mask, queries=queries)  # (B, T or Q, D)
        first = x[:, 0]
        if positions is not None and not isinstance(positions, str):
            x = x[:, 1:]  # (B, P, D)
        outputs = {"sequence_output": x, "hidden_states": [*hidden_states, x]}
        if self.pooler is not None:
            outputs["pooled_output"] = self.pooler(first)  # (B, D)
        return outputs

    def id_limits(self):
        return {**super().id_limits(), "segment_ids": self.num_segments}

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "hidden_dim": self.hidden_dim,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "activation": self.activation,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "pooler": self.pooler is not None,
        }
