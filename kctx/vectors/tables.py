"""How rows of numbers are kept: as they are, in half precision, or as bytes with a scale per row.

A table has `shape`, `storage` and two ways to its rows, both as float32: `rows(ids)` for some and
`chunk(start, stop)` for neighbouring ones. Whatever scans a table asks for one chunk after the
other, so that the memory it takes does not grow with the table.
"""

import numpy as np

STORAGES = ("float32", "float16", "int8")
ROWS_AT_ONCE = 16384


class DenseTable:
    """Numbers as they are.

    Args:
        array: (V, D) float32 or float16 array, memory-mapped or not; other floats become float32.

    Raises:
        ValueError: not two-dimensional.
    """

    def __init__(self, array):
        array = np.asarray(array)  # a memory map as the plain array that it is, far faster
        if array.ndim != 2:
            raise ValueError(f"`table` must have shape (V, D). Received: shape {array.shape}")
        if array.dtype not in (np.float32, np.float16):
            array = array.astype(np.float32)
        self.array = array
        self.shape = array.shape
        self.storage = "float16" if array.dtype == np.float16 else "float32"
        self.is_direct = array.dtype == np.float32 and array.flags.aligned

    def rows(self, ids):
        """(N, D) float32, a copy."""
        shared = isinstance(ids, (int, slice))  # those NumPy does not copy by itself
        return self.array[ids].astype(np.float32, copy=shared)

    def chunk(self, start, stop):
        """(stop - start, D) float32; what is stored itself where that is possible."""
        return np.asarray(self.array[start:stop], np.float32)

    def arrays(self):
        """What is stored, by name."""
        return {"table": self.array}

    def first(self, count):
        """The table of the first rows, which shares their memory."""
        return DenseTable(self.array[:count])


class Int8Table:
    """One byte a number: row = codes * scale, the scale being the row's largest number / 127.

    Args:
        codes: (V, D) int8.
        scales: (V,) float32; NaN where a row cannot be stored, which gives it back as NaN.
    """

    storage = "int8"

    def __init__(self, codes, scales):
        if codes.ndim != 2 or scales.shape != codes.shape[:1]:
            raise ValueError(
                "`codes` must have shape (V, D) and `scales` (V,). "
                f"Received: shapes {codes.shape} and {scales.shape}"
            )
        self.codes, self.scales = codes, scales
        self.shape = codes.shape

    def rows(self, ids):
        """(N, D) float32."""
        return self.codes[ids] * self.scales[ids][..., None]

    def chunk(self, start, stop):
        """(stop - start, D) float32."""
        values = self.codes[start:stop].astype(np.float32)
        values *= self.scales[start:stop, None]
        return values

    def arrays(self):
        """What is stored, by name."""
        return {"table": self.codes, "scales": self.scales}

    def first(self, count):
        """The table of the first rows, which shares their memory."""
        return Int8Table(self.codes[:count], self.scales[:count])


def as_table(array):
    """A table for an array; a table stays as it is."""
    return array if hasattr(array, "chunk") else DenseTable(array)


def chunks(table, size=ROWS_AT_ONCE, stop=None):
    """The rows of a table, or its first `stop`, in order: pairs (start, (n, D) float32)."""
    stop = table.shape[0] if stop is None else min(stop, table.shape[0])
    for start in range(0, stop, size):
        yield start, table.chunk(start, min(start + size, stop))


class TableWriter:
    """Fills a table of the given storage row by row, or chunk by chunk.

    Args:
        rows, dim: int, its shape; it grows if more rows come.
        storage: "float32", "float16" or "int8".

    Raises:
        ValueError: unknown storage; in `put`: a number that float16 cannot hold.
    """

    def __init__(self, rows, dim, storage="float32"):
        check_storage(storage)
        self.storage = storage
        self.array = np.empty((rows, dim), storage)
        self.scales = np.empty(rows, np.float32) if storage == "int8" else None
        self.filled = 0

    def put(self, values):
        """Appends (n, D) numbers."""
        start, stop = self.filled, self.filled + len(values)
        if stop > len(self.array):
            self._grow(stop)
        if self.storage == "int8":
            with np.errstate(invalid="ignore"):
                scales = np.abs(values).max(axis=1, initial=0.0).astype(np.float32) / 127
            scales[~np.isfinite(scales)] = np.nan  # the row is given back as NaN
            divisors = np.where(scales > 0, scales, 1)[:, None]
            codes = np.rint(np.nan_to_num(values, posinf=0, neginf=0) / divisors)
            self.array[start:stop] = codes.clip(-127, 127)
            self.scales[start:stop] = scales
        else:
            with np.errstate(over="ignore"):
                self.array[start:stop] = values
            if self.storage == "float16":
                lost = np.isinf(self.array[start:stop]) & np.isfinite(values)
                if lost.any():
                    raise ValueError(
                        "`storage` float16 holds numbers up to 65504. Received: "
                        f"{values[lost].flat[0]:g} in row {start + int(lost.nonzero()[0][0])}"
                    )
        self.filled = stop

    def _grow(self, least):
        # Memory that is not written to yet costs nothing.
        rows = max(least, len(self.array) * 3 // 2)
        for name in ("array", "scales"):
            old = getattr(self, name)
            if old is not None:
                new = np.empty((rows, *old.shape[1:]), old.dtype)
                new[: self.filled] = old[: self.filled]
                setattr(self, name, new)

    def table(self):
        """The table of what was put."""
        if self.storage == "int8":
            return Int8Table(self.array[: self.filled], self.scales[: self.filled])
        return DenseTable(self.array[: self.filled])


def stored_as(table, storage):
    """The rows of a table in another storage, converted chunk by chunk."""
    writer = TableWriter(*table.shape, storage)
    for _, values in chunks(table):
        writer.put(values)
    return writer.table()


def check_storage(storage):
    """Raises a `ValueError` for an unknown storage."""
    if storage not in STORAGES:
        raise ValueError(f"`storage` must be one of {STORAGES}. Received: {storage!r}")
