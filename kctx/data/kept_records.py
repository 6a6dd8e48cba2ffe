"""Records of a file but for a few, without a copy of the rest."""

import numpy as np


class KeptRecords:
    """An array without some of its places; only slices that are read are in memory.

    Args:
        records: array (N,), usually memory-mapped.
        left_out: int64 (K,), the places that are left out, rising.
    """

    ndim = 1

    def __init__(self, records, left_out):
        self.records, self.left_out, self.dtype = records, left_out, records.dtype
        self._kept_before = left_out - np.arange(len(left_out))

    def __len__(self):
        return len(self.records) - len(self.left_out)

    @property
    def nbytes(self):
        """int, bytes of the records that are kept."""
        return len(self) * self.dtype.itemsize

    def __getitem__(self, key):
        """array of the records of a slice of step 1.

        Raises:
            ValueError: another kind of index.
        """
        if not isinstance(key, slice) or key.step not in (None, 1):
            raise ValueError(f"Only slices of step 1 can be read. Received: {key!r}")
        begin, end, _ = key.indices(len(self))
        if begin >= end:
            return self.records[:0]
        first, last = (self._place(number) for number in (begin, end - 1))
        bounds = np.searchsorted(self.left_out, [first, last])
        gone = self.left_out[bounds[0] : bounds[1]] - first
        return np.delete(np.asarray(self.records[first : last + 1]), gone)

    def _place(self, number):
        """Where a kept record lies among all."""
        return number + int(np.searchsorted(self._kept_before, number, side="right"))

    def __array__(self, dtype=None, copy=None):
        return self[:] if dtype is None else self[:].astype(dtype)
