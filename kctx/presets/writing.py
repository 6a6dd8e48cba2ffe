"""Writes a preset folder."""

from pathlib import Path

import keras

import kctx
from kctx.files import read_json, replaced_folder, write_json
from kctx.presets.task import check_preprocessor, check_task
from kctx.tasks import make_task
from kctx.weights import save_weights

FORMAT_VERSION = 1
# Files of presets that list none in their metadata.json, as those of the first version.
FILES = (
    "config.json",
    "model.weights.h5",
    "metadata.json",
    "preprocessor.json",
    "tokenizer.json",
    "vocabulary.txt",
    "task.json",
)


def save(folder, model, preprocessor=None, task=None, labels=None, options=None):
    """Saves a model, and what is needed to answer raw text with it, as a preset folder.

    The folder is replaced as a whole once the new one is on the disk; a killed process or a full
    disk leaves the previous one as it was. The state of the optimizer is not part of a preset.

    Args:
        folder: str or `pathlib.Path`. A folder that holds other files than a preset's is refused.
        model: an encoder, an objective, or an encoder with a head (`kctx.heads.attach`).
        preprocessor: a preprocessor of `kctx.preprocessors`. Default: none; the preset then does
            not answer raw text.
        task: str, a key of `kctx.tasks.TASKS`. Default: told by the head, or by an output
            `next_sentence`, if there is one.
        labels: list of str, names of the classes or tags in the order of the logits. Default, for
            tasks that have some: "0", "1", ...
        options: dict, options of the task where they differ from its defaults, see its class.

    Raises:
        ValueError: the parts do not fit together, or the model holds a layer made of code
            (`Lambda`), which could not be loaded safely.
        FileExistsError: `folder` holds other files.
    """
    task, labels = check_task(model, task, labels)
    if options and task is None:
        raise ValueError(f"`options` belong to a task. Received: task=None, options={options}")
    if preprocessor is not None:
        check_preprocessor(model, preprocessor)
        if task is not None:
            make_task(task, model, preprocessor, labels, options)  # raises on what does not fit
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
    with replaced_folder(folder, [*FILES, *_listed_files(folder)]) as new:
        write_json(new / "config.json", config)
        save_weights(model, new / "model.weights.h5")
        if preprocessor is not None:
            preprocessor.save(new)
            metadata["vocabulary_size"] = preprocessor.tokenizer.vocabulary_size
        if task is not None:
            more = {"options": options} if options else {}
            write_json(new / "task.json", {"task": task, "labels": labels, **more})
        # What a tokenizer wrote is its own affair; so listed, the next `save` may replace it.
        files = sorted([*(path.name for path in new.iterdir()), "metadata.json"])
        write_json(new / "metadata.json", {**metadata, "files": files})


def _listed_files(folder):
    """Names of files that a preset in a folder says are its own."""
    path = Path(folder) / "metadata.json"
    try:
        metadata = read_json(path) if path.is_file() else {}
    except ValueError:  # broken, and replaced now
        return []
    return metadata.get("files", []) if "kctx_version" in metadata else []


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
