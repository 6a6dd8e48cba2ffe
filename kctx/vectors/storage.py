"""The native format of word vectors: a folder that is loaded without reading the numbers.

vectors.json      what the folder holds: format, number of words, dim, storage, subwords
words.txt         a word a line, as bytes; backslash and line feed are written \\\\ and \\n
table.npy         (V, D) float32, float16 or int8 numbers; with int8, scales.npy (V,) float32
counts.npy        (V,) int64, if known
labels.txt        like words.txt, of a supervised model
subword_table.npy (R, D), rows of the n-grams (subword_scales.npy); prune_map.npy if pruned
"""

from pathlib import Path

import numpy as np

from kctx.files import read_array, read_json, replaced_folder, write_json
from kctx.vectors.subword_table import SubwordRows
from kctx.vectors.subwords import Subwords
from kctx.vectors.tables import DenseTable, Int8Table, stored_as
from kctx.words import to_bytes, to_text

FORMAT = 1
CONFIG = "vectors.json"
_FILES = (
    CONFIG,
    "words.txt",
    "labels.txt",
    "counts.npy",
    "table.npy",
    "scales.npy",
    "subword_table.npy",
    "subword_scales.npy",
    "prune_map.npy",
)


def save(vectors, folder):
    """Writes vectors; the folder is whole or is not there."""
    with replaced_folder(folder, _FILES) as new:
        _write_lines(new / "words.txt", vectors.words)
        if vectors.labels:
            _write_lines(new / "labels.txt", vectors.labels)
        if vectors.counts is not None:
            np.save(new / "counts.npy", vectors.counts)
        config = {"format": FORMAT, "words": len(vectors), "dim": vectors.dim}
        config["storage"] = _write_table(new, "", vectors.table)
        if vectors.subwords is not None:
            config["subwords"] = vectors.subwords.get_config()
            rows = vectors.subword_places()
            table = vectors.subword_table
            config["subword_storage"] = _write_subwords(new, table, rows.num_words)
            if rows.places is not None:
                buckets = np.flatnonzero(rows.places >= 0)
                pairs = np.stack([buckets, rows.places[buckets]], axis=1).astype(np.int32)
                np.save(new / "prune_map.npy", pairs)
        write_json(new / CONFIG, config)


def load(cls, folder, memory_map=True):
    """Reads what `save` wrote.

    Raises:
        ValueError: no such folder, of another format, or with parts that do not fit; names it.
    """
    folder = Path(folder)
    if not (folder / CONFIG).is_file():
        raise ValueError(f"{folder} holds no {CONFIG}: no vectors were saved there.")
    config = read_json(folder / CONFIG)
    if config.get("format") != FORMAT:
        raise ValueError(
            f"{folder / CONFIG} is of format {config.get('format')!r}; this version reads {FORMAT}."
        )
    for name, kind in (("words", int), ("dim", int), ("storage", str)):
        if not isinstance(config.get(name), kind):
            raise ValueError(
                f"{folder / CONFIG} must hold {name!r}, of type {kind.__name__}. "
                f"Received: {config.get(name)!r}"
            )
    words = _read_lines(folder / "words.txt")
    if len(words) != config["words"]:
        raise ValueError(
            f"{folder / 'words.txt'} holds {len(words)} words, {CONFIG} says {config['words']}."
        )
    table = _read_table(folder, "", config["storage"], memory_map)
    if table.shape != (config["words"], config["dim"]):
        raise ValueError(
            f"{folder / 'table.npy'} has shape {table.shape}, {CONFIG} says "
            f"{(config['words'], config['dim'])}."
        )
    arguments = {}
    if (folder / "counts.npy").is_file():
        counts = read_array(folder / "counts.npy")
        if counts.dtype != np.int64 or counts.shape != (len(words),):
            raise ValueError(
                f"{folder / 'counts.npy'} must hold {len(words)} int64 numbers. "
                f"Received: {counts.dtype}, shape {counts.shape}"
            )
        arguments["counts"] = counts
    if (folder / "labels.txt").is_file():
        arguments["labels"] = _read_lines(folder / "labels.txt")
    if "subwords" in config:
        arguments |= _read_subwords(folder, config, memory_map)
    return cls(words, table, **arguments)


