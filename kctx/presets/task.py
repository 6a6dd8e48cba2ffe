"""What a preset is for, and whether its parts fit together."""

import collections

import keras

from kctx.data.tokenizer_checks import check_vocabulary_size
from kctx.heads import Classifier, encoder_of
from kctx.layers import PositionEmbedding, SegmentEmbedding, TokenEmbedding

TASKS = ("classification", "regression")
# Name of an output -> the task that it tells. Classes of `next_sentence`: 0 is the real next one.
OUTPUTS = {
    "masked_lm": "masked_lm",
    "sequence_output": "embedding",
    "next_sentence": "classification",
}


TableSizes = collections.namedtuple("TableSizes", "tokens positions segments")


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


def table_sizes(model):
    """Greatest number of token ids, positions and segments; None where a model does not say.

    Told by its encoder, or by its layers where the encoder is no part by itself.
    """
    encoder = find_encoder(model)
    if encoder is not None:
        names = ("vocabulary_size", "max_sequence_length", "num_segments")
        return TableSizes(*(getattr(encoder, name, None) for name in names))
    layers = {type(layer): layer for layer in model.layers}
    return TableSizes(
        getattr(layers.get(TokenEmbedding), "input_dim", None),
        getattr(layers.get(PositionEmbedding), "max_sequence_length", None),
        getattr(layers.get(SegmentEmbedding), "input_dim", None),
    )


def check_preprocessor(model, preprocessor):
    """Raises unless the ids and lengths that the preprocessor makes lie in the model's tables."""
    sizes = table_sizes(model)
    check_vocabulary_size(preprocessor.tokenizer, sizes.tokens)
    length = sizes.positions
    if length is not None and preprocessor.sequence_length > length:
        raise ValueError(
            f"`preprocessor.sequence_length` is {preprocessor.sequence_length}, more than the "
            f"{length} positions of the model."
        )
