"""A model as a folder of arrays that are mapped into memory."""

from pathlib import Path

import numpy as np

from kctx.files import read_array, read_json, replaced_folder, write_json
from kctx.ngrams.jelinek_mercer import JointMixture
from kctx.ngrams.tables import BackoffTables
from kctx.ngrams.text import SPECIAL_WORDS

_FORMAT = "kctx n-gram model"
_VERSION = 1
_ORDERS = range(1, 7)
_KNOWN = [
    "config.json",
    "words.txt",
    "mixture_weights.npy",
    *(
        f"order{k}_{part}.npy"
        for k in _ORDERS
        for part in ("keys", "probabilities", "backoffs", "frequencies")
    ),
]


def save_parts(folder, tables, smoothing, details, mixture):
    """Writes a model into a folder of its own, whole or not at all."""
    with replaced_folder(folder, _KNOWN) as new:
        config = {
            "format": _FORMAT,
            "version": _VERSION,
            "smoothing": smoothing,
            "sizes": tables.sizes,
            "details": details,
            "mixture_tokens": None if mixture is None else mixture.tokens,
        }
        write_json(new / "config.json", config)
        (new / "words.txt").write_bytes(b"".join(word + b"\n" for word in tables.words))
        for k in range(tables.order):
            arrays = {"probabilities": tables.probabilities[k]}
            if k:
                arrays["keys"] = tables.keys[k - 1]
            if k < tables.order - 1:
                arrays["backoffs"] = tables.backoffs[k]
                if mixture is not None:
                    arrays["frequencies"] = mixture.frequencies[k]
            for part, values in arrays.items():
                np.save(new / f"order{k + 1}_{part}.npy", values, allow_pickle=False)
        if mixture is not None:
            np.save(new / "mixture_weights.npy", mixture.weights, allow_pickle=False)


def load_parts(folder, memory_map=True):
    """(tables, smoothing, details, mixture) of a folder."""
    folder = Path(folder)
    config = read_json(folder / "config.json")
    if config.get("format") != _FORMAT or config.get("version") != _VERSION:
        raise ValueError(
            f"{folder / 'config.json'} is not of a {_FORMAT}, version {_VERSION}. Received: "
            f"format={config.get('format')!r}, version={config.get('version')!r}"
        )
    sizes = config.get("sizes")
    if not isinstance(sizes, list) or len(sizes) not in _ORDERS:
        raise ValueError(f"{folder / 'config.json'} must hold 1 to 6 sizes. Received: {sizes!r}")
    words = (folder / "words.txt").read_bytes().split(b"\n")
    if words.pop() != b"" or len(words) != sizes[0] or tuple(words[:3]) != SPECIAL_WORDS:
        raise ValueError(
            f"{folder / 'words.txt'} must hold {sizes[0]} lines, the first {SPECIAL_WORDS}. "
            f"Received: {len(words)} lines"
        )

    def array(name, dtype, size):
        path = folder / name
        values = read_array(path, memory_map)
        if values.dtype != dtype or values.shape != (size,):
            raise ValueError(
                f"{path} must hold {size} values of {np.dtype(dtype)}. Received: {values.shape} of "
                f"{values.dtype}"
            )
        return values

    order = len(sizes)
    lower = list(enumerate(sizes[:-1], 1))
    tables = BackoffTables(
        words,
        [array(f"order{k}_keys.npy", np.int64, sizes[k - 1]) for k in range(2, order + 1)],
        [array(f"order{k}_probabilities.npy", np.float32, s) for k, s in enumerate(sizes, 1)],
        [array(f"order{k}_backoffs.npy", np.float32, size) for k, size in lower],
    )
    for k, keys in enumerate(tables.keys, 2):
        if len(keys) and not 0 <= int(keys[0]) <= int(keys[-1]) < sizes[k - 2] * len(words):
            raise ValueError(f"{folder}/order{k}_keys.npy names n-grams that are not there")
    mixture = None
    if config.get("mixture_tokens") is not None:
        path = folder / "mixture_weights.npy"
        weights = read_array(path)
        if weights.ndim != 2 or weights.shape[1] != order + 1 or not len(weights):
            raise ValueError(f"{path} must be of shape (n, {order + 1}). Received: {weights.shape}")
        frequencies = [array(f"order{k}_frequencies.npy", np.float64, size) for k, size in lower]
        mixture = JointMixture(weights, frequencies, config["mixture_tokens"])
    return tables, config.get("smoothing", "unknown"), config.get("details", {}), mixture
