"""Coreference as the ranking of antecedents."""

import keras
from keras import ops

from kctx.arguments import check_count, check_number
from kctx.heads.losses import AntecedentAccuracy, AntecedentLoss
from kctx.layers import Dropout, at_positions, truncated_normal

# Least distance or width of each bucket (Lee et al., 2017, section 4: [1, 2, 3, 4, 5-7, 8-15,
# 16-31, 32-63, 64+]).
BUCKETS = (1, 2, 3, 4, 5, 8, 16, 32, 64)


def bucket(numbers):
    """The bucket of each int: 0 for 1 and less, up to 8 for 64 and more."""
    limits = ops.convert_to_tensor(BUCKETS[1:], "int32")
    return ops.sum(ops.cast(ops.expand_dims(numbers, -1) >= limits, "int32"), axis=-1)


def linked_clusters(antecedents, span_mask):
    """The clusters that links make: int32 (B, S), bool (B, S) -> int32 (B, S).

    Args:
        antecedents: 1 + the place of the span that each goes back to, an earlier one; 0 for none.
        span_mask: True = a real span.

    Returns:
        1 + the place of the first span of each cluster; 0 for a span by itself, and at padding.
    """
    span_mask = ops.cast(span_mask, "bool")
    places = ops.arange(1, ops.shape(antecedents)[1] + 1, dtype="int32")  # (S,)
    root = ops.where(span_mask, ops.where(antecedents > 0, antecedents, places), 0)
    # Each link leads to an earlier place: 2^k steps of them in k rounds.
    for _ in range(16):
        root = ops.take_along_axis(ops.pad(root, ((0, 0), (1, 0))), root, axis=1)
    followed = ops.expand_dims(root, 1) == ops.expand_dims(root, 2)  # (B, S, S)
    others = ops.sum(ops.cast(followed, "int32"), axis=-1) > 1
    return ops.where(span_mask & others, root, 0)


