"""One Transformer encoder block with the norm after each sum."""

import keras

from kctx.layers.attention import MultiHeadAttention
from kctx.layers.dropout import Dropout
from kctx.layers.feed_forward import FeedForward
from kctx.layers.part_call import call_part


@keras.saving.register_keras_serializable("kctx")
class PostNormBlock(keras.layers.Layer):
    """Self-attention and feed-forward, each as LN(x + Dropout(f(x))).

    Source: Vaswani et al., 2017, section 3.1; this is the block of BERT (Devlin et al., 2018).

    Args:
        num_heads: int, H.
        intermediate_dim: int, width of the feed-forward network.
        activation: name, see `kctx.layers.activations`. Default "gelu_erf".
        dropout: float, rate on the output of both parts. Default 0.1.
        attention_dropout: float, rate on the attention probabilities. Default 0.1.
        layer_norm_epsilon: float. Default 1e-12.
        initializer: initialiser of the kernels. Default: truncated normal of 0.02.

    Call arguments:
        x: (B, T, D)
        attention_mask: bool, (B, Q or 1, T), True = may attend.
        queries: (B, Q, D), rows of `x` whose outputs are wanted; no work is spent on the others.
            Default: `x`, so Q = T.

    Returns:
        (B, Q, D)
    """

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        activation="gelu_erf",
        dropout=0.1,
        attention_dropout=0.1,
        layer_norm_epsilon=1e-12,
        initializer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.config = {
            "num_heads": num_heads,
            "intermediate_dim": intermediate_dim,
            "activation": activation,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "layer_norm_epsilon": layer_norm_epsilon,
            "initializer": initializer,
        }

        def norm(name):
            return keras.layers.LayerNormalization(
                epsilon=layer_norm_epsilon, name=name, dtype=self.dtype_policy
            )

        self.attention = MultiHeadAttention(
            num_heads, attention_dropout, initializer, name="attention", dtype=self.dtype_policy
        )
        self.attention_norm = norm("attention_norm")
        self.feed_forward = FeedForward(
            intermediate_dim, activation, initializer, name="feed_forward", dtype=self.dtype_policy
        )
        self.feed_forward_norm = norm("feed_forward_norm")
        self.output_dropout = Dropout(dropout, name="output_dropout", dtype=self.dtype_policy)

    def build(self, input_shape):
        for layer in (
            self.attention,
            self.attention_norm,
            self.feed_forward,
            self.feed_forward_norm,
        ):
            layer.build(input_shape)

    def call(self, x, attention_mask=None, queries=None, training=None):
        queries = x if queries is None else queries
        attended = call_part(
            self,
            self.attention,
            queries,
            context=x,
            attention_mask=attention_mask,
            training=training,
        )  # (B, Q, D)
        x = self._sum_norm(self.attention_norm, queries, attended, training)
        transformed = call_part(self, self.feed_forward, x)  # (B, Q, D)
        return self._sum_norm(self.feed_forward_norm, x, transformed, training)

    def _sum_norm(self, norm, x, change, training):
        """LN(x + Dropout(change)): (B, Q, D)."""
        change = call_part(self, self.output_dropout, change, training=training)
        return call_part(self, norm, x + change)

    def compute_output_shape(self, x_shape, attention_mask_shape=None, queries_shape=None):
        return tuple(x_shape if queries_shape is None else queries_shape)

    def get_config(self):
        config = {**super().get_config(), **self.config}
        if config["initializer"] is not None:
            config["initializer"] = keras.initializers.serialize(
                keras.initializers.get(config["initializer"])
            )
        return config
