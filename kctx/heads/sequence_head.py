"""Heads that answer with one vector for the whole input."""

import keras

from kctx.arguments import check_count, check_number
from kctx.heads.losses import ClassCrossEntropy
from kctx.layers import Dropout, Pooling, truncated_normal


@keras.saving.register_keras_serializable("kctx")
class Classifier(keras.layers.Layer):
    """Dropout and a dense layer on the pooled vector (Devlin et al., 2018, section 4.1).

    Args:
        num_classes: int, C.
        dropout: float, rate on the pooled vector. Default 0.1.
        pooling: "pooled" (the encoder's `pooled_output`), "cls", "mean" or "max". Default:
            "pooled" where the encoder has one, else "mean".

    Call arguments:
        encoded: dict of encoder outputs.
        padding_mask: bool (B, T), True = a real token. Needed for "mean" and "max" to be the same
            in any batch.

    Returns:
        float32 logits (B, C)
    """

    task = "classification"

    def __init__(self, num_classes, dropout=0.1, pooling=None, **kwargs):
        super().__init__(**kwargs)
        check_count("num_classes", num_classes)
        check_number("dropout", dropout, least=0, most=1)
        if pooling not in (None, "pooled", "cls", "mean", "max"):
            raise ValueError(
                f'`pooling` must be "pooled", "cls", "mean" or "max". Received: {pooling!r}'
            )
        self.num_classes = num_classes
        self.dropout = dropout
        self.pooling = pooling

    def output_loss(self):
        """The loss of the logits: mean cross-entropy with int labels (B,)."""
        return ClassCrossEntropy()

    def output_metrics(self):
        """Metrics to watch while training."""
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]

    def needed_positions(self, outputs):
        """Which of an encoder's vectors are looked at: "cls" for the first alone, None for all.

        Args:
            outputs: dict of what the encoder gives, or just the names.
        """
        pooling = self.pooling or ("pooled" if "pooled_output" in outputs else "mean")
        return "cls" if pooling in ("pooled", "cls") else None

    def build(self, encoded_shapes, *args):
        if self.pooling is None:
            self.pooling = "pooled" if "pooled_output" in encoded_shapes else "mean"
        elif self.pooling == "pooled" and "pooled_output" not in encoded_shapes:
            raise ValueError(
                '`pooling="pooled"` needs an encoder with a `pooled_output`. '
                f"Received outputs: {sorted(encoded_shapes)}"
            )
        width = encoded_shapes["sequence_output"][-1]
        self.pool = None
        if self.pooling != "pooled":
            self.pool = Pooling(self.pooling, dtype=self.dtype_policy, name="pool")
        self.pooled_dropout = Dropout(self.dropout, dtype=self.dtype_policy, name="pooled_dropout")
        self.dense = keras.layers.Dense(
            self.num_classes,
            kernel_initializer=truncated_normal(),
            dtype="float32",
            name="dense",
        )
        self.dense.build((None, width))

    def call(self, encoded, padding_mask=None, training=None):
        if self.pool is None:
            pooled = encoded["pooled_output"]  # (B, D)
        else:
            pooled = self.pool(encoded["sequence_output"], padding_mask)
        return self.dense(self.pooled_dropout(pooled, training=training))

    def compute_output_shape(self, encoded_shapes, *args, **kwargs):
        return (encoded_shapes["sequence_output"][0], self.num_classes)

    def get_config(self):
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "dropout": self.dropout,
            "pooling": self.pooling,
        }


@keras.saving.register_keras_serializable("kctx")
class Regressor(Classifier):
    """One number for the whole input, a `Classifier` with one output: float32 (B, 1).

    The logit is the answer; trained with mean squared error (Devlin et al., 2018, section 4.1,
    STS-B).
    """

    task = "regression"

    def __init__(self, dropout=0.1, pooling=None, **kwargs):
        super().__init__(num_classes=1, dropout=dropout, pooling=pooling, **kwargs)

    def output_loss(self):
        """The loss of the answers: mean squared error with float labels (B, 1)."""
        return keras.losses.MeanSquaredError()

    def output_metrics(self):
        """None beside the loss."""
        return []

    def get_config(self):
        config = super().get_config()
        del config["num_classes"]
        return config
