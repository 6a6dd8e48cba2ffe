"""Files of co-occurrence counts as the GloVe tools read and write them.

Records of 16 bytes without a header, little-endian: `int32 word1, int32 word2, float64 value`. The
ids are ranks by frequency and begin at 1.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from rich.progress import Progress

from kctx.arguments import check_count
from kctx.data.kept_records import KeptRecords
from kctx.files import whole_file

RECORD = np.dtype([("word1", "<i4"), ("word2", "<i4"), ("value", "<f8")])
_AT_ONCE = 1 << 20


def open_cooccurrences(path, vocabulary_size=None, words=None):
    """Maps a file of records, after a look at each.

    The C tool may write a record (0, 0, 0), and its trainer skips all with an id below 1; so they
    are left out, with a warning.

    Args:
        path: `cooccurrence.bin` or `cooccurrence.shuf.bin`.
        vocabulary_size: int V; ids beyond it are an error. Default: not checked.
        words: list of str, which errors name instead of ids.

    Returns:
        memory-mapped array of `RECORD` (N,); `KeptRecords` where some are left out.

    Raises:
        ValueError: the size of the file is no whole number of records, there are none, an id is
            beyond the vocabulary, or a value is not a positive finite number; names the record.
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
    records = check_cooccurrences(records, vocabulary_size, words, str(path))
    if not len(records):
        raise ValueError(f"{path} holds no records of words")
    return records


def check_cooccurrences(records, vocabulary_size=None, words=None, name="`records`"):
    """The records that can be trained on: those of an id below 1 are left out, with a warning.

    Args:
        records: array of `RECORD` (N,).
        vocabulary_size, words: as in `open_cooccurrences`.
        name: what to call the array.

    Returns:
        `records` itself, or `KeptRecords`.

    Raises:
        ValueError: for the first of the others that cannot be trained on.
    """
    if records.dtype != RECORD or records.ndim != 1:
        raise ValueError(f"{name} must be an array of (word1, word2, value) records")
    if vocabulary_size is None:
        vocabulary_size = len(words) if words is not None else np.iinfo(np.int32).max
    fillers = []
    for start in range(0, len(records), _AT_ONCE):
        block = np.asarray(records[start : start + _AT_ONCE])
        word1, word2, value = block["word1"], block["word2"], block["value"]
        if not (
            min(word1.min(), word2.min()) >= 1
            and max(word1.max(), word2.max()) <= vocabulary_size
            and value.min() > 0  # false for NaN, too
            and value.max() < np.inf
        ):
            filler = (word1 < 1) | (word2 < 1)
            bad = (word1 > vocabulary_size) | (word2 > vocabulary_size)
            bad |= ~((value > 0) & (value < np.inf))
            bad &= ~filler
            if bad.any():
                place = int(np.argmax(bad))
                raise ValueError(
                    f"{name}, record {start + place} must hold ids from 1 to {vocabulary_size:,} "
                    "and a positive finite value. "
                    f"Received: {describe(word1[place], word2[place], words)}, value={value[place]}"
                )
            fillers.append(start + np.flatnonzero(filler))
    if not fillers:
        return records
    fillers = np.concatenate(fillers)
    warnings.warn(
        f"{name}: {len(fillers):,} of {len(records):,} records have an id below 1 and are left "
        f"out, as the C tool's trainer does. The first is record {fillers[0]}",
        stacklevel=3,
    )
    return KeptRecords(records, fillers)


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
        records: array of `RECORD` (N,), usually memory-mapped, or `KeptRecords`.
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
