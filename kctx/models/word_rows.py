"""The table of an encoder from trained word vectors, without more copies than one."""

import keras
import numpy as np

_ROWS_AT_ONCE = 65536


def filled_table(parts, first):
    """One float32 table that holds parts of others, one below the other.

    Args:
        parts: list of (table, start): a table of `kctx.vectors` or an (N, D) array of any floats,
            memory-mapped or not, whose rows from `start` on are copied.
        first: int, rows of zeros above them.

    Returns:
        float32 (first + rows of all parts, D).

    Raises:
        ValueError: the parts hold no rows.
    """
    count = sum(table.shape[0] - start for table, start in parts)
    if not count:
        raise ValueError("`vectors` must hold at least one word. Received: none")
    filled = np.zeros((first + count, parts[0][0].shape[1]), "float32")
    place = first
    for table, begin in parts:
        for start in range(begin, table.shape[0], _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, table.shape[0])
            rows = table.chunk(start, stop) if hasattr(table, "chunk") else table[start:stop]
            filled[place : place + len(rows)] = rows
            place += len(rows)
    return filled


def release(layer):
    """Has a layer forget the array that its embeddings started from."""
    layer.embeddings_initializer = keras.initializers.get("uniform")
