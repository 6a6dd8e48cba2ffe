"""Jelinek-Mercer smoothing: mixtures of the relative frequencies of all orders.

Two forms. "nested": `p_k(w | h) = l(h) c(hw)/c(h) + (1 - l(h)) p_{k-1}(w | h')` with a weight for
each order and bucket of c(h), down to `1/|V|`; a back-off table holds it. "joint": one vector of
weights over all orders for each bucket of the longest context's frequency, the interpolated
trigram of Bengio et al. 2003, section 3.1.
"""

import numpy as np

from kctx.ngrams.estimators import context_totals, listed, relative_frequencies
from kctx.ngrams.tables import IMPOSSIBLE
from kctx.ngrams.text import START

# So that no word becomes impossible because the held-out text had no unknown one.
_MOST = 0.9999


def doubling_buckets(frequency):
    """Bucket of a context's frequency: 0, 1, 2-3, 4-7, .., at most 20."""
    return np.minimum(np.frexp(np.asarray(frequency, np.float64))[1], 20).astype(np.int32)


def bengio_buckets(frequency, tokens):
    """`ceil(-log((1 + frequency) / T))`, T tokens of training text (Bengio et al. 2003)."""
    ratio = (1.0 + np.asarray(frequency, np.float64)) / tokens
    return np.maximum(np.ceil(-np.log(ratio)), 0).astype(np.int32)


def nested_table(counts, prune, weights):
    """(kept, probabilities, backoffs) of the nested form.

    Args:
        weights: function of (order k, (n,) frequencies of contexts) -> (n,) weights l of order k.
    """
    kept = listed(counts, prune)
    size = int(kept[0].sum()) - 1
    probabilities, backoffs = [], []
    for k, table in enumerate(counts.orders):
        total = context_totals(counts, kept, k)
        weight = np.where(total > 0, weights(k + 1, total), 0.0)
        lower = probabilities[k - 1][table.suffix] if k else 1.0 / size
        prefix = counts.prefixes[k]
        own = weight[prefix] * relative_frequencies(counts, kept, k)
        probabilities.append(own + (1.0 - weight[prefix]) * lower)
        if k:
            backoffs.append(1.0 - weight)
    probabilities[0][START] = 1.0
    return kept, probabilities, backoffs


def nested_weights(mixture):
    """The weights l of each order from weights of a mixture, the highest order first.

    (0.6, 0.3, 0.1), bigram, unigram, uniform: l is 0.6 for bigrams and 0.3 / 0.4 for unigrams.
    """
    rest, found = 1.0, []
    for weight in mixture[:-1]:
        found.append(weight / rest if rest > 0 else 0.0)
        rest -= weight
    return found[::-1]


def levels(tables, contexts, ngrams, size):
    """Estimates of all orders at N positions, from tables of maximum likelihood.

    Returns:
        (order + 1, N) float64: the uniform `1 / size`, then relative frequencies of each order;
        after a context that never occurred, those of the order below.
    """
    found = [np.full(len(ngrams[0]), 1.0 / size)]
    for k, place in enumerate(ngrams):
        estimate = np.zeros(len(place))
        hit = place >= 0
        estimate[hit] = powers(tables.probabilities[k][place[hit]])
        if k:
            estimate = np.where(_seen(tables, contexts, k), estimate, found[-1])
        found.append(estimate)
    return np.stack(found)


def _seen(tables, contexts, k):
    """Whether the context of k words at each position occurred with a word behind it."""
    return _looked_up(tables.backoffs[k - 1], contexts[k - 1], 0.0) == IMPOSSIBLE


def _looked_up(values, places, missing):
    """Values at places, and another where a place is -1; there may be no values at all."""
    if not len(values):
        return np.full(len(places), missing)
    return np.where(places >= 0, values[places], missing)


def powers(logs):
    """10 to the power of float32 logs, in float64."""
    return 10.0 ** logs.astype(np.float64)


