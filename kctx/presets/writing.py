"""Writes a preset folder."""

import contextlib

import keras

import kctx
from kctx.files import replaced_folder, write_json
from kctx.presets.task import check_preprocessor, check_task

FORMAT_VERSION = 1
FILES = (
    "config.json",
    "model.weights.h5",
    "metadata.json",
    "preprocessor.json",
    "tokenizer.json",
    "vocabulary.txt",
    "task.json",
)


def save(folder, model, preprocessor=None, task=None, labels=None):
    """Saves a model, and what is needed to answer raw text with it, as a preset folder.

    The folder is replaced as a whole once the new one is on the disk; a killed process or a full
    disk leaves the previous one as it was. The state of the optimizer is not part of a preset.

    Args:
        folder: str or `pathlib.Path`. A folder that holds other files than a preset's is refused.
        model: an encoder, an objective, or an encoder with a head (`kctx.heads.attach`).
        preprocessor: a preprocessor of `kctx.preprocessors`. Default: none; the preset then does
            not answer raw text.
        task: "classification" or "regression". Default: told by the head, if there is one.
        labels: list of str, names of the classes in the order of the logits. Default for
            classification: "0", "1", ...

    Raises:
        ValueError: the parts do not fit together, or the model holds a layer made of code
            (`Lambda`), which could not be loaded safely.
        FileExistsError: `folder` holds other files.
    """
    task, labels = check_task(model, task, labels)
    if preprocessor is not None:
        check_preprocessor(model, preprocessor)
    config = keras.saving.serialize_keras_object(model)
    _drop(config, ("build_config", "compile_config"))
    if _holds_lambda(config):
        raise ValueError("`model` must not hold a `Lambda`, which could not be loaded safely.")
    metadata = {
        "format_version": FORMAT_VERSION,
        "kctx_version": kctx.__version__,
        "keras_version": keras.__version__,
        "parameter_count": model.count_params(),
    }
    with replaced_folder(folder, FILES) as new:
        write_json(new / "config.json", config)
        write_json(new / "metadata.json", metadata)
        with _without_optimizer(model):
            model.save_weights(new / "model.weights.h5")
        if preprocessor is not None:
            preprocessor.save(new)
        if task is not None:
            write_json(new / "task.json", {"task": task, "labels": labels})


@contextlib.contextmanager
def _without_optimizer(model):
    """Keras writes the moments of a compiled model among its weights, at three times the size."""
    optimizer = getattr(model, "optimizer", None)
    if optimizer is not None:
        model.optimizer = None
    try:
        yield
    finally:
        if optimizer is not None:
            model.optimizer = optimizer


def _drop(config, keys):
    """Removes keys from a nested configuration, in place."""
    if isinstance(config, dict):
        for key in keys:
            config.pop(key, None)
    if isinstance(config, (dict, list, tuple)):
        for value in config.values() if isinstance(config, dict) else config:
            _drop(value, keys)


def _holds_lambda(config):
    if isinstance(config, dict):
        if config.get("class_name") in ("Lambda", "__lambda__"):
            return True
        return any(_holds_lambda(value) for value in config.values())
    return isinstance(config, (list, tuple)) and any(_holds_lambda(value) for value in config)
