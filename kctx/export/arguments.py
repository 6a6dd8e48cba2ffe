"""What can be exported, and how: the checks that come before anything is written."""

import re

import keras

from kctx.arguments import check_choice
from kctx.presets.task import check_task
from kctx.tasks import POOLINGS, TASKS, make_task, task_of


def check_arguments(
    model, preprocessor, labels, task, options, weights_dtype, name, version, embed
):
    """Refuses what cannot be exported before anything is written.

    Returns:
        (`kctx.tasks.Task`, labels): the task told by the model where it is None, see
        `kctx.tasks.task_of`.
    """
    if task is None:
        task = task_of(model, labels)
    if task is None:
        raise ValueError(
            f"`task` must be one of {', '.join(TASKS)}, where neither a head nor the names of "
            f"its outputs tell what `model` answers. Received: task=None, {model.name}"
        )
    if task not in TASKS:
        raise ValueError(f"`task` must be one of {', '.join(TASKS)}. Received: {task!r}")
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
    if embed is not None:
        check_choice("embed", embed, POOLINGS)
    task, labels = check_task(model, task, labels)
    return make_task(task, model, preprocessor, labels, options), labels


def default_examples(task, preprocessor, pairs=False):
    """Two requests, a short and a longer one.

    Args:
        task: str.
        pairs: bool, whether a model was taught on pairs.
        preprocessor: whose mask token is put where masks are filled.
    """
    short = "A short text."
    longer = "A longer text, of more words than the first, to be answered as well."
    if task == "masked_lm":
        mask = preprocessor.tokenizer.mask_token
        return [f"a {mask} text.", f"The {mask} of a longer text, which has {mask} in two places."]
    if task == "span":
        return [("What is short?", short), ("What has more words?", longer)]
    if task == "multiple_choice":
        return [(short, ["It is short.", "It is long."]), (longer, ["short", "longer", "first"])]
    if task == "coreference":  # code points, and, within as many words, numbers of these
        return [(short, [[0, 1]]), (longer, [[0, 1], [2, 8]])]
    if task == "similarity" or pairs:
        return [(short, longer), (longer, longer)]
    return [short, longer]


def all_layers(model):
    """A model and the layers in it, those of the models in it too."""
    found = [model]
    for layer in model.layers:
        found += all_layers(layer) if isinstance(layer, keras.Model) else [layer]
    return found
