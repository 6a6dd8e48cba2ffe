"""Interpolated modified Kneser-Ney smoothing, to the letter of KenLM's `lmplz`.

Chen and Goodman 1998, section 4.1.6 and equations 26 to 28; Heafield et al. 2013, section 3.
"""

import warnings

import numpy as np

from kctx.ngrams.text import END, START, UNKNOWN

DEFAULT_FALLBACK = (0.5, 1.0, 1.5)


def kneser_ney(counts, prune, fallback=DEFAULT_FALLBACK, interpolate_unigrams=True, pad=0):
    """Probabilities and back-off weights of all n-grams.

    Args:
        counts: `NGramCounts`.
        prune: list of int, for each order the largest number of occurrences that is left out.
        fallback: three discounts for an order whose own cannot be estimated, or None to raise.
        interpolate_unigrams: bool. False: all that unigrams are discounted goes to `<unk>`.
        pad: int, the least number of types that unigrams are interpolated over.

    Returns:
        kept: list of (n,) bool masks, the n-grams that are listed.
        probabilities, backoffs: lists of (n,) float64, of all n-grams.
        discounts: list of three floats for each order.
    """
    tables, prefixes = counts.orders, counts.prefixes
    kept = [table.count > threshold for table, threshold in zip(tables, prune, strict=True)]
    kept[0][[UNKNOWN, START, END]] = True
    if counts.fixed_vocabulary and prune[0] == 0:
        kept[0][:] = True
    discounts, probabilities, backoffs = [], [], []
    for k, table in enumerate(tables):
        adjusted = adjusted_counts(counts, k)
        discount = _discounts(_counts_of_counts(counts, k, adjusted), k + 1, fallback)
        discounts.append(discount)
        amount = np.array([0.0, *discount])[np.minimum(adjusted, 3)]
        total = np.bincount(prefixes[k], weights=adjusted, minlength=_contexts(tables, k))
        # What is discounted from the listed n-grams, and all of those left out.
        freed = np.where(kept[k], amount, adjusted)
        with np.errstate(invalid="ignore", divide="ignore"):
            backoff = np.bincount(prefixes[k], weights=freed, minlength=len(total)) / total
        backoff[total == 0] = 1.0
        own = (adjusted - amount) / np.maximum(total, 1)[prefixes[k]]
        if k == 0:
            uniform = 1.0 / max(int(kept[0].sum()) - 1, pad)
            if interpolate_unigrams:
                own += backoff[0] * uniform
            else:
                own[UNKNOWN] += backoff[0]
            own[START] = 1.0
        else:
            own += backoff[prefixes[k]] * probabilities[k - 1][table.suffix]
            backoffs.append(backoff)
        probabilities.append(np.minimum(own, 1.0))
    return kept, probabilities, backoffs, discounts


def adjusted_counts(counts, k):
    """Distinct words to the left, or occurrences: of the longest n-grams and after `<s>`."""
    table = counts.orders[k]
    if k == counts.order - 1:
        return table.count
    longer = counts.orders[k + 1]
    distinct = np.bincount(longer.suffix, minlength=len(table)).astype(np.int64)
    if k == 0:
        distinct[START] = 0
        return distinct
    return np.where(table.word == START, table.count, distinct)


def _contexts(tables, k):
    return len(tables[k - 1]) if k else 1


def _counts_of_counts(counts, k, adjusted):
    """Number of n-grams with an adjusted count of 0 to 4."""
    found = np.bincount(np.minimum(adjusted, 5), minlength=6)
    if k < counts.order - 1 and not counts.fixed_vocabulary and len(adjusted):
        # `lmplz` takes the last n-gram in its order at its occurrences instead, below the highest
        # order. So do we, to get the same discounts.
        found[min(adjusted[-1], 5)] -= 1
        found[min(counts.orders[k].count[-1], 5)] += 1
    return found[:5]


def _discounts(t, order, fallback):
    """D1, D2 and D3+ of Chen and Goodman's closed form, or the fallback."""
    missing = [j for j in (1, 2, 3) if t[j] == 0]
    if missing:
        reason = f"no {order}-gram has the adjusted count {missing[0]}"
    else:
        # In float32 and in this order, as `lmplz`: discounts near 0 depend on it.
        n = [np.float32(value) for value in t]
        y = n[1] / np.float32(t[1] + 2.0 * t[2])
        found = [float(np.float32(j) - np.float32(j + 1) * y * n[j + 1] / n[j]) for j in (1, 2, 3)]
        wrong = [(j, d) for j, d in zip((1, 2, 3), found, strict=True) if not 0 <= d <= j]
        if not wrong:
            return found
        j, d = wrong[0]
        reason = f"the discount of adjusted count {j} came out as {d:.4g}, outside [0, {j}]"
    message = (
        f"The Kneser-Ney discounts of order {order} cannot be estimated: {reason}. The text is "
        "small, repeats itself, or has few kinds of words."
    )
    if fallback is None:
        raise ValueError(f"{message} Give `discount_fallback`, for instance {DEFAULT_FALLBACK}.")
    warnings.warn(f"{message} Order {order} uses the discounts {fallback}.", stacklevel=6)
    return list(fallback)