@keras.saving.register_keras_serializable("kctx")
class MentionRanker(keras.layers.Layer):
    """Scores each pair of spans as mentions of the same thing (Lee et al., 2017, arXiv:1707.07045,
    sections 3 and 5).

    A span's vector g is that of its first token, of its last one, a weighted mean of its tokens
    and an embedding of its width. s(i, j) = m(g_i) + m(g_j) + a(g_i, g_j), with the pair score a
    of g_i, g_j, their product and an embedding of their distance in spans; the score of no
    antecedent is 0. Departs from the paper in that the spans are given rather than pruned from all,
    and in having one hidden layer for two.

    Args:
        hidden_dim: int, width of the hidden layers. Default 150.
        feature_dim: int, width of the embeddings of widths and distances. Default 20.
        dropout: float, rate on the hidden layers. Default 0.2.

    Call arguments:
        encoded: dict of encoder outputs.
        padding_mask: not used.
        span_starts, span_ends: int32 (B, S), first and last token of each span among T, in the
            order of the text; 0 at padding.
        span_mask: bool (B, S), True = a real span; real ones come first.

    Returns:
        float32 (B, S, S + 1), scores of antecedents: the first is that of none, 0; the others are
        spans, -1e9 for those that are not before the span, and at padding.
    """

    task = "coreference"

    def __init__(self, hidden_dim=150, feature_dim=20, dropout=0.2, **kwargs):
        super().__init__(**kwargs)
        for name, value in (("hidden_dim", hidden_dim), ("feature_dim", feature_dim)):
            check_count(name, value)
        check_number("dropout", dropout, least=0, most=1)
        self.hidden_dim = hidden_dim
        self.feature_dim = feature_dim
        self.dropout = dropout

    def extra_inputs(self):
        """Inputs beyond the encoder's: dict of `keras.KerasTensor`, shapes without the batch."""
        return {
            "span_starts": keras.KerasTensor((None,), "int32"),
            "span_ends": keras.KerasTensor((None,), "int32"),
            "span_mask": keras.KerasTensor((None,), "bool"),
        }

    def output_loss(self):
        """The loss of the scores: `AntecedentLoss` with clusters int (B, S), -1 at padding."""
        return AntecedentLoss()

    def output_metrics(self):
        """Metrics to watch while training: the share of spans with a right antecedent."""
        return [AntecedentAccuracy()]

    def decode(self, scores, span_mask):
        """The cluster of each span: scores (B, S, S + 1), bool (B, S) -> int32 (B, S).

        Spans that are linked, directly or through others, have the same number: 1 + the place of
        the first of them. 0 for a span by itself, and at padding.
        """
        return linked_clusters(ops.cast(ops.argmax(scores, axis=-1), "int32"), span_mask)

    def build(self, encoded_shapes, *args, **kwargs):
        width = encoded_shapes["sequence_output"][-1]
        span = 3 * width + self.feature_dim

        def dense(name, units, inputs, activation=None, dtype=None, use_bias=True):
            layer = keras.layers.Dense(
                units,
                activation=activation,
                use_bias=use_bias,
                kernel_initializer=truncated_normal(),
                dtype=dtype or self.dtype_policy,
                name=name,
            )
            layer.build((None, None, inputs))
            return layer

        def embedding(name):
            layer = keras.layers.Embedding(
                len(BUCKETS),
                self.feature_dim,
                embeddings_initializer=truncated_normal(),
                dtype=self.dtype_policy,
                name=name,
            )
            layer.build((None, None))
            return layer

        self.width_embedding = embedding("width_embedding")
        self.distance_embedding = embedding("distance_embedding")
        self.token_score = dense("token_score", 1, width, dtype="float32", use_bias=False)
        self.mention_hidden = dense("mention_hidden", self.hidden_dim, span, "relu")
        self.mention_score = dense("mention_score", 1, self.hidden_dim, dtype="float32")
        # The first layer of the pair score, one kernel for each part of what it is applied to.
        units, features = self.hidden_dim, self.feature_dim
        self.pair_span = dense("pair_span", units, span)
        self.pair_antecedent = dense("pair_antecedent", units, span, use_bias=False)
        self.pair_product = dense("pair_product", units, span, use_bias=False)
        self.pair_distance = dense("pair_distance", units, features, use_bias=False)
        self.pair_score = dense("pair_score", 1, self.hidden_dim, dtype="float32")
        self.hidden_dropout = Dropout(self.dropout, dtype=self.dtype_policy, name="hidden_dropout")

    def span_vectors(self, x, starts, ends):
        """x (B, T, D), int (B, S), int (B, S) -> (B, S, 3·D + feature_dim)."""
        places = ops.arange(ops.shape(x)[1], dtype="int32")  # (T,)
        inside = (places >= ops.expand_dims(starts, -1)) & (places <= ops.expand_dims(ends, -1))
        scores = ops.swapaxes(self.token_score(x), 1, 2)  # (B, 1, T)
        weights = ops.softmax(ops.where(inside, scores, -1e9), axis=-1)  # (B, S, T)
        head = ops.matmul(ops.cast(weights, x.dtype), x)  # (B, S, D)
        width = self.width_embedding(bucket(ends - starts + 1))
        first = at_positions(x, starts, "span_starts")  # (B, S, D)
        last = at_positions(x, ends, "span_ends")
        return ops.concatenate([first, last, head, width], axis=-1)

    def call(self, encoded, padding_mask=None, *, span_starts, span_ends, span_mask, training=None):
        g = self.span_vectors(encoded["sequence_output"], span_starts, span_ends)  # (B, S, G)
        hidden = self.hidden_dropout(self.mention_hidden(g), training=training)
        mention = self.mention_score(hidden)  # (B, S, 1)
        places = ops.arange(ops.shape(span_mask)[1], dtype="int32")
        apart = ops.expand_dims(places, 1) - ops.expand_dims(places, 0)  # (S, S), i - j
        product = ops.expand_dims(g, 2) * ops.expand_dims(g, 1)  # (B, S, S, G)
        pair = (
            ops.expand_dims(self.pair_span(g), 2)
            + ops.expand_dims(self.pair_antecedent(g), 1)
            + self.pair_product(product)
            + self.pair_distance(self.distance_embedding(bucket(apart)))
        )  # (B, S, S, hidden_dim)
        pair = self.hidden_dropout(ops.relu(pair), training=training)
        scores = self.pair_score(pair)[..., 0] + mention + ops.swapaxes(mention, 1, 2)
        real = ops.expand_dims(span_mask, 2) & ops.expand_dims(span_mask, 1) & (apart > 0)
        scores = ops.where(real, scores, -1e9)  # (B, S, S)
        return ops.pad(scores, ((0, 0), (0, 0), (1, 0)))  # (B, S, S + 1)

    def compute_output_spec(self, encoded, padding_mask=None, *, span_mask, **kwargs):
        batch, spans = span_mask.shape
        return keras.KerasTensor((batch, spans, None if spans is None else spans + 1), "float32")

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "feature_dim": self.feature_dim,
            "dropout": self.dropout,
        }
