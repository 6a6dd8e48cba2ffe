"""Heads that answer with one tag for each word."""

import keras
from keras import ops

from kctx.arguments import check_count, check_number
from kctx.heads.losses import CRFLoss, PaddedAccuracy, PaddedCrossEntropy, TagAccuracy
from kctx.layers import (
    CRF,
    Dropout,
    at_positions,
    best_tags,
    check_allowed,
    tag_probabilities,
    truncated_normal,
)


@keras.saving.register_keras_serializable("kctx")
class Tagger(keras.layers.Layer):
    """A dense layer on the vector of each word's first piece (Devlin et al., 2018, section 5.3).

    Args:
        num_tags: int, C.
        dropout: float, rate on the words' vectors. Default 0.1.
        allowed: (C + 1, C + 1) bools of `kctx.layers.tag_transitions`: which tag may follow which
            in `decode`. Default: all may follow all, and the best tag of each word is taken.

    Call arguments:
        encoded: dict of encoder outputs.
        padding_mask: not used.
        word_positions: int32 (B, W), place of each word's first piece among the T tokens; 0 at
            padding.
        word_mask: bool (B, W), True = a real word; real ones come first.

    Returns:
        float32 logits (B, W, C), 0 at padding
    """

    task = "tagging"

    def __init__(self, num_tags, dropout=0.1, allowed=None, **kwargs):
        super().__init__(**kwargs)
        check_count("num_tags", num_tags)
        check_number("dropout", dropout, least=0, most=1)
        self.num_tags = num_tags
        self.dropout = dropout
        self.allowed = check_allowed(allowed, num_tags)

    def extra_inputs(self):
        """Inputs beyond the encoder's: dict of `keras.KerasTensor`, shapes without the batch."""
        return {
            "word_positions": keras.KerasTensor((None,), "int32"),
            "word_mask": keras.KerasTensor((None,), "bool"),
        }

    def output_loss(self):
        """The loss of the logits: mean cross-entropy with int labels (B, W), -1 at padding."""
        return PaddedCrossEntropy()

    def output_metrics(self):
        """Metrics to watch while training: the share of words with the right tag."""
        return [TagAccuracy(self.allowed)]

    def decode(self, logits, word_mask):
        """The tags: logits (B, W, C), bool (B, W) -> int32 (B, W), 0 at padding.

        Computed with the backend's tensors, so under TensorFlow also within a graph.
        """
        return best_tags(logits, word_mask, self.allowed)

    def probabilities(self, logits, word_mask):
        """The probability of each tag: logits (B, W, C) -> float32 (B, W, C), 0 at padding.

        Under the rules of `allowed`, if there are any.
        """
        return tag_probabilities(logits, word_mask, self.allowed)

    def build(self, encoded_shapes, *args, **kwargs):
        width = encoded_shapes["sequence_output"][-1]
        self.word_dropout = Dropout(self.dropout, dtype=self.dtype_policy, name="word_dropout")
        self.build_scores(width)

    def build_scores(self, width):
        """Makes what gives the logits from the words' vectors (B, W, width)."""
        self.dense = keras.layers.Dense(
            self.num_tags, kernel_initializer=truncated_normal(), dtype="float32", name="dense"
        )
        self.dense.build((None, None, width))

    def call(self, encoded, padding_mask=None, *, word_positions, word_mask, training=None):
        words = at_positions(
            encoded["sequence_output"], word_positions, "word_positions"
        )  # (B, W, D)
        logits = self.dense(self.word_dropout(words, training=training))  # (B, W, C)
        return ops.where(ops.expand_dims(word_mask, -1), logits, 0.0)

    def compute_output_spec(self, encoded, padding_mask=None, *, word_mask, **kwargs):
        return keras.KerasTensor((*word_mask.shape, self.num_tags), "float32")

    def get_config(self):
        return {
            **super().get_config(),
            "num_tags": self.num_tags,
            "dropout": self.dropout,
            "allowed": self.allowed,
        }


@keras.saving.register_keras_serializable("kctx")
class CRFTagger(Tagger):
    """A `Tagger` that learns which tag follows which (Lample et al., 2016, section 2.2).

    The logits are the emissions of a `kctx.layers.CRF`, which the loss, `decode` and
    `probabilities` add the scores of transitions to. Arguments and inputs as of `Tagger`.
    """

    def output_loss(self):
        """The loss of the logits: `CRFLoss` with int labels (B, W), -1 at padding."""
        return CRFLoss(self)

    def output_metrics(self):
        """Metrics to watch while training: the share of words whose best emission is right.

        That leaves out the transitions, which no metric can read within a step under JAX: what is
        decoded is better, see `kctx.evaluation` for its scores.
        """
        return [PaddedAccuracy(name="emission_accuracy")]

    def decode(self, logits, word_mask):
        """The best tag sequence: logits (B, W, C), bool (B, W) -> int32 (B, W), 0 at padding."""
        return self.crf.decode(logits, word_mask)[0]

    def probabilities(self, logits, word_mask):
        """The probability of each tag: logits (B, W, C) -> float32 (B, W, C), 0 at padding."""
        return self.crf(logits, word_mask)

    def build_scores(self, width):
        super().build_scores(width)
        self.crf = CRF(self.num_tags, self.allowed, dtype="float32", name="crf")
        self.crf.build((None, None, self.num_tags))
