"""Reads a preset folder."""

import re
from pathlib import Path

import keras

from kctx import heads, models, objectives, preprocessors
from kctx.files import read_json
from kctx.presets.task import check_preprocessor, check_task
from kctx.presets.text_model import TextModel
from kctx.presets.writing import FILES, FORMAT_VERSION
from kctx.tasks import make_task
from kctx.weights import check_is_weights, load_weights

REGISTERED = (heads, models, objectives)  # imported so that Keras knows their classes

# Sizes of tables and numbers of layers, each of which makes at least as many numbers.
_SIZE = re.compile(
    r'"(\w+_dim|\w+_size|max_sequence_length|num_layers|num_classes|num_tags)": *(\d+)'
)


def load(folder, dtype=None):
    """Loads a preset folder, under whichever Keras backend runs, whatever backend wrote it.

    Args:
        folder: str or `pathlib.Path`.
        dtype: dtype policy, for instance "mixed_bfloat16", of the layers that had the encoder's
            policy; others, such as logits in float32, stay. Default: as saved.

    Returns:
        `TextModel`

    Raises:
        FileNotFoundError: files are missing; the message names them.
        ValueError: a file is broken, weights and configuration or labels and classes do not
            belong together, or the configuration holds code, which is never run.
    """
    folder = Path(folder)
    if not folder.is_dir():
        found = "which is a file" if folder.exists() else "which does not exist"
        raise FileNotFoundError(f"`folder` must be a preset folder. Received: {folder}, {found}")
    absent = [name for name in ("config.json", "model.weights.h5") if not (folder / name).is_file()]
    if absent:
        raise FileNotFoundError(f"The preset {folder} lacks {', '.join(absent)}")
    metadata = {}
    if (folder / "metadata.json").is_file():
        metadata = read_json(folder / "metadata.json")
        _check_metadata(folder, metadata)
    _check_sizes(folder)
    model = _build(folder / "config.json", dtype)
    load_weights(model, folder / "model.weights.h5")
    preprocessor = None
    if (folder / "preprocessor.json").is_file():
        preprocessor = preprocessors.load(folder)
        check_preprocessor(model, preprocessor)
        written = metadata.get("vocabulary_size", preprocessor.tokenizer.vocabulary_size)
        if preprocessor.tokenizer.vocabulary_size != written:
            raise ValueError(
                f"The vocabulary in {folder} is not whole: it has "
                f"{preprocessor.tokenizer.vocabulary_size} entries, {written} were written."
            )
    stored = {}
    if (folder / "task.json").is_file():
        stored = read_json(folder / "task.json")
    options = stored.get("options") or {}
    try:
        task, labels = check_task(model, stored.get("task"), stored.get("labels"))
        if task is not None and preprocessor is not None:
            make_task(task, model, preprocessor, labels, options)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{folder / 'task.json'} does not fit the model: {error}") from error
    return TextModel(model, preprocessor, task, labels, options)


def _check_metadata(folder, metadata):
    """Raises unless the layout is known, and the files that were written are there."""
    version = metadata.get("format_version", FORMAT_VERSION)
    if isinstance(version, bool) or not isinstance(version, int):
        raise ValueError(
            f"`format_version` in {folder / 'metadata.json'} must be an integer. "
            f"Received: {version!r}"
        )
    if version > FORMAT_VERSION:
        raise ValueError(
            f"The preset {folder} was written by a newer kctx: its layout has version "
            f"{version}, known are versions up to {FORMAT_VERSION}."
        )
    files = metadata.get("files") or []
    absent = [name for name in files if name in FILES and not (folder / name).is_file()]
    if absent:
        raise FileNotFoundError(f"The preset {folder} lacks {', '.join(absent)}")


def _check_sizes(folder):
    """Raises a `ValueError` on a size that no weights in the file can have.

    So a broken configuration asks for no memory beyond all bounds.
    """
    check_is_weights(folder / "model.weights.h5")
    most = (folder / "model.weights.h5").stat().st_size
    text = (folder / "config.json").read_text(encoding="utf-8", errors="replace")
    for name, number in _SIZE.findall(text):
        if len(number) > 18 or int(number) > most:
            raise ValueError(
                f"`{name}` in {folder / 'config.json'} must fit to the {most:,} bytes of "
                f"model.weights.h5. Received: {number[:40]}"
            )


def _build(path, dtype):
    """The model of a config.json, randomly initialised."""
    config = read_json(path)
    if "registered_name" not in config or not isinstance(config.get("config"), dict):
        raise ValueError(
            f"{path} is not the configuration of a preset. Checkpoints of other libraries are "
            "loaded with `kctx.convert`."
        )
    if dtype is not None:
        _replace_policy(config, _policy(config), keras.dtype_policies.get(dtype))
    try:
        return keras.saving.deserialize_keras_object(config, safe_mode=True)
    except Exception as error:  # each backend has its own, as of more memory than there is
        raise ValueError(f"Cannot build the model of {path}: {error}") from error


def _policy(config):
    """The serialised dtype policy of the outermost object that has one: that of the encoder."""
    if isinstance(config, dict):
        if config.get("class_name") != "InputLayer" and isinstance(config.get("dtype"), dict):
            return config["dtype"]
        config = list(config.values())
    for value in config if isinstance(config, list) else ():
        found = _policy(value)
        if found is not None:
            return found
    return None


def _replace_policy(config, old, new):
    """Replaces one dtype policy by another in a nested configuration, in place."""
    if isinstance(config, dict):
        if config.get("dtype") == old:
            config["dtype"] = keras.dtype_policies.serialize(new)
        config = list(config.values())
    for value in config if isinstance(config, list) else ():
        _replace_policy(value, old, new)