def estimate_nested(tables, totals, contexts, ngrams, iterations):
    """Weights l for each order and doubling bucket, by expectation maximisation.

    The likelihood of the held-out positions under the whole nested mixture is raised at each step.

    Args:
        tables: `BackoffTables` of maximum likelihood.
        totals: list of (n,) frequencies of the contexts of 0, 1, .. words.
        contexts, ngrams: chains of the held-out positions.
        iterations: int.

    Returns:
        (order, 21) float64.
    """
    order, count = tables.order, len(ngrams[0])
    p = levels(tables, contexts, ngrams, predicted_size(tables))
    buckets, valid = [np.full(count, doubling_buckets(totals[0][0]))], [np.ones(count, bool)]
    for k in range(1, order):
        buckets.append(doubling_buckets(_looked_up(totals[k], contexts[k - 1], 0)))
        valid.append(buckets[-1] > 0)
    weights, evidence = np.full((order, 21), 0.5), np.zeros((order, 21))
    for _ in range(iterations):
        mixed, parts = p[0], []
        for k in range(order):
            share = np.where(valid[k], weights[k][buckets[k]], 0.0)
            own = share * p[k + 1]
            mixed = own + (1.0 - share) * mixed
            with np.errstate(invalid="ignore", divide="ignore"):
                parts.append(np.where(mixed > 0, own / mixed, 0.0))
        reached = np.ones(count)  # posterior of having come down to this order
        for k in range(order - 1, -1, -1):
            taken = np.where(valid[k], reached, 0.0)
            evidence[k] = np.bincount(buckets[k], weights=taken, minlength=21)
            won = np.bincount(buckets[k], weights=taken * parts[k], minlength=21)
            known = evidence[k] > 0
            weights[k][known] = np.minimum(won[known] / evidence[k][known], _MOST)
            reached = reached * (1.0 - parts[k])
    for k in range(order):
        _fill(weights[k], evidence[k] > 0)
    return weights


def estimate_joint(tables, buckets, contexts, ngrams, iterations):
    """Weights over the uniform and all orders for each bucket, by expectation maximisation.

    Args:
        buckets: (N,) int, of the held-out positions.

    Returns:
        (buckets, order + 1) float64, rows sum to one.
    """
    p = levels(tables, contexts, ngrams, predicted_size(tables))
    number = int(buckets.max()) + 1
    weights = np.full((number, len(p)), 1.0 / len(p))
    evidence = np.bincount(buckets, minlength=number)
    for _ in range(iterations):
        parts = weights[buckets].T * p
        total = parts.sum(axis=0)
        parts /= np.where(total > 0, total, 1.0)
        for k, part in enumerate(parts):
            won = np.bincount(buckets, weights=part, minlength=number)
            weights[:, k] = np.where(evidence > 0, won / np.maximum(evidence, 1), weights[:, k])
    # The uniform estimate keeps a little, so that no word becomes impossible.
    weights[:, 0] = np.maximum(weights[:, 0], 1.0 - _MOST)
    weights /= weights.sum(axis=1, keepdims=True)
    _fill(weights, evidence > 0)
    return weights


def _fill(weights, known):
    """Buckets without held-out positions take the weights of the nearest that has some."""
    if known.any():
        places = np.flatnonzero(known)
        for bucket in np.flatnonzero(~known):
            weights[bucket] = weights[places[np.abs(places - bucket).argmin()]]


def predicted_size(tables):
    """|V|: everything that can be predicted."""
    return len(tables.words) - 1


class JointMixture:
    """The joint form: weights by the bucket of the frequency of the longest context.

    Args:
        weights: (buckets, order + 1) float64, for the uniform estimate and orders 1 upwards.
        frequencies: list of float64 arrays, of the contexts of 1, 2, .. words.
        tokens: int, T of `bengio_buckets`.
    """

    def __init__(self, weights, frequencies, tokens):
        self.weights = weights
        self.frequencies = frequencies
        self.tokens = tokens

    def buckets(self, columns, contexts):
        """(N,) buckets of contexts.

        A context that is shorter, for it begins the sentence, counts with its own frequency.
        """
        return joint_buckets(self.frequencies, self.tokens, columns, contexts, len(self.weights))

    def log_probabilities(self, tables, columns, contexts, ngrams):
        """log10 p of N positions; `columns` are those of the contexts."""
        weights = self.weights[self.buckets(columns, contexts)]
        p = levels(tables, contexts, ngrams, predicted_size(tables))
        with np.errstate(divide="ignore"):
            return np.log10((weights.T * p).sum(axis=0))


def joint_buckets(frequencies, tokens, columns, contexts, number=None):
    frequency = np.full(len(columns[0]) if columns else 1, float(tokens))
    for column, place, table in zip(columns, contexts, frequencies, strict=False):
        here = column >= 0
        frequency[here] = _looked_up(table, place[here], 0)
    buckets = bengio_buckets(frequency, tokens)
    return buckets if number is None else np.minimum(buckets, number - 1)
