"""The table of an encoder from trained word vectors, without a second copy of it."""

import warnings

import numpy as np

from kctx.layers.table_rows import computes_on_cpu, set_rows

_ROWS_AT_ONCE = 16384


def table_shape(parts, first):
    """(rows, width) of a table of `first` rows and those of all parts, see `fill_rows`.

    Raises:
        ValueError: the parts hold no rows.
    """
    count = sum(table.shape[0] - start for table, start in parts)
    if not count:
        raise ValueError("`vectors` must hold at least one word. Received: none")
    return first + count, parts[0][0].shape[1]


def fill_rows(variable, parts, first, mean_row=None, words=()):
    """Writes parts of other tables into a table, one below the other.

    On a CPU a piece at a time, in place, so that no second table is ever in memory. Rows with NaN
    or infinity, which would spoil each text that they are in, become zeros, with a warning.

    Args:
        variable: `keras.Variable` of the shape that `table_shape` gives, of zeros.
        parts: list of (table, start): a table of `kctx.vectors` or an (N, D) array of any floats,
            memory-mapped or not, whose rows from `start` on are copied.
        first: int, rows of the variable above them, which stay zeros.
        mean_row: int, one of these, that gets the mean of all rows that are finite. Default: none.
        words: list of str, of the first rows of all parts, which the warning names.
    """
    in_place = computes_on_cpu() and variable.dtype == "float32"
    whole = None if in_place else np.zeros(variable.shape, "float32")
    total, place, not_finite = np.zeros(variable.shape[1]), first, []
    for table, begin in parts:
        for start in range(begin, table.shape[0], _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, table.shape[0])
            rows = table.chunk(start, stop) if hasattr(table, "chunk") else table[start:stop]
            rows = np.asarray(rows, "float32")
            with np.errstate(invalid="ignore"):
                sums = rows.sum(axis=0, dtype="float64")
            if not np.isfinite(sums).all():
                bad = ~np.isfinite(rows).all(axis=1)
                not_finite += (np.flatnonzero(bad) + place - first).tolist()
                rows = np.where(bad[:, None], np.float32(0), rows)
                sums = rows.sum(axis=0, dtype="float64")
            if in_place:
                set_rows(variable, np.arange(place, place + len(rows), dtype="int32"), rows)
            else:
                whole[place : place + len(rows)] = rows
            total += sums
            place += len(rows)
    if not_finite:
        row = not_finite[0]
        warnings.warn(
            f"{len(not_finite):,} of {place - first:,} rows hold NaN or infinity and became zeros, "
            f"first {f'that of {words[row]!r}' if row < len(words) else f'row {row}'}",
            stacklevel=3,
        )
    mean = total / max(place - first - len(not_finite), 1)
    if mean_row is not None and in_place:
        set_rows(variable, np.array([mean_row], "int32"), mean[None].astype("float32"))
    elif mean_row is not None:
        whole[mean_row] = mean
    if not in_place:
        variable.assign(whole)
