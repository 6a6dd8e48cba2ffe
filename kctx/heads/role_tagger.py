"""Semantic role labelling as tagging."""

import keras
from keras import ops

from kctx.arguments import check_count
from kctx.heads.tagger import Tagger
from kctx.layers import at_positions, truncated_normal


@keras.saving.register_keras_serializable("kctx")
class RoleTagger(Tagger):
    """Tags each word with its role towards one predicate (He et al., 2017; Shi and Lin, 2019,
    arXiv:1904.05255, section 3).

    Each word's vector is joined with an embedding of whether it belongs to the predicate, and with
    the mean vector of the predicate; a layer of rectified units then scores the tags. Departs from
    Shi and Lin in having no recurrent layer between.

    Args:
        num_tags: int, C.
        indicator_dim: int, width of the indicator's embedding. Default 10.
        hidden_dim: int, width of the hidden layer. Default 300.
        dropout, allowed: as of `Tagger`.

    Call arguments:
        encoded, padding_mask, word_positions, word_mask: as of `Tagger`.
        predicate_indicator: int32 (B, W), 1 at the words of the predicate, else 0.

    Returns:
        float32 logits (B, W, C), 0 at padding
    """

    def __init__(
        self, num_tags, indicator_dim=10, hidden_dim=300, dropout=0.1, allowed=None, **kwargs
    ):
        super().__init__(num_tags, dropout=dropout, allowed=allowed, **kwargs)
        for name, value in (("indicator_dim", indicator_dim), ("hidden_dim", hidden_dim)):
            check_count(name, value)
        self.indicator_dim = indicator_dim
        self.hidden_dim = hidden_dim

    def extra_inputs(self):
        """Inputs beyond the encoder's, see `Tagger`."""
        indicator = keras.KerasTensor((None,), "int32")
        return {**super().extra_inputs(), "predicate_indicator": indicator}

    def build_scores(self, width):
        self.indicator_embedding = keras.layers.Embedding(
            2,
            self.indicator_dim,
            embeddings_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="indicator_embedding",
        )
        self.indicator_embedding.build((None, None))
        self.hidden = keras.layers.Dense(
            self.hidden_dim,
            activation="relu",
            kernel_initializer=truncated_normal(),
            dtype=self.dtype_policy,
            name="hidden",
        )
        self.hidden.build((None, None, 2 * width + self.indicator_dim))
        super().build_scores(self.hidden_dim)

    def call(
        self,
        encoded,
        padding_mask=None,
        *,
        word_positions,
        word_mask,
        predicate_indicator,
        training=None,
    ):
        words = at_positions(
            encoded["sequence_output"], word_positions, "word_positions"
        )  # (B, W, D)
        words = self.word_dropout(words, training=training)
        indicator = ops.where(word_mask, ops.clip(predicate_indicator, 0, 1), 0)  # (B, W)
        weights = ops.cast(ops.expand_dims(indicator, -1), words.dtype)  # (B, W, 1)
        count = ops.maximum(ops.sum(weights, axis=1, keepdims=True), 1)
        predicate = ops.sum(words * weights, axis=1, keepdims=True) / count  # (B, 1, D)
        predicate = predicate + ops.zeros_like(words)  # (B, W, D)
        x = ops.concatenate([words, self.indicator_embedding(indicator), predicate], axis=-1)
        logits = self.dense(self.hidden(x))  # (B, W, C)
        return ops.where(ops.expand_dims(word_mask, -1), logits, 0.0)

    def get_config(self):
        return {
            **super().get_config(),
            "indicator_dim": self.indicator_dim,
            "hidden_dim": self.hidden_dim,
        }
