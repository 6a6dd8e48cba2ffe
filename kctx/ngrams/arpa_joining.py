"""From the n-grams of an ARPA file, in any order, to back-off tables in suffix order."""

import warnings

import numpy as np

from kctx.ngrams.suffix_order import find
from kctx.ngrams.tables import BackoffTables
from kctx.ngrams.text import END, SPECIAL_WORDS, START
from kctx.words import to_text

# What KenLM gives `<unk>` where the file lists none.
_UNLISTED = -100.0


def joined(path, words, sections):
    """`BackoffTables` of the sections of a file.

    An n-gram may be listed while its ending is not, as in pruned files of SRILM: the ending is
    put in with the probability that backing off gives it, which changes no score.

    Args:
        path: of the file, to name in errors.
        words: list of bytes, in the order of the unigrams.
        sections: list of `Section`, whose rows hold places in `words`.

    Raises:
        ValueError: n-grams that are listed twice or whose context is not listed; `<s>` or `</s>`
            missing.
    """
    words, probability, backoff, renumbered = _unigrams(path, words, sections[0])
    size = len(words)
    keys, probabilities, backoffs = [], [probability], [backoff]
    rows = [renumbered[section.rows] for section in sections]
    places = [row[:, -1] for row in rows]  # of the longest ending found so far
    contexts = [None, None]
    for order in range(2, len(sections) + 1):
        wanted = [
            places[k - 1].astype(np.int64) * size + rows[k - 1][:, -order]
            for k in range(order, len(sections) + 1)
        ]
        own, section = wanted[0], sections[order - 1]
        sorting = np.argsort(own, kind="stable")
        key = own[sorting]
        _check_twice(path, words, rows[order - 1], section, sorting, key)
        missing = [keys_[find(key, keys_) < 0] for keys_ in wanted[1:]]
        absent = np.unique(np.concatenate(missing)) if missing else key[:0]
        order_places = np.concatenate([sorting, np.full(len(absent), -1)])
        table = np.concatenate([key, absent])
        if len(absent):
            again = np.argsort(table, kind="stable")
            table, order_places = table[again], order_places[again]
        listed = order_places >= 0
        context = _contexts(table, keys, contexts[order - 1], size)
        _check_contexts(path, words, rows[order - 1], section, order_places, context)
        probability = section.probabilities[order_places]
        backoff = section.backoffs[order_places]
        backoff[~listed] = 0.0
        lower = probabilities[-1][table[~listed] // size]
        known = context[~listed]
        weight = np.where(known >= 0, backoffs[-1][known], np.float32(0))
        probability[~listed] = lower + weight
        for k, wanted_keys in zip(range(order, len(sections) + 1), wanted, strict=True):
            places[k - 1] = find(table, wanted_keys)
        keys.append(table)
        contexts.append(context)
        probabilities.append(probability)
        backoffs.append(backoff)
    return BackoffTables(words, keys, probabilities, backoffs[:-1])


def _unigrams(path, words, section):
    """Words with `<unk>`, `<s>`, `</s>` first, their values, and new ids of the old places."""
    known = {word: place for place, word in enumerate(words)}
    for word in (SPECIAL_WORDS[START], SPECIAL_WORDS[END]):
        if word not in known:
            raise ValueError(f"{path} must list {to_text(word)} among its unigrams")
    unknown = known.get(b"<unk>", known.get(b"<UNK>"))
    front = [unknown, known[b"<s>"], known[b"</s>"]]
    rest = [place for place in range(len(words)) if place not in front]
    order = np.array([place for place in front if place is not None] + rest)
    probability, backoff = section.probabilities[order], section.backoffs[order]
    if unknown is None:
        warnings.warn(
            f"{path} lists no <unk>: unknown words get log10 p = {_UNLISTED:g}", stacklevel=5
        )
        probability = np.concatenate([np.float32([_UNLISTED]), probability])
        backoff = np.concatenate([np.float32([0.0]), backoff])
    renumbered = np.empty(len(words), np.int32)
    renumbered[order] = np.arange(len(order)) + (unknown is None)
    return [*SPECIAL_WORDS, *(words[place] for place in rest)], probability, backoff, renumbered


def _contexts(table, keys, inner, size):
    """Places of the n-grams without their last word in the order below, -1 where not listed."""
    if not keys:
        return (table % size).astype(np.int32)
    inner = inner[table // size].astype(np.int64)
    return find(keys[-1], np.where(inner >= 0, inner * size + table % size, -1))


def _check_twice(path, words, rows, section, sorting, key):
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        first, second = sorted(sorting[twice[0] : twice[0] + 2].tolist())
        raise ValueError(
            f"{path} line {section.line + second}: the n-gram {_shown(words, rows[second])!r} is "
            f"listed in line {section.line + first} already"
        )


def _check_contexts(path, words, rows, section, order_places, context):
    lost = order_places[(context < 0) & (order_places >= 0)]
    if len(lost):
        place = int(lost.min())
        shown = _shown(words, rows[place])
        raise ValueError(
            f"{path} line {section.line + place}: the context of the n-gram {shown!r} is not "
            f"listed among the {rows.shape[1] - 1}-grams"
        )


def _shown(words, row):
    return to_text(b" ".join(words[index] for index in row.tolist()))
