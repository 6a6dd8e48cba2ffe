"""What can be exported, and how: the checks that come before anything is written."""

import re

import keras

from kctx.export.answers import MEANINGS
from kctx.presets.task import check_task, task_of

POOLINGS = ("mean", "cls", "max", "pooled")


def check_arguments(
    model, preprocessor, labels, task, weights_dtype, name, version, pooling, top_k
):
    """Refuses what cannot be exported before anything is written.

    Returns:
        (task, labels): the task told by the model where it is None, see `kctx.presets.task`.
    """
    if task is None:
        task = task_of(model, labels)
    if task is None:
        raise ValueError(
            f"`task` must be one of {', '.join(MEANINGS)}, where neither a head nor the names of "
            f"its outputs tell what `model` answers. Received: task=None, {model.name}"
        )
    if task not in MEANINGS:
        raise ValueError(f"`task` must be one of {', '.join(MEANINGS)}. Received: {task!r}")
    if weights_dtype not in (None, "bfloat16"):
        raise ValueError(f'`weights_dtype` must be None or "bfloat16". Received: {weights_dtype!r}')
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ValueError(
            "`name` becomes part of a URL and must be letters, digits, dots, hyphens and "
            f"underscores. Received: {name!r}"
        )
    if version is not None and (type(version) is not int or version < 1):
        raise ValueError(f"`version` must be an int of at least 1. Received: {version!r}")
    if preprocessor is None:
        raise ValueError(
            "`preprocessor` must turn raw text into the inputs of `model`. Received: None"
        )
    if not isinstance(model.input, dict):
        raise ValueError(f"`model` must take a dict of named inputs. Received: {model.name}")
    if task in ("classification", "regression"):
        return check_task(model, task, labels)
    if labels is not None:
        raise ValueError(f"`labels` belong to classification only. Received: task={task!r}")
    outputs = model.output
    if task == "embedding":
        if pooling not in POOLINGS:
            raise ValueError(f"`pooling` must be one of {', '.join(POOLINGS)}. Received: {pooling}")
        key = "pooled_output" if pooling == "pooled" else "sequence_output"
        if not isinstance(outputs, dict) or key not in outputs:
            raise ValueError(
                f"`model` must be an encoder with a `{key}` for embeddings. Received: {model.name}"
            )
    if task == "masked_lm":
        if not isinstance(outputs, dict) or "masked_lm" not in outputs:
            raise ValueError(
                "`model` must be a `MaskedLM` objective, or a `Joint` with one. "
                f"Received: {model.name}"
            )
        size = min(outputs["masked_lm"].shape[-1], preprocessor.tokenizer.vocabulary_size)
        if not 1 <= top_k <= size:
            raise ValueError(
                f"`top_k` must lie between 1 and the vocabulary's {size} entries. Received: {top_k}"
            )
    return task, None


def default_examples(preprocessor, task):
    """Two texts, a short and a longer one; with a mask where masks are filled."""
    if task == "masked_lm":
        mask = preprocessor.tokenizer.mask_token
        return [f"a {mask} text.", f"The {mask} of a longer text, which has {mask} in two places."]
    return ["A short text.", "A longer text, of more words than the first, to be answered as well."]


def all_layers(model):
    """A model and the layers in it, those of the models in it too."""
    found = [model]
    for layer in model.layers:
        found += all_layers(layer) if isinstance(layer, keras.Model) else [layer]
    return found
