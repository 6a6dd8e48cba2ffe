"""Which pieces make up a word, and which word a piece is of, by their places in the string."""

import numpy as np


def pieces_of_spans(spans, pieces):
    """The pieces that overlap each stretch of a string.

    Args:
        spans: int (S, 2), start and end of words or answers, in code points.
        pieces: int (P, 2), start and end of the pieces, in order.

    Returns:
        int64 (S, 2): the first piece of each and the one behind the last, equal where there is
        none, as of a word that is a control character.
    """
    spans = np.asarray(spans, np.int64).reshape(-1, 2)
    pieces = np.asarray(pieces, np.int64).reshape(-1, 2)
    first = np.searchsorted(pieces[:, 1], spans[:, 0], side="right")  # whose end is behind
    last = np.searchsorted(pieces[:, 0], spans[:, 1], side="left")  # whose start is before
    return np.stack([first, np.maximum(first, last)], axis=1)


def spans_of_pieces(pieces, spans):
    """The stretch of a string that each piece overlaps; the first of several, -1 if there is none.

    Args:
        pieces: int (P, 2), start and end of the pieces, in code points.
        spans: int (S, 2), start and end of words, in order, which do not overlap.

    Returns:
        int64 (P,)
    """
    pieces = np.asarray(pieces, np.int64).reshape(-1, 2)
    bounds = pieces_of_spans(pieces, spans)
    found = bounds[:, 0] < bounds[:, 1]
    return np.where(found, bounds[:, 0], -1)
