"""What a preset is for, and whether its parts fit together."""

import keras

from kctx.heads import Classifier, Regressor, encoder_of

TASKS = ("classification", "regression")


def check_task(model, task, labels):
    """The task and the labels of a model, completed, or an error.

    Args:
        model: keras.Model.
        task: "classification", "regression" or None: told by the head, if there is one of ours.
        labels: list of str, or None: "0", "1", ... for classification.

    Returns:
        (task, labels); labels is None but for classification.

    Raises:
        ValueError: unknown task; labels that do not fit the outputs.
    """
    if task is None:
        task = "classification" if labels is not None else _task_of(model)
    if task is None:
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
    labels = [str(i) for i in range(num_outputs)] if labels is None else list(labels)
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
        raise ValueError(f"`labels` must be different strings. Received: {labels}")
    if len(labels) != num_outputs:
        raise ValueError(
            f"`labels` must be one for each class: {num_outputs}. Received: {len(labels)}, {labels}"
        )
    return task, labels


def check_preprocessor(model, preprocessor):
    """Raises unless the ids and lengths that the preprocessor makes lie in the model's tables."""
    try:
        encoder = encoder_of(model)
    except ValueError:  # a model of another kind, whose tables are not known
        return
    size = getattr(encoder, "vocabulary_size", None)
    if size is not None and preprocessor.tokenizer.vocabulary_size > size:
        raise ValueError(
            f"The vocabulary of `preprocessor` has {preprocessor.tokenizer.vocabulary_size} "
            f"entries, more than the {size} rows of the model's token table."
        )
    length = getattr(encoder, "max_sequence_length", None)
    if length is not None and preprocessor.sequence_length > length:
        raise ValueError(
            f"`preprocessor.sequence_length` is {preprocessor.sequence_length}, more than the "
            f"{length} positions of the model."
        )


def _task_of(model):
    kinds = {type(layer) for layer in model.layers}
    if Regressor in kinds:
        return "regression"
    return "classification" if Classifier in kinds else None
