"""What can be exported, and how: the checks that come before anything is written."""

import re

import keras

from kctx.arguments import check_choice, is_integer
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
    if version is not None and (type(version) is not int or not 1 <= version < 2**63):
        raise ValueError(
            f"`version` must be an int of at least 1, of 64 bits. Received: {version!r}"
        )
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


def with_own_options(task, options, **given):
    """The options of a task, with those that have an argument of their own, which goes first.

    Raises:
        ValueError: one was given that is none of the task's.
    """
    options = dict(options or {})
    for name, value in given.items():
        if value is None:
            continue
        if task in TASKS and name not in TASKS[task].defaults:
            raise ValueError(f"`{name}` is no option of {task}. Received: {name}={value!r}")
        options[name] = value
    return options


def example_requests(task, examples=None):
    """Requests for the warm-up and the examples, as JSON takes them: those given, or two of ours.

    Args:
        task: `kctx.tasks.Task`.
        examples: as of `kctx.export.saved_model`.

    Raises:
        ValueError: a request holds words, where texts are asked for.
    """
    examples = [examples] if isinstance(examples, (str, bytes)) else list(examples or ())
    for number, example in enumerate(examples):
        if isinstance(example, list) or (isinstance(example, dict) and "words" in example):
            raise ValueError(
                f"`examples[{number}]` must be raw text, not words. Received: {example!r}"
            )
    return [_plain(example) for example in examples] or default_examples(task)


def _plain(part):
    """A request or a part of it with str for bytes and int for NumPy's integers."""
    if isinstance(part, bytes):
        return part.decode("utf-8", "replace")
    if isinstance(part, dict):
        return {key: _plain(value) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return type(part)(_plain(item) for item in part)
    return int(part) if is_integer(part) else part


def default_examples(task):
    """Two requests to a `kctx.tasks.Task`, a short and a longer one."""
    name, preprocessor = task.name, task.preprocessor
    short = "A short text."
    longer = "A longer text, of more words than the first, to be answered as well."
    if name == "masked_lm":
        mask = preprocessor.tokenizer.mask_token
        return [f"a {mask} text.", f"The {mask} of a longer text, which has {mask} in two places."]
    if name == "span":
        return [("What is short?", short), ("What has more words?", longer)]
    if name == "multiple_choice":
        return [(short, ["It is short.", "It is long."]), (longer, ["short", "longer", "first"])]
    if getattr(task, "takes_predicates", False):
        return [(short, 0), (longer, 2)]
    if name == "coreference":  # code points, and, within as many words, numbers of these
        return [(short, [[0, 1]]), (longer, [[0, 1], [2, 8]])]
    if name == "similarity" or getattr(task, "pairs", False):
        return [(short, longer), (longer, longer)]
    return [short, longer]


def all_layers(model):
    """A model and the layers in it, those of the models in it too."""
    found = [model]
    for layer in model.layers:
        found += all_layers(layer) if isinstance(layer, keras.Model) else [layer]
    return found
