"""The weights of a model to and from a file in Keras' format, without the optimizer's state."""

import collections
import contextlib

import h5py


def save_weights(model, path):
    """Writes the weights of a model as a `.weights.h5` file.

    Raises:
        OSError: the disk is full, or the file cannot be written otherwise.
    """
    try:
        with _without_optimizer(model):
            model.save_weights(path)
    except RuntimeError as error:  # what HDF5 makes of a full disk
        raise OSError(f"Cannot write the weights to {path}: {error}") from error


def load_weights(model, path):
    """Sets the weights of a model from a `.weights.h5` file, which must hold exactly those.

    Number and shapes are compared before the first variable is changed.

    Raises:
        ValueError: the file is not whole, or belongs to a model of another configuration.
    """
    stored = collections.Counter(_stored_shapes(path))
    own = collections.Counter(tuple(weight.shape) for weight in model.weights)
    # Keras notices variables that the file lacks, but not what the file has beyond.
    if stored != own:
        raise ValueError(
            f"{path} belongs to another configuration: it holds {stored.total()} variables, "
            f"{model.name} has {own.total()}. Shapes of which the file has more: "
            f"{sorted(stored - own)[:5]}; of which the model has more: {sorted(own - stored)[:5]}"
        )
    try:
        with _without_optimizer(model):
            model.load_weights(path)
    except (ValueError, KeyError, OSError, RuntimeError) as error:
        raise ValueError(f"{path} does not fit the model {model.name}: {error}") from error


def check_is_weights(path):
    """Raises a `ValueError` unless a file has the format of weights."""
    if not h5py.is_hdf5(path):
        raise ValueError(f"{path} is not a whole file of weights.")


def _stored_shapes(path):
    """Shapes of all variables in a file of weights, one entry for each."""
    shapes = []

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            shapes.append(tuple(item.shape))

    try:
        with h5py.File(path, "r") as file:
            file.visititems(visit)
    except (OSError, RuntimeError) as error:
        raise ValueError(f"{path} is not a whole file of weights: {error}") from error
    return shapes


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
