"""Scores of many sentences at once."""

import numpy as np

from kctx.ngrams.perplexity import Perplexity
from kctx.ngrams.text import END, START, UNKNOWN


def with_starts(ids):
    """Puts `<s>` before each sentence of a flat array whose sentences end with `</s>`.

    Returns:
        extended: (N + sentences,) int32.
        position: (N + sentences,) int32, place within the sentence, `<s>` at 0.
    """
    ends = np.flatnonzero(ids == END)
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else np.zeros(0, np.int64)
    lengths = ends - starts + 2
    where = np.cumsum(lengths) - lengths  # of each `<s>`
    extended = np.full(len(ids) + len(ends), START, np.int32)
    words = np.ones(len(extended), bool)
    words[where] = False
    extended[words] = ids
    position = np.arange(len(extended)) - np.repeat(where, lengths)
    return extended, position.astype(np.int32)


def columns_of(extended, position, order):
    """The words, the words before them, and so on; -1 before the sentence."""
    columns = [extended]
    for k in range(1, order):
        shifted = np.full(len(extended), -1, np.int32)
        shifted[k:] = extended[:-k] if k < len(extended) else extended[:0]
        shifted[position < k] = -1
        columns.append(shifted)
    return columns


def positions(tables, ids):
    """What `log_probabilities` of a model takes, for all tokens of whole sentences.

    Returns:
        (columns of the contexts, chain of the contexts, chain of the n-grams).
    """
    extended, position = with_starts(ids)
    columns = columns_of(extended, position, tables.order)
    places = tables.chain(columns)
    tokens = np.flatnonzero(position > 0)
    before = tokens - 1
    return (
        [column[before] for column in columns[: tables.order - 1]],
        [place[before] for place in places[: tables.order - 1]],
        [place[tokens] for place in places],
    )


def whole_sentences(arrays):
    """Joins arrays of ids so that each ends with `</s>`; the last one must."""
    held = []
    for ids in arrays:
        ends = np.flatnonzero(ids == END)
        if not len(ends):
            held.append(ids)
            continue
        cut = int(ends[-1]) + 1
        yield np.concatenate([*held, ids[:cut]])
        held = [ids[cut:]] if cut < len(ids) else []


def perplexity(batches):
    """`Perplexity` from pairs of (ids, log10 probabilities)."""
    sentences = words = oov = impossible = 0
    total = known = possible = 0.0
    for ids, logs in batches:
        ends = int((ids == END).sum())
        unknown = ids == UNKNOWN
        finite = np.isfinite(logs)
        sentences += ends
        words += len(ids) - ends
        oov += int(unknown.sum())
        impossible += int((~finite & ~unknown).sum())
        total += float(logs.sum())
        known += float(logs[~unknown].sum())
        possible += float(logs[~unknown & finite].sum())
    return Perplexity(sentences, words, oov, impossible, total, known, possible)
