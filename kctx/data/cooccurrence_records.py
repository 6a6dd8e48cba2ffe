"""Files of co-occurrence counts as the GloVe tools read and write them.

Records of 16 bytes without a header, little-endian: `int32 word1, int32 word2, float64 value`. The
ids are ranks by frequency and begin at 1.
"""

import tempfile
from pathlib import Path

import numpy as np
from rich.progress import Progress

from kctx.arguments import check_count
from kctx.files import whole_file

RECORD = np.dtype([("word1", "<i4"), ("word2", "<i4"), ("value", "<f8")])
_AT_ONCE = 1 << 20


def open_cooccurrences(path, vocabulary_size=None, words=None):
    """Maps a file of records, after a look at each.

    Args:
        path: `cooccurrence.bin` or `cooccurrence.shuf.bin`.
        vocabulary_size: int V; ids beyond it are an error. Default: not checked.
        words: list of str, which errors name instead of ids.

    Returns:
        memory-mapped array of `RECORD` (N,).

    Raises:
        ValueError: the size of the file is no whole number of records, there are none, an id is
            outside the vocabulary, or a value is not a positive finite number; names the record.
    """
    size = Path(path).stat().st_size
    if size % RECORD.itemsize:
        raise ValueError(
            f"{path} must hold records of {RECORD.itemsize} bytes: it was cut short or is "
            f"something else. Received: {size:,} bytes, {size % RECORD.itemsize} too many"
        )
    if not size:
        raise ValueError(f"{path} holds no records")
    records = np.memmap(path, RECORD, "r")
    check_cooccurrences(records, vocabulary_size, words, str(path))
    return records


def check_cooccurrences(records, vocabulary_size=None, words=None, name="`records`"):
    """Raises a `ValueError` for the first record that cannot be trained on.

    Args:
        records: array of `RECORD` (N,).
        vocabulary_size, words: as in `open_cooccurrences`.
        name: what to call the array.
    """
    if records.dtype != RECORD or records.ndim != 1:
        raise ValueError(f"{name} must be an array of (word1, word2, value) records")
    if vocabulary_size is None:
        vocabulary_size = len(words) if words is not None else np.iinfo(np.int32).max
    for start in range(0, len(records), _AT_ONCE):
        block = np.asarray(records[start : start + _AT_ONCE])
        word1, word2, value = block["word1"], block["word2"], block["value"]
        if not (
            min(word1.min(), word2.min()) >= 1
            and max(word1.max(), word2.max()) <= vocabulary_size
            and value.min() > 0  # false for NaN, too
            and value.max() < np.inf
        ):
            ids_bad = (word1 < 1) | (word2 < 1)
            ids_bad |= (word1 > vocabulary_size) | (word2 > vocabulary_size)
            bad = ids_bad | ~((value > 0) & (value < np.inf))
            place = int(np.argmax(bad))
            raise ValueError(
                f"{name}, record {start + place} must hold ids from 1 to {vocabulary_size:,} and a "
                "positive finite value. "
                f"Received: {describe(word1[place], word2[place], words)}, value={value[place]}"
            )


def describe(word1, word2, words=None):
    """The two words of a record, for errors; ids begin at 1."""
    if words is None or not (1 <= word1 <= len(words) and 1 <= word2 <= len(words)):
        return f"word1={word1}, word2={word2}"
    return f"word1={word1} ({words[word1 - 1]!r}), word2={word2} ({words[word2 - 1]!r})"


def shuffle_cooccurrences(records, path, seed=0, memory_limit=1 << 30, progress=True):
    """Writes records in random order, each order as likely as any other.

    More than half of `memory_limit` is dealt out at random to as many files as need be, each of
    which is then shuffled in memory.

    Args:
        records: array of `RECORD` (N,), usually memory-mapped.
        path: the file to write, `cooccurrence.shuf.bin` by custom.
        seed: int; the order depends on it and on the number of files.
        memory_limit: int, bytes.
        progress: whether to show a bar.
    """
    check_count("seed", seed, least=0)
    check_count("memory_limit", memory_limit, least=1 << 16)
    num_files = -(-2 * records.nbytes // memory_limit)
    generator = np.random.default_rng(seed)
    with whole_file(path) as file:
        if num_files <= 1:
            np.asarray(records)[generator.permutation(len(records))].tofile(file)
            return
        with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
            parts = [Path(folder) / f"{number:05d}.bin" for number in range(num_files)]
            _deal(records, parts, generator, memory_limit // (4 * RECORD.itemsize), progress)
            for part in parts:
                dealt = np.fromfile(part, RECORD)
                part.unlink()
                dealt[generator.permutation(len(dealt))].tofile(file)


def _deal(records, parts, generator, size, progress):
    """Appends each record to one of several files, drawn at random."""
    with Progress(disable=not progress, transient=True) as bar:
        task = bar.add_task("shuffling", total=len(records))
        for part in parts:
            part.touch()
        for start in range(0, len(records), size):
            block = np.asarray(records[start : start + size])
            chosen = generator.integers(0, len(parts), len(block))
            order = np.argsort(chosen, kind="stable")
            ends = np.cumsum(np.bincount(chosen, minlength=len(parts)))
            for part, rows in zip(parts, np.split(order, ends[:-1]), strict=True):
                with open(part, "ab") as file:
                    block[rows].tofile(file)
            bar.advance(task, len(block))
