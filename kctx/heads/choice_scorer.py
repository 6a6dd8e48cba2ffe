"""Multiple choice: one score for each choice."""

import keras
from keras import ops

from kctx.heads.attach import EncoderWithHead, extra_tensors, needed_positions
from kctx.heads.losses import PaddedAccuracy, PaddedCrossEntropy
from kctx.heads.sequence_head import Classifier


@keras.saving.register_keras_serializable("kctx")
class ChoiceScorer(Classifier):
    """One number for each pair of context and choice (Radford et al., 2018, section 3.3; Devlin et
    al., 2018, section 4.4).

    Args:
        dropout, pooling: as of `Classifier`.

    Call arguments:
        encoded: dict of encoder outputs of B·N inputs, N for each of B questions.
        padding_mask: bool (B·N, T).
        choice_mask: bool (B, N), True = a real choice.

    Returns:
        float32 logits (B, N), -1e9 where there is no choice
    """

    task = "multiple_choice"

    def __init__(self, dropout=0.1, pooling=None, **kwargs):
        super().__init__(num_classes=1, dropout=dropout, pooling=pooling, **kwargs)

    def extra_inputs(self):
        """Inputs beyond the encoder's: dict of `keras.KerasTensor`, shapes without the batch."""
        return {"choice_mask": keras.KerasTensor((None,), "bool")}

    def output_loss(self):
        """The loss of the logits: mean cross-entropy with int labels (B,), -1 at padding."""
        return PaddedCrossEntropy()

    def output_metrics(self):
        """Metrics to watch while training: the share of questions answered right."""
        return [PaddedAccuracy()]

    def build(self, encoded_shapes, *args, **kwargs):
        super().build(encoded_shapes)

    def call(self, encoded, padding_mask=None, *, choice_mask, training=None):
        scores = super().call(encoded, padding_mask, training=training)  # (B·N, 1)
        scores = ops.reshape(scores, ops.shape(choice_mask))
        return ops.where(choice_mask, scores, -1e9)  # (B, N)

    def compute_output_spec(self, encoded, padding_mask=None, *, choice_mask, **kwargs):
        return keras.KerasTensor(choice_mask.shape, "float32")

    def get_config(self):
        config = super().get_config()
        del config["num_classes"]
        return config


@keras.saving.register_keras_serializable("kctx")
class FoldChoices(keras.layers.Layer):
    """(B, N, ...) -> (B·N, ...): the choices of all questions as one batch for an encoder."""

    def __init__(self, **kwargs):
        super().__init__(autocast=False, **kwargs)  # ids stay ids

    def call(self, x):
        shape = ops.shape(x)
        return ops.reshape(x, (shape[0] * shape[1], *shape[2:]))

    def compute_output_spec(self, x):
        return keras.KerasTensor((None, *x.shape[2:]), x.dtype)

    def get_config(self):
        config = super().get_config()
        config.pop("autocast", None)
        return config


@keras.saving.register_keras_serializable("kctx")
class EncoderWithChoices(EncoderWithHead):
    """What `attach_choices` makes: inputs have an axis of choices behind the batch."""

    def encoder_inputs(self, inputs):
        """The inputs of the encoder, of a batch of arrays."""
        inputs = super().encoder_inputs(inputs)
        return {name: fold(value) for name, value in inputs.items()}


def fold(array):
    """(B, N, ...) -> (B·N, ...) of an array."""
    return ops.reshape(array, (-1, *array.shape[2:]))


def attach_choices(encoder, head, name=None):
    """Attaches a `ChoiceScorer` to an encoder: each choice is encoded by itself.

    Args:
        encoder: an encoder, or any functional model with dict inputs and dict outputs.
        head: layer called as `head(encoded, padding_mask=..., choice_mask=...)`.
        name: str, name of the model. Default: "<encoder>_<head>".

    Returns:
        `EncoderWithChoices`, a keras.Model. Inputs: those of the encoder with an axis of N choices
        behind the batch, (B, N, T), and `choice_mask` (B, N). Output: logits (B, N).
    """
    asked = extra_tensors(encoder, head)
    inputs = {
        key: keras.Input((None, *value.shape[1:]), dtype=value.dtype, name=key)
        for key, value in encoder.input.items()
    }
    folded = {key: FoldChoices(name=f"fold_{key}")(value) for key, value in inputs.items()}
    encoded = encoder(folded, **needed_positions(encoder, head))
    logits = head(encoded, padding_mask=folded.get("padding_mask"), **asked)
    name = name or f"{encoder.name}_{head.name}"
    return EncoderWithChoices({**inputs, **asked}, logits, name=name)
