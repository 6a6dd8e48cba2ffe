"""All trained numbers of GloVe as the C tool writes them with `-binary 1`: `vectors.bin`.

Float64 without a header: V rows of words, then V rows of contexts, each of d numbers and a bias.
"""

from pathlib import Path

import numpy as np

from kctx.files import whole_file


def save_glove_parameters(model, path):
    """Writes the tables of a `GloVe`, whole or not at all.

    Raises:
        ValueError: a value is not finite.
    """
    parameters = model.parameters()
    if not np.isfinite(parameters).all():
        raise ValueError("`model` must hold finite values only")
    with whole_file(path) as file:
        parameters.astype("<f8").tofile(file)


def load_glove_parameters(path, vocabulary_size):
    """Reads what `save_glove_parameters` or the C tool wrote.

    Args:
        path: `vectors.bin`.
        vocabulary_size: int V; the file does not tell.

    Returns:
        float64 (2V, d + 1), for `GloVe.set_parameters`.

    Raises:
        ValueError: the size of the file does not fit V, or a value is not finite.
    """
    size, rows = Path(path).stat().st_size, 2 * vocabulary_size
    if not size or size % (8 * rows) or size // (8 * rows) < 2:
        raise ValueError(
            f"{path} must hold 2V rows of at least two numbers of 8 bytes. "
            f"Received: {size:,} bytes, vocabulary_size={vocabulary_size}"
        )
    parameters = np.fromfile(path, "<f8").reshape(rows, -1)
    finite = np.isfinite(parameters).all(axis=1)
    if not finite.all():
        raise ValueError(f"{path} holds a value that is not finite, in row {np.argmin(finite)}")
    return parameters
