"""n-grams of text that comes piece by piece, sorted piece by piece and merged at the end."""

import contextlib
import shutil
import tempfile
from pathlib import Path

import numpy as np

from kctx.ngrams.counts import merged
from kctx.ngrams.suffix_order import sorted_rows
from kctx.ngrams.text import END, START

_MOST_RUNS = 64


class SortedRuns:
    """Sorted runs of n-grams of the highest order: in memory while there is one, else in files."""

    def __init__(self, order, limit, temporary_folder=None):
        self.order = order
        self.limit = limit
        self.parent = temporary_folder
        self.folder = None
        self.runs = []
        self.words_seen = False
        self._before = np.full(order - 1, START, np.int32)
        self._position = 0
        self._written = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.runs = []
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, ids, size):
        """Sorts and counts the n-grams that end in these ids, which follow those added before."""
        if self.runs and self.folder is None:
            if self.parent is not None:
                Path(self.parent).mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix="kctx-ngrams-", dir=self.parent))
            self.runs = [self._spilled(*self.runs[0])]
        if len(self.runs) >= _MOST_RUNS:
            self.runs = [self.merged(size)]
        self.words_seen = self.words_seen or bool((ids != END).any())
        columns = self._columns(ids)
        order, new = sorted_rows(columns, [size] * self.order)
        first = order[new]
        starts = np.flatnonzero(new)
        counts = np.diff(starts, append=len(order))
        del order, new, starts
        run = [column[first] for column in columns], counts
        if self.folder is not None:
            run = self._spilled(*run)
        self.runs.append(run)

    def _columns(self, ids):
        """The last words, the words before them, and so on, `<s>` beyond the sentence's start."""
        count = len(ids)
        ends = np.flatnonzero(ids == END)
        # Position within the sentence: what follows an end begins anew.
        position = np.ones(count, np.int32)
        position[0] = self._position
        behind = ends[ends + 1 < count] + 1
        lengths = np.diff(behind, prepend=-self._position)
        position[behind] = 1 - lengths
        np.cumsum(position, out=position)
        extended = np.concatenate([self._before, ids])
        columns = [ids]
        for k in range(1, self.order):
            start = self.order - 1 - k
            columns.append(np.where(position >= k, extended[start : start + count], START))
        self._before = extended[count:]
        self._position = 0 if ids[-1] == END else int(position[-1]) + 1
        return [column.astype(np.int32, copy=False) for column in columns]

    def _spilled(self, columns, counts):
        """Writes a run; returns it as maps of the files."""
        with self._new_run() as (files, maps):
            for file, values in zip(files, [*columns, counts], strict=True):
                values.tofile(file)
        return maps()

    @contextlib.contextmanager
    def _new_run(self):
        """Files to write a run into, and a function that maps them once they are closed."""
        paths = [self.folder / f"{self._written}-{name}" for name in range(self.order + 1)]
        self._written += 1
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(path, "wb")) for path in paths]

            def maps():
                columns = [np.memmap(path, np.int32, "r") for path in paths[:-1]]
                return columns, np.memmap(paths[-1], np.int64, "r")

            yield files, maps

    def merged(self, size):
        """All runs as one: columns and counts of different n-grams in suffix order.

        The runs are cut at the same values of their first two columns, so that about `limit` rows
        lie between two cuts; these are sorted together.
        """
        if len(self.runs) == 1:
            return self.runs[0]
        total = sum(len(counts) for _, counts in self.runs)
        step = max(1, min(self.limit // 64, min(len(counts) for _, counts in self.runs)))
        sample = np.sort(
            np.concatenate(
                [_leading(columns, slice(None, None, step), size) for columns, _ in self.runs]
            )
        )
        parts = -(-total // self.limit)
        cuts = np.unique(sample[len(sample) * np.arange(1, parts) // parts])
        bounds = [
            [0, *(_place(columns, int(cut), size) for cut in cuts), len(counts)]
            for columns, counts in self.runs
        ]
        with self._new_run() as (files, maps):
            for part in range(len(cuts) + 1):
                spans = [slice(bound[part], bound[part + 1]) for bound in bounds]
                runs = list(zip(self.runs, spans, strict=True))
                columns = [
                    np.concatenate([run[0][k][span] for run, span in runs])
                    for k in range(self.order)
                ]
                counts = np.concatenate([run[1][span] for run, span in runs])
                if len(counts):
                    columns, counts = merged(columns, counts, size)
                    for file, values in zip(files, [*columns, counts], strict=True):
                        values.tofile(file)
        merged_run = maps()
        for columns, counts in self.runs:
            for array in [*columns, counts]:
                Path(array.filename).unlink(missing_ok=True)
        return merged_run


def _leading(columns, rows, size):
    """int64 keys of the first two columns of some rows."""
    key = columns[0][rows].astype(np.int64) * size
    return key + columns[1][rows] if len(columns) > 1 else key


def _place(columns, key, size):
    """Where the first row with at least this key stands; touches few pages of the files."""
    first, second = divmod(key, size)
    start = int(np.searchsorted(columns[0], np.int32(first)))
    if len(columns) == 1:
        return start
    stop = int(np.searchsorted(columns[0], np.int32(first), side="right"))
    return start + int(np.searchsorted(columns[1][start:stop], np.int32(second)))
