"""How often words occur near each other: the counts that GloVe is trained on.

Pennington, Socher and Manning, 2014, "GloVe: Global Vectors for Word Representation", section 4.2:
a pair of words d apart counts 1/d.
"""

import collections
import concurrent.futures
import contextlib
import tempfile
from pathlib import Path

import numpy as np
from rich.progress import Progress

from kctx.arguments import check_count
from kctx.data.cooccurrence_pieces import RunningSum, count_piece, pieces, weights_of
from kctx.data.cooccurrence_records import RECORD
from kctx.data.cooccurrence_shards import Shards
from kctx.files import whole_file

_PIECE = 1 << 17  # ids: larger pieces leave less to add up, smaller ones stay in the cache
_BYTES_A_COUNT = 12  # int32 column, float64 sum
_LEAST_MEMORY = 1 << 20


def count_cooccurrences(
    corpus,
    vocabulary_size,
    path=None,
    window=15,
    symmetric=True,
    distance_weighting=True,
    memory_limit=1 << 30,
    threads=2,
    progress=True,
):
    """Sums the weights of all pairs of words that are at most `window` words apart in a line.

    Unknown words are left out first, so they do not widen distances. Sums are exact and do not
    depend on `memory_limit` or `threads` (windows beyond 22: up to rounding).

    Args:
        corpus: `IdCorpus`.
        vocabulary_size: int V; all ids must be below it.
        path: where to write the records, `cooccurrence.bin` by custom. Default: in memory.
        window: int, words to the left. Default 15, as the C tool; the paper has 10.
        symmetric: whether a pair counts for (left, right) and (right, left), or for (left, right)
            alone.
        distance_weighting: whether a pair d words apart counts 1/d, or 1.
        memory_limit: int, bytes that counts may take before they are spilled to a temporary
            folder, at least 1 MiB. Some tens of MB come on top for each thread.
        threads: int.
        progress: whether to show a bar.

    Returns:
        array of `RECORD` (N,), ids from 1, sorted by (word1, word2); memory-mapped with `path`.

    Raises:
        ValueError: an argument is not as above, or no two words lie near each other.
    """
    for name, value in (
        ("vocabulary_size", vocabulary_size),
        ("window", window),
        ("threads", threads),
    ):
        check_count(name, value)
    check_count("memory_limit", memory_limit, least=_LEAST_MEMORY)
    weights, unit = weights_of(window, distance_weighting)
    # A turned-over copy, their sum and the sum's copy lie beside the counts when they are spilled.
    most = memory_limit // (6 * _BYTES_A_COUNT)
    size = max(256, min(_PIECE, 16 * _PIECE // window, most // window))
    folder = None if path is None else Path(path).parent
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="cooccurrence-", dir=folder) as spilled:
        shards, counts = Shards(spilled, vocabulary_size), RunningSum()
        for counted in _count(corpus, vocabulary_size, window, weights, size, threads, progress):
            counts.add(counted)
            if len(counts) > most:
                shards.write(_both_sides(counts.take(), symmetric))
        if shards.count:
            if len(counts):
                shards.write(_both_sides(counts.take(), symmetric))
            blocks = shards.merged(most)
        else:
            total = counts.take()
            blocks = [] if total is None else [(0, _both_sides(total, symmetric))]
        return _store(blocks, unit, path)


def _count(corpus, vocabulary_size, window, weights, size, threads, progress):
    """Yields the counts of one piece after the other."""
    with (
        concurrent.futures.ThreadPoolExecutor(threads) as pool,
        Progress(disable=not progress or len(corpus) < 16 * size, transient=True) as bar,
    ):
        task = bar.add_task("counting pairs of words", total=len(corpus))
        running = collections.deque()
        for words, line_ends, carried in pieces(corpus, window, size):
            if len(words) and not 0 <= words.max() < vocabulary_size:
                raise ValueError(
                    "`corpus` must hold ids below `vocabulary_size`. "
                    f"Received: vocabulary_size={vocabulary_size}, an id of {words.max()}"
                )
            running.append(
                pool.submit(count_piece, words, line_ends, carried, vocabulary_size, weights)
            )
            if len(running) > 2 * threads:
                yield running.popleft().result()
            bar.advance(task, size)
        while running:
            yield running.popleft().result()


def _both_sides(counts, symmetric):
    return counts + counts.T.tocsr() if symmetric else counts


def _records(first, rows, unit):
    """Records of a CSR matrix whose first row is that of word `first`."""
    records = np.empty(rows.nnz, RECORD)
    ids = np.arange(first + 1, first + 1 + rows.shape[0], dtype=np.int32)
    records["word1"] = np.repeat(ids, np.diff(rows.indptr))
    records["word2"] = rows.indices + 1
    records["value"] = rows.data / unit
    return records


def _store(blocks, unit, path):
    with contextlib.ExitStack() as stack:
        file = None if path is None else stack.enter_context(whole_file(path))
        kept, total = [], 0
        for first, rows in blocks:
            records = _records(first, rows, unit)
            total += len(records)
            if file is None:
                kept.append(records)
            else:
                records.tofile(file)
        if not total:
            raise ValueError("`corpus` must hold two known words in one line. Received: none")
    if path is None:
        return kept[0] if len(kept) == 1 else np.concatenate(kept)
    return np.memmap(path, RECORD, "r")
