"""What lies at a path: which format, with which configuration."""

import os
from pathlib import Path
from typing import Any, NamedTuple

from kctx.convert.safetensors_file import SafetensorsCheckpoint
from kctx.convert.tensorflow_checkpoint import TensorFlowCheckpoint, find_prefix
from kctx.convert.torch_file import TorchCheckpoint
from kctx.files import read_json

# Files of a Hugging Face folder, in the order in which they are preferred.
WEIGHTS = {
    "model.safetensors": SafetensorsCheckpoint,
    "model.safetensors.index.json": SafetensorsCheckpoint,
    "pytorch_model.bin": TorchCheckpoint,
    "pytorch_model.bin.index.json": TorchCheckpoint,
}


class Source(NamedTuple):
    """A published checkpoint: its folder, its configuration and the reader of its tensors."""

    folder: Path
    config: dict
    checkpoint: Any


def is_preset(path):
    """Whether a folder is one of our own presets (`kctx.presets`)."""
    config = Path(path) / "config.json"
    return config.is_file() and "registered_name" in read_json(config)


def open_source(path):
    """Opens the checkpoint at `path`.

    Args:
        path: folder of Hugging Face files, folder of a TensorFlow 1 checkpoint, or the prefix of
            one (`folder/bert_model.ckpt`).

    Returns:
        `Source`; `config` is empty where a TensorFlow checkpoint has none beside it.

    Raises:
        FileNotFoundError: nothing there, or files are missing; the message names them.
        ValueError: a file is broken.
    """
    path = Path(os.path.abspath(path))
    if path.is_file() and path.name in (*WEIGHTS, "config.json"):
        path = path.parent
    prefix = find_prefix(path)
    if prefix is not None:
        return Source(prefix.parent, _tensorflow_config(prefix), TensorFlowCheckpoint(prefix))
    if not path.is_dir():
        raise FileNotFoundError(
            f"No folder, and no TensorFlow checkpoint, at `path`. Received: {path}"
        )
    weights = [name for name in WEIGHTS if (path / name).is_file()]
    if not (path / "config.json").is_file():
        found = ", ".join(sorted(entry.name for entry in path.iterdir())[:20]) or "nothing"
        # The output of a recipe, for instance, is a step above what it left.
        below = (path / "preset" / "config.json").is_file()
        advice = f" Give {path / 'preset'}, which has one." if below else ""
        raise FileNotFoundError(
            f"{path} has no config.json, nor a .index file. It holds: {found}.{advice}"
        )
    if not weights:
        raise FileNotFoundError(
            f"{path} has no weights. Supported: {', '.join(WEIGHTS)}, or a TensorFlow 1 checkpoint"
        )
    config = read_json(path / "config.json")
    return Source(path, config, _open_weights(path / weights[0]))


def _open_weights(path):
    """The reader of a file of weights, or of all the shards that an index names."""
    reader = WEIGHTS[path.name]
    if path.suffix != ".json":
        return reader([path])
    shard_of = read_json(path).get("weight_map")
    if not isinstance(shard_of, dict) or not all(isinstance(x, str) for x in shard_of.values()):
        raise ValueError(f"`weight_map` of {path} must name a file for each tensor.")
    # Only names of files count, so that no index reaches out of its folder.
    shards = [path.parent / Path(name).name for name in sorted(set(shard_of.values()))]
    absent = [shard.name for shard in shards if not shard.is_file()]
    if absent or not shards:
        raise FileNotFoundError(f"{path} names shards that are not there: {', '.join(absent)}")
    checkpoint = reader(shards)
    lost = sorted(set(shard_of) - set(checkpoint.shapes))
    if lost:
        raise ValueError(f"{path} names tensors that none of its shards holds: {lost[:5]}")
    return checkpoint


def _tensorflow_config(prefix):
    """The configuration beside a TensorFlow checkpoint: bert_config.json, or the only one there."""
    candidates = [prefix.parent / "bert_config.json", prefix.parent / "config.json"]
    candidates += sorted(prefix.parent.glob("*config.json"))
    for candidate in candidates:
        if candidate.is_file():
            return read_json(candidate)
    return {}
