"""Similarity of two texts that are encoded apart."""

import keras
from keras import ops

from kctx.heads.attach import EncoderWithHead, needed_positions
from kctx.layers import Dropout, Pooling

SECOND = "_b"


@keras.saving.register_keras_serializable("kctx")
class BiEncoder(keras.layers.Layer):
    """The cosine of two sentence vectors (Reimers and Gurevych, 2019, arXiv:1908.10084, section 3).

    Unlike a `Regressor` on pairs, the vector of a text does not depend on the other text, so
    vectors can be stored and searched.

    Args:
        pooling: "mean" (the paper's best), "cls", "max" or "pooled". Default "mean".
        dropout: float, rate on the vectors in training. Default 0, as the paper.

    Call arguments:
        encoded, encoded_b: dicts of encoder outputs, of the first and the second texts.
        padding_mask, padding_mask_b: bool (B, T), (B, T').

    Returns:
        float32 (B, 1), the cosine; 0 where a text has no real token
    """

    task = "similarity"

    def __init__(self, pooling="mean", dropout=0.0, **kwargs):
        super().__init__(**kwargs)
        if pooling not in ("pooled", "cls", "mean", "max"):
            raise ValueError(
                f'`pooling` must be "pooled", "cls", "mean" or "max". Received: {pooling!r}'
            )
        self.pooling = pooling
        self.pool = None
        if pooling != "pooled":
            self.pool = Pooling(pooling, dtype=self.dtype_policy, name="pool")
        self.drop = Dropout(dropout, dtype=self.dtype_policy, name="drop")

    def output_loss(self):
        """The loss of the answers: mean squared error with float labels (B, 1) in [-1, 1]."""
        return keras.losses.MeanSquaredError()

    def output_metrics(self):
        """None beside the loss."""
        return []

    def needed_positions(self, outputs):
        """Which of an encoder's vectors are looked at, see `Classifier.needed_positions`."""
        return "cls" if self.pooling in ("pooled", "cls") else None

    def build(self, encoded_shapes, *args, **kwargs):
        if self.pooling == "pooled" and "pooled_output" not in encoded_shapes:
            raise ValueError(
                '`pooling="pooled"` needs an encoder with a `pooled_output`. '
                f"Received outputs: {sorted(encoded_shapes)}"
            )

    def sentence_vector(self, encoded, padding_mask=None, training=None):
        """Unit vectors of texts, whose products are the cosines: float32 (B, D)."""
        if self.pool is None:
            x = encoded["pooled_output"]
        else:
            x = self.pool(encoded["sequence_output"], padding_mask)
        x = ops.cast(self.drop(x, training=training), "float32")  # (B, D)
        square = ops.sum(ops.square(x), axis=-1, keepdims=True)
        # Of a text without a token that counts the vector is 0, and stays so without a gradient
        # that would drown all others.
        return x * ops.where(square > 1e-24, ops.rsqrt(ops.maximum(square, 1e-24)), 0.0)

    def call(self, encoded, encoded_b, padding_mask=None, padding_mask_b=None, training=None):
        one = self.sentence_vector(encoded, padding_mask, training)  # (B, D)
        other = self.sentence_vector(encoded_b, padding_mask_b, training)
        return ops.sum(one * other, axis=-1, keepdims=True)  # (B, 1)

    def compute_output_spec(self, encoded, *args, **kwargs):
        return keras.KerasTensor((encoded["sequence_output"].shape[0], 1), "float32")

    def get_config(self):
        return {**super().get_config(), "pooling": self.pooling, "dropout": self.drop.rate}


@keras.saving.register_keras_serializable("kctx")
class EncoderOfPairs(EncoderWithHead):
    """What `attach_pair` makes: one encoder, used on two inputs."""

    def check_inputs(self, inputs):
        """Raises a `ValueError` on what the encoder cannot take, in either text."""
        super().check_inputs(inputs)
        super().check_inputs(
            {name.removesuffix(SECOND): x for name, x in inputs.items() if name.endswith(SECOND)}
        )


def attach_pair(encoder, head, name=None):
    """Attaches a head of two texts to an encoder, which encodes each text by itself.

    Args:
        encoder: an encoder, or any functional model with dict inputs and dict outputs.
        head: `BiEncoder`.
        name: str, name of the model. Default: "<encoder>_<head>".

    Returns:
        `EncoderOfPairs`, a keras.Model. Inputs: those of the encoder, and the same with the suffix
        "_b" for the second text, which may have another length. Output: the head's.
    """
    first = dict(encoder.input)
    second = {
        key: keras.Input(value.shape[1:], dtype=value.dtype, name=key + SECOND)
        for key, value in first.items()
    }
    positions = needed_positions(encoder, head)
    score = head(
        encoder(first, **positions),
        encoder(second, **positions),
        padding_mask=first.get("padding_mask"),
        padding_mask_b=second.get("padding_mask"),
    )
    inputs = {**first, **{key + SECOND: value for key, value in second.items()}}
    return EncoderOfPairs(inputs, score, name=name or f"{encoder.name}_{head.name}")