def _read_subwords(folder, config, memory_map):
    """What `Vectors` takes for its subwords; the rows that n-grams ask for are there."""
    given = config["subwords"]
    if not isinstance(given, dict) or given.keys() != {"min_n", "max_n", "buckets"}:
        raise ValueError(
            f"{folder / CONFIG}: 'subwords' must hold min_n, max_n and buckets. Received: {given!r}"
        )
    try:
        subwords = Subwords(**given)
    except ValueError as error:
        raise ValueError(f"{folder / CONFIG}: {error}") from error
    table = _read_table(folder, "subword_", config.get("subword_storage"), memory_map)
    pairs, least = None, subwords.buckets
    if (folder / "prune_map.npy").is_file():
        pairs = read_array(folder / "prune_map.npy")
        if pairs.dtype != np.int32 or pairs.ndim != 2 or pairs.shape[1] != 2:
            raise ValueError(
                f"{folder / 'prune_map.npy'} must hold int32 numbers of shape (K, 2). "
                f"Received: {pairs.dtype}, shape {pairs.shape}"
            )
        if len(pairs) and not (pairs.min() >= 0 and pairs[:, 0].max() < subwords.buckets):
            raise ValueError(
                f"{folder / 'prune_map.npy'} must hold numbers of {subwords.buckets} buckets."
            )
        least = int(pairs[:, 1].max(initial=-1)) + 1
    if table.shape[0] < least or table.shape[1] != config["dim"]:
        raise ValueError(
            f"{folder / 'subword_table.npy'} has shape {tuple(table.shape)}, {CONFIG} says at "
            f"least {(least, config['dim'])}."
        )
    rows = SubwordRows([], subwords, pairs)
    return {"subwords": subwords, "subword_table": table, "subword_rows": rows}


def _write_table(folder, prefix, table):
    """Writes a table; returns the name of its storage."""
    if not hasattr(table, "arrays"):  # computed or quantised: as plain numbers
        table = stored_as(table, "float32")
    for name, array in table.arrays().items():
        np.save(folder / f"{prefix}{name}.npy", array)
    return table.storage


def _write_subwords(folder, table, skipped):
    """Writes the rows of n-grams without the rows of words that may stand before them."""
    if isinstance(table, DenseTable):
        table = DenseTable(table.array[skipped:])
    elif isinstance(table, Int8Table):
        table = Int8Table(table.codes[skipped:], table.scales[skipped:])
    else:
        table = DenseTable(table.rows(slice(skipped, None)))
    return _write_table(folder, "subword_", table)


def _read_table(folder, prefix, storage, memory_map):
    if storage not in ("float32", "float16", "int8"):
        raise ValueError(f"{folder / CONFIG}: unknown storage {storage!r}.")
    array = read_array(folder / f"{prefix}table.npy", memory_map)
    if array.dtype != storage or array.ndim != 2:
        raise ValueError(
            f"{folder / f'{prefix}table.npy'} holds {array.dtype} numbers of shape {array.shape}, "
            f"{CONFIG} says {storage}."
        )
    if storage != "int8":
        return DenseTable(array)
    scales = read_array(folder / f"{prefix}scales.npy")
    if scales.dtype != np.float32 or scales.shape != array.shape[:1]:
        raise ValueError(
            f"{folder / f'{prefix}scales.npy'} must hold {len(array)} float32 numbers. "
            f"Received: {scales.dtype}, shape {scales.shape}"
        )
    return Int8Table(array, scales)


def _write_lines(path, words):
    text = "\n".join(words)
    if "\\" in text or text.count("\n") != max(len(words) - 1, 0):
        text = "\n".join(w.replace("\\", "\\\\").replace("\n", "\\n") for w in words)
    path.write_bytes(to_bytes(text + "\n") if words else b"")


def _read_lines(path):
    text = to_text(path.read_bytes())
    words = text.removesuffix("\n").split("\n") if text else []
    if "\\" not in text:
        return words
    return [_unescaped(word) if "\\" in word else word for word in words]


def _unescaped(word):
    # A backslash stands before "n" or another backslash.
    return "\\".join(part.replace("\\n", "\n") for part in word.split("\\\\"))
