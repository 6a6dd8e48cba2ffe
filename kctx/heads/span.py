"""Extractive question answering."""

import keras
from keras import ops

from kctx.arguments import check_number
from kctx.heads.losses import PaddedAccuracy, PaddedCrossEntropy
from kctx.layers import Dropout, truncated_normal


@keras.saving.register_keras_serializable("kctx")
class Span(keras.layers.Layer):
    """Scores each token as the first and as the last one of the answer (Devlin et al., 2018,
    sections 4.2 and 4.3).

    Position 0 stands for "no answer here", as [CLS] does in the paper.

    Args:
        dropout: float, rate on the tokens' vectors. Default 0.0, as in the reference.

    Call arguments:
        encoded: dict of encoder outputs.
        padding_mask: bool (B, T). Not used where there is an `answer_mask`.
        answer_mask: bool (B, T), True = may be part of an answer.

    Returns:
        float32 logits (B, T, 2), of start and end; -1e9 where there can be no answer. Position 0 is
        always possible.
    """

    task = "span"

    def __init__(self, dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        check_number("dropout", dropout, least=0, most=1)
        self.dropout = dropout

    def extra_inputs(self):
        """Inputs beyond the encoder's: dict of `keras.KerasTensor`, shapes without the batch."""
        return {"answer_mask": keras.KerasTensor((None,), "bool")}

    def output_loss(self):
        """The loss of the logits: mean cross-entropy of start and end, labels int (B, 2).

        Labels must be places that are possible; -1 counts as padding.
        """
        return PaddedCrossEntropy(class_axis=1)

    def output_metrics(self):
        """Metrics to watch while training: the share of rows where start and end are right."""
        return [PaddedAccuracy(class_axis=1, whole_rows=True)]

    def build(self, encoded_shapes, *args, **kwargs):
        self.token_dropout = Dropout(self.dropout, dtype=self.dtype_policy, name="token_dropout")
        self.dense = keras.layers.Dense(
            2, kernel_initializer=truncated_normal(), dtype="float32", name="dense"
        )
        self.dense.build((None, None, encoded_shapes["sequence_output"][-1]))

    def call(self, encoded, padding_mask=None, *, answer_mask, training=None):
        x = self.token_dropout(encoded["sequence_output"], training=training)  # (B, T, D)
        first = ops.arange(ops.shape(answer_mask)[1]) == 0  # (T,)
        possible = ops.expand_dims(ops.logical_or(answer_mask, first), -1)  # (B, T, 1)
        return ops.where(possible, self.dense(x), -1e9)  # (B, T, 2)

    def compute_output_spec(self, encoded, padding_mask=None, *, answer_mask, **kwargs):
        return keras.KerasTensor((*encoded["sequence_output"].shape[:2], 2), "float32")

    def get_config(self):
        return {**super().get_config(), "dropout": self.dropout}
