"""An encoder and a head as one model."""

import keras

from kctx.layers import CheckedInputs


@keras.saving.register_keras_serializable("kctx")
class EncoderWithHead(CheckedInputs, keras.Model):
    """What `attach` makes: a functional model that holds an encoder and a head."""

    def encoder_inputs(self, inputs):
        """The inputs of the encoder, of a batch of arrays by name."""
        return {name: inputs[name] for name in encoder_of(self).input if name in inputs}

    def check_inputs(self, inputs):
        """Raises a `ValueError` on what the encoder cannot take."""
        check = getattr(encoder_of(self), "check_inputs", None)
        if check is not None:
            check(self.encoder_inputs(inputs))

    def compile_from_config(self, config):
        """Compiles as saved; a loss that computes with a head's weights gets this model's head."""
        options = keras.saving.deserialize_keras_object(config)
        loss = options["loss"]
        if loss is not None and getattr(loss, "head", loss) is None:
            loss.head = head_of(self)
        self.compile(**options)
        if self.built and self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)


def attach(encoder, head, name=None):
    """Attaches a head to an encoder through the functional API.

    The encoder stays one layer of the result, so it is found again with `encoder_of` after the
    model was saved and loaded. Where the head looks at the first token alone, the encoder's last
    block computes no other.

    Args:
        encoder: an encoder, or any functional model with dict inputs and dict outputs.
        head: layer called as `head(encoded, padding_mask=...)`, and with further inputs by name if
            it has `extra_inputs()`.
        name: str, name of the model. Default: "<encoder>_<head>".

    Returns:
        `EncoderWithHead`, a keras.Model with the inputs of the encoder and those that the head adds
        to them, and the head's output.
    """
    inputs = dict(encoder.input)
    extra = extra_tensors(encoder, head)
    encoded = encoder(inputs, **needed_positions(encoder, head))
    logits = head(encoded, padding_mask=inputs.get("padding_mask"), **extra)
    name = name or f"{encoder.name}_{head.name}"
    return EncoderWithHead({**inputs, **extra}, logits, name=name)


def extra_tensors(encoder, head):
    """`keras.Input`s of what a head needs beside the encoder's outputs, by name.

    Raises:
        ValueError: the encoder has an input of such a name.
    """
    extra = head.extra_inputs() if hasattr(head, "extra_inputs") else {}
    shared = set(extra) & set(encoder.input)
    if shared:
        raise ValueError(
            f"`head` needs inputs of its own, but {encoder.name} has an input of the same name: "
            f"{', '.join(sorted(shared))}"
        )
    return {
        name: keras.Input(tensor.shape, dtype=tensor.dtype, name=name)
        for name, tensor in extra.items()
    }


def needed_positions(encoder, head):
    """The argument `positions` of an encoder, as a dict, where a head needs not all vectors."""
    if not getattr(encoder, "takes_positions", False) or not hasattr(head, "needed_positions"):
        return {}
    positions = head.needed_positions(encoder.output)
    return {} if positions is None else {"positions": positions}


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


def head_of(model):
    """The head inside a model made by `attach` and its like, or None where there is none.

    A head is a layer with an attribute `task`, the name of what it answers.
    """
    return next((layer for layer in model.layers if hasattr(layer, "task")), None)
