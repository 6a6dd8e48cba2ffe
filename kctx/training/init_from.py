"""Weights from an earlier run, and nothing else of it."""

from pathlib import Path

import keras

from kctx.files import read_json
from kctx.training import checkpoint_files
from kctx.training.checkpoints import assign_all
from kctx.weights import load_weights


def init_from(model, folder):
    """Sets the weights of `model` from a checkpoint or a preset; optimizer, step, seeds, and data
    start anew. To go on with an interrupted run, use `Checkpoints.resume` instead.

    Args:
        model: Keras model of the same architecture as the saved one. If it has an `encoder`, a
            preset of that encoder alone will do as well.
        folder: a folder of checkpoints (the newest whole one is taken), one `step-...` folder in
            it, or a preset folder with `config.json` and `model.weights.h5`.

    Returns:
        the path that the weights came from.

    Raises:
        FileNotFoundError: a preset lacks its `config.json`.
        ValueError: there is nothing to load, or it belongs to a model of another class, number of
            variables or shapes. The model is then unchanged.
    """
    folder = Path(folder)
    if (folder / "model.weights.h5").is_file():
        return _from_preset(model, folder)
    if (folder / checkpoint_files.MANIFEST).is_file():
        path = folder
        manifest = checkpoint_files.read_manifest(path)
    else:
        found = checkpoint_files.newest(folder)
        if found is None:
            raise ValueError(
                "`folder` must be a checkpoint, a folder of checkpoints, or a preset. "
                f"Received: folder={str(folder)!r}"
            )
        path, manifest = found
    arrays = checkpoint_files.read_arrays(path / "state.npz")
    # Seed states lie among the variables; the weights are known by their place.
    places = manifest["fingerprint"]["weights"]
    saved = {str(i): arrays[f"model/{place}"] for i, place in enumerate(places)}
    assign_all({str(i): variable for i, variable in enumerate(model.weights)}, saved)
    return path


def _from_preset(model, folder):
    """Loads a preset into the model, or into its encoder, whichever is of the preset's class."""
    config = read_json(folder / "config.json")
    kind = config.get("registered_name") or config.get("class_name")
    parts = [part for part in (model, getattr(model, "encoder", None)) if part is not None]
    kinds = [keras.saving.get_registered_name(type(part)) for part in parts]
    if kind not in kinds:
        raise ValueError(
            f"`folder` must hold a preset of a {' or a '.join(kinds)}. Received: "
            f"folder={str(folder)!r} with a {kind}"
        )
    part, path = parts[kinds.index(kind)], folder / "model.weights.h5"
    before = part.get_weights()
    try:
        load_weights(part, path)
    except BaseException:
        part.set_weights(before)
        raise
    return path
