"""Weights from an earlier run, and nothing else of it."""

from pathlib import Path

from kctx.training import checkpoint_files
from kctx.training.checkpoints import assign_all


def init_from(model, folder):
    """Sets the weights of `model` from a checkpoint or a preset; optimizer, step, seeds, and data
    start anew. To go on with an interrupted run, use `Checkpoints.resume` instead.

    Args:
        model: Keras model of the same architecture as the saved one. If it has an `encoder`, a
            preset of that encoder alone will do as well.
        folder: a folder of checkpoints (the newest whole one is taken), one `step-...` folder in
            it, or a preset folder with `model.weights.h5`.

    Returns:
        the path that the weights came from.

    Raises:
        ValueError: if there is nothing to load, or the shapes differ.
    """
    folder = Path(folder)
    weights_file = folder / "model.weights.h5"
    if weights_file.is_file():
        try:
            model.load_weights(weights_file)
        except ValueError:
            if getattr(model, "encoder", None) is None:
                raise
            model.encoder.load_weights(weights_file)
        return weights_file
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
