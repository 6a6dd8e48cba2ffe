"""Sorted counts that do not fit into memory: spilled to files, and merged row by row."""

from pathlib import Path

import numpy as np
from scipy import sparse

from kctx.data.cooccurrence_pieces import RunningSum


class Shards:
    """Sparse matrices in a folder.

    Args:
        folder: an existing folder.
        vocabulary_size: V, rows and columns of each matrix.
    """

    def __init__(self, folder, vocabulary_size):
        self.folder = Path(folder)
        self.vocabulary_size = vocabulary_size
        self.count = 0

    def _path(self, shard, part):
        return self.folder / f"shard-{shard:05d}.{part}"

    def write(self, matrix):
        """Adds a CSR matrix (V, V) with sorted columns."""
        matrix.indptr.astype(np.int64).tofile(self._path(self.count, "rows"))
        matrix.indices.astype(np.int32).tofile(self._path(self.count, "columns"))
        matrix.data.tofile(self._path(self.count, "values"))
        self.count += 1

    def _rows(self, shard, first, last):
        """Rows `first` ... `last` - 1 of one matrix."""
        starts = np.fromfile(
            self._path(shard, "rows"), np.int64, last - first + 1, offset=8 * first
        )
        begin, size = int(starts[0]), int(starts[-1] - starts[0])
        columns = np.fromfile(self._path(shard, "columns"), np.int32, size, offset=4 * begin)
        values = np.fromfile(self._path(shard, "values"), np.float64, size, offset=8 * begin)
        return sparse.csr_matrix(
            (values, columns, starts - begin), (last - first, self.vocabulary_size)
        )

    def merged(self, size):
        """Yields (first row, CSR matrix of rows) of the sum, in order.

        Args:
            size: int, numbers that the rows of one yield may hold in all shards together. One row
                is always taken whole.
        """
        held = np.zeros(self.vocabulary_size, np.int64)
        for shard in range(self.count):
            held += np.diff(np.fromfile(self._path(shard, "rows"), np.int64))
        total = np.concatenate([[0], np.cumsum(held)])
        first = 0
        while first < self.vocabulary_size:
            last = int(np.searchsorted(total, total[first] + size, "right")) - 1
            last = max(last, first + 1)
            rows = RunningSum()
            for shard in range(self.count):
                rows.add(self._rows(shard, first, last))
            yield first, rows.take()
            first = last
