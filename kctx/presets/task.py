"""What a preset is for, and whether its parts fit together."""

from typing import NamedTuple

import keras

from kctx.data.tokenizer_checks import check_vocabulary_size
from kctx.heads import Classifier, encoder_of
from kctx.layers import PositionEmbedding, SegmentEmbedding, SubwordEmbedding, TokenEmbedding

TASKS = ("classification", "regression")
# Name of an output -> the task that it tells. Classes of `next_sentence`: 0 is the real next one.
OUTPUTS = {
    "masked_lm": "masked_lm",
    "sequence_output": "embedding",
    "next_sentence": "classification",
}


# Layers that look up ids -> the input that these come from.
TABLES = {
    TokenEmbedding: "token_ids",
    SegmentEmbedding: "segment_ids",
    SubwordEmbedding: "subword_ids",
}


class InputLimits(NamedTuple):
    """What a model can take.

    Attributes:
        ids: dict: name of an input of ids -> rows of its table. Inputs that are not there are not
            checked.
        length: int, most tokens of a row, or None where there is no limit.
    """

    ids: dict
    length: int | None


def task_of(model, labels=None):
    """What a model answers, told by its head, by the names of its outputs, or by labels.

    Args:
        model: keras.Model.
        labels: list of str, names of classes, or None.

    Returns:
        "classification", "regression", "masked_lm" or "embedding"; None where nothing tells. A
        head with one output is a regressor, since the probability of one class is always 1.
    """
    for layer in model.layers:
        if isinstance(layer, Classifier):
            return "regression" if layer.num_classes == 1 else "classification"
    if labels is not None:
        return "classification"
    outputs = getattr(model, "output", None)
    names = outputs if isinstance(outputs, dict) else ()
    return next((task for name, task in OUTPUTS.items() if name in names), None)


def check_task(model, task, labels):
    """The task and the labels of a model, completed, or an error.

    Args:
        model: keras.Model.
        task: "classification", "regression" or None: as `task_of` says.
        labels: list of str, or None: "0", "1", ... for classification.

    Returns:
        (task, labels), or (None, None) for a model of another task; labels is None but for
        classification.

    Raises:
        ValueError: unknown task; labels that do not fit the outputs.
    """
    if task is None:
        task = task_of(model, labels)
        if task not in TASKS:
            return None, None
    if task not in TASKS:
        raise ValueError(f"`task` must be one of {', '.join(TASKS)}. Received: {task!r}")
    outputs = keras.tree.flatten(model.output)
    if len(outputs) != 1 or len(outputs[0].shape) != 2:
        raise ValueError(
            f"`model` must have one output (B, C) for {task}. Received: {model.name} with outputs "
            f"of shapes {[output.shape for output in outputs]}"
        )
    num_outputs = outputs[0].shape[-1]
    if task == "regression":
        if labels is not None:
            raise ValueError(f"`labels` belong to classification only. Received: {labels}")
        if num_outputs != 1:
            raise ValueError(f"`model` must have 1 output for regression. Received: {num_outputs}")
        return task, None
    if isinstance(labels, str):
        raise ValueError(f"`labels` must be a list of strings. Received: {labels!r}")
    labels = [str(i) for i in range(num_outputs)] if labels is None else list(labels)
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
        raise ValueError(f"`labels` must be different strings. Received: {labels}")
    if len(labels) != num_outputs:
        raise ValueError(
            f"`labels` must be one for each class: {num_outputs}. Received: {len(labels)}, {labels}"
        )
    return task, labels


def find_encoder(model):
    """The encoder that is a part of a model, or None where none, or several are."""
    try:
        return encoder_of(model)
    except ValueError:
        return None


def input_limits(model):
    """`InputLimits` of a model.

    Told by its encoder, or by its layers where the encoder is no part by itself.
    """
    encoder = find_encoder(model)
    if encoder is not None:
        ids = encoder.id_limits() if hasattr(encoder, "id_limits") else {}
        return InputLimits(ids, getattr(encoder, "max_sequence_length", None))
    layers = {type(layer): layer for layer in model.layers}
    return InputLimits(
        {name: layers[kind].input_dim for kind, name in TABLES.items() if kind in layers},
        getattr(layers.get(PositionEmbedding), "max_sequence_length", None),
    )


def check_preprocessor(model, preprocessor):
    """Raises unless the ids and lengths that the preprocessor makes lie in the model's tables."""
    limits = input_limits(model)
    check_vocabulary_size(preprocessor.tokenizer, limits.ids.get("token_ids"))
    for name, made in preprocessor.inputs.items():
        limit = limits.ids.get(name)
        if limit is not None and made.count is not None and made.count > limit:
            raise ValueError(
                f"`preprocessor` makes `{name}` of up to {made.count - 1}, but the table of the "
                f"model has {limit} rows."
            )
    if limits.length is not None and preprocessor.sequence_length > limits.length:
        raise ValueError(
            f"`preprocessor.sequence_length` is {preprocessor.sequence_length}, more than the "
            f"{limits.length} positions of the model."
        )
