"""An encoder and a head as one model."""

import keras

from kctx.layers import CheckedInputs


@keras.saving.register_keras_serializable("kctx")
class EncoderWithHead(CheckedInputs, keras.Model):
    """What `attach` makes: a functional model that holds an encoder and a head."""

    def check_inputs(self, inputs):
        """Raises a `ValueError` on what the encoder cannot take."""
        check = getattr(encoder_of(self), "check_inputs", None)
        if check is not None:
            check(inputs)


def attach(encoder, head, name=None):
    """Attaches a head to an encoder through the functional API.

    The encoder stays one layer of the result, so it is found again with `encoder_of` after the
    model was saved and loaded. Where the head looks at the first token alone, the encoder's last
    block computes no other.

    Args:
        encoder: an encoder, or any functional model with dict inputs and dict outputs.
        head: layer called as `head(encoded, padding_mask=...)`.
        name: str, name of the model. Default: "<encoder>_<head>".

    Returns:
        `EncoderWithHead`, a keras.Model with the encoder's inputs and the head's output.
    """
    inputs = {key: value for key, value in encoder.input.items()}
    positions = None
    if getattr(encoder, "takes_positions", False) and hasattr(head, "needed_positions"):
        positions = head.needed_positions(encoder.output)
    encoded = encoder(inputs) if positions is None else encoder(inputs, positions=positions)
    logits = head(encoded, padding_mask=inputs.get("padding_mask"))
    return EncoderWithHead(inputs, logits, name=name or f"{encoder.name}_{head.name}")


def encoder_of(model):
    """The encoder inside a model made by `attach` or an objective, or an encoder itself.

    Raises:
        ValueError: there is none, or there are several.
    """
    if isinstance(getattr(model, "encoder", None), keras.Model):
        return model.encoder
    found = [layer for layer in model.layers if isinstance(layer, keras.Model)]
    if not found and isinstance(model.output, dict) and "sequence_output" in model.output:
        return model
    if len(found) != 1:
        raise ValueError(
            f"`model` must hold exactly one encoder. Received: {model.name}, which holds "
            f"{[layer.name for layer in found]}. `kctx.heads.attach(encoder, head)` makes one that "
            "does."
        )
    return found[0]
