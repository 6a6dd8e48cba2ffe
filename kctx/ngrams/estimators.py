"""Maximum likelihood, add-k and Katz estimates, all as back-off tables.

Each function takes `NGramCounts`, whose n-grams with at most `prune[k - 1]` occurrences are not
listed, and gives (kept, probabilities, backoffs) as `kneser_ney` does. Each context's
probabilities sum to one over all words but `<s>`.
"""

import warnings

import numpy as np

from kctx.ngrams.text import END, START, UNKNOWN


def listed(counts, prune):
    """Masks of the n-grams that occur more often than the thresholds of their orders."""
    kept = [table.count > threshold for table, threshold in zip(counts.orders, prune, strict=True)]
    kept[0][[UNKNOWN, START, END]] = True
    if counts.fixed_vocabulary and prune[0] == 0:
        kept[0][:] = True
    return kept


def context_totals(counts, kept, k):
    """Occurrences of each context, as the sum over its listed continuations."""
    table, prefix = counts.orders[k], counts.prefixes[k]
    contexts = len(counts.orders[k - 1]) if k else 1
    weights = np.where(kept[k], table.count, 0)
    return np.bincount(prefix, weights=weights, minlength=contexts)


def relative_frequencies(counts, kept, k):
    """c(hw) / c(h) of the listed n-grams of order k + 1, 0 for others."""
    total = context_totals(counts, kept, k)
    own = np.where(kept[k], counts.orders[k].count, 0)
    return own / np.maximum(total, 1)[counts.prefixes[k]]


def maximum_likelihood(counts, prune):
    """`p(w | h) = c(hw) / c(h)`; an unknown context counts as its longest known ending."""
    kept = listed(counts, prune)
    probabilities, backoffs = [], []
    for k in range(counts.order):
        probabilities.append(relative_frequencies(counts, kept, k))
        if k:
            backoffs.append(np.where(context_totals(counts, kept, k) > 0, 0.0, 1.0))
    probabilities[0][START] = 1.0
    return kept, probabilities, backoffs


def add_k(counts, prune, k):
    """`p(w | h) = (c(hw) + k) / (c(h) + k |V|)`, |V| = all that can be predicted.

    The formula knows the highest order only, so all lower orders are uniform: a continuation that
    never occurred gets `k / (c(h) + k |V|)`, and after an unknown context all words are alike.
    """
    kept = listed(counts, prune)
    size = int(kept[0].sum()) - 1
    probabilities, backoffs = [], []
    for level, table in enumerate(counts.orders):
        if level < counts.order - 1:
            probabilities.append(np.full(len(table), 1.0 / size))
        else:
            total = context_totals(counts, kept, level)
            own = (table.count + k) / (total + k * size)[counts.prefixes[level]]
            probabilities.append(own)
        if level:
            uniform = np.ones(len(counts.orders[level - 1]))
            if level == counts.order - 1:
                uniform = np.where(total > 0, k * size / (total + k * size), 1.0)
            backoffs.append(uniform)
    probabilities[0][START] = 1.0
    return kept, probabilities, backoffs


def katz(counts, prune, limits):
    """Katz back-off with Good-Turing discounts of counts up to `limits` of the order.

    `d_r = (r*/r - A) / (1 - A)`, `r* = (r + 1) n_{r+1} / n_r`, `A = (K + 1) n_{K+1} / n_1`. What
    unigrams are discounted goes to the words that never occur, `<unk>` among them. Where discounts
    leave nothing for unseen words, since all continuations are more frequent than the limit, the
    context's total grows by one, as in SRILM.
    """
    kept = listed(counts, prune)
    prefixes, probabilities, backoffs = counts.prefixes, [], []
    for k, table in enumerate(counts.orders):
        ratios = good_turing(table.count, limits[k], k + 1)
        own = np.where(kept[k], table.count, 0)
        discounted = own * ratios[np.minimum(own, limits[k] + 1)]
        contexts = len(counts.orders[k - 1]) if k else 1
        total = np.bincount(prefixes[k], weights=table.count, minlength=contexts)
        if k == 0:
            lower = np.full(len(own), 1.0 / (kept[0].sum() - 1))
            lower[START] = 0.0
        else:
            lower = probabilities[k - 1][table.suffix]
        seen = discounted > 0
        given = np.bincount(prefixes[k], weights=discounted, minlength=contexts)
        reached = np.bincount(prefixes[k], weights=np.where(seen, lower, 0), minlength=contexts)
        unseen = 1.0 - reached
        unseen[unseen < 1e-9] = 0.0
        stuck = (total > 0) & (unseen > 0) & (total - given < 1e-9 * total)
        total = total + stuck
        # Where every word was seen nothing can be left over: what is discounted is given back.
        total = np.where((unseen == 0) & (total > 0), given, total)
        known = total > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            alpha = np.where(known, (1.0 - given / total) / unseen, 1.0)
        alpha[known & (unseen == 0)] = 0.0
        p = discounted / np.where(known, total, 1.0)[prefixes[k]]
        # Listed without mass: unigrams that never occur.
        p = np.where(seen, p, alpha[prefixes[k]] * lower)
        if k == 0:
            p[START] = 1.0
        else:
            backoffs.append(np.maximum(alpha, 0.0))
        probabilities.append(p)
    return kept, probabilities, backoffs


def good_turing(occurrences, limit, order):
    """(limit + 2,) the ratios d_r of r = 0 .. limit + 1, the last standing for all above.

    Where they cannot be estimated, for a count of counts is 0 or a ratio is not in (0, 1], the
    largest smaller limit is taken that works, at worst none, and a warning says so.
    """
    ratios = np.ones(limit + 2)
    reason = None
    for smaller in range(limit, 0, -1):
        found = _ratios(occurrences, smaller)
        wrong = np.flatnonzero(~((found > 0) & (found <= 1)))
        if not len(wrong):
            ratios[1 : smaller + 1] = found
            break
        if reason is None:
            reason = f"the ratio of count {wrong[0] + 1} came out as {found[wrong[0]]:.4g}"
    else:
        smaller = 0
    if smaller < limit:
        warnings.warn(
            f"The Good-Turing discounts of order {order} cannot be estimated up to count {limit}: "
            f"{reason}, outside (0, 1]. Order {order} discounts counts up to {smaller}.",
            stacklevel=6,
        )
    return ratios


def _ratios(occurrences, limit):
    """(limit,) d_r of r = 1 .. limit, nan where a count of counts is 0."""
    n = np.bincount(np.minimum(occurrences, limit + 2), minlength=limit + 3).astype(float)
    r = np.arange(1, limit + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = (limit + 1) * n[limit + 1] / n[1]
        return ((r + 1) * n[r + 1] / n[r] / r - a) / (1 - a)
