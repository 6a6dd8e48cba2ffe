"""Probabilities of all words after a context, and sentences drawn from them."""

import numpy as np

from kctx.ngrams.text import END, START, UNKNOWN


class Distributions:
    """What `NGramLM.distribution` computes; remembers which n-grams continue which contexts.

    Args:
        tables: `BackoffTables`.
        mixture: `JointMixture` or None.
    """

    def __init__(self, tables, mixture):
        self.tables = tables
        self.mixture = mixture
        self._followers = {}

    def after(self, columns, contexts, count):
        """(count, V) float64; contexts as columns of ids, last words first, and as a chain."""
        unigrams = 10.0 ** self.tables.probabilities[0].astype(np.float64)
        unigrams[START] = 0.0
        result = np.empty((count, len(unigrams)))
        if self.mixture is not None:
            buckets = np.broadcast_to(self.mixture.buckets(columns, contexts), count)
        for row in range(count):
            steps = self._steps(unigrams, [int(place[row]) for place in contexts])
            if self.mixture is None:
                for step in steps:
                    result[row] = step
                continue
            weights = self.mixture.weights[buckets[row]]
            result[row] = weights[0] / (len(unigrams) - 1)
            step = unigrams
            for weight in weights[1:]:
                step = next(steps, step)
                result[row] += weight * step
        result[:, START] = 0.0
        return result

    def _steps(self, unigrams, places):
        """The distributions of orders 1, 2, .. after one context, as far as it is known."""
        step = unigrams
        yield step
        for k, place in enumerate(places):
            if place < 0:
                return
            if k not in self._followers:
                self._followers[k] = self.tables.followers(k + 2)
            starts, followers, words = self._followers[k]
            span = slice(starts[place], starts[place + 1])
            step = step * 10.0 ** float(self.tables.backoffs[k][place])
            step[words[span]] = 10.0 ** self.tables.probabilities[k + 1][followers[span]].astype(
                np.float64
            )
            yield step


def sampled(model, rng, prefix, most, temperature, unknown):
    """Word ids drawn one after another, until the sentence ends or `most` are drawn.

    Args:
        model: `NGramLM`.
        rng: NumPy generator.
        prefix: list of ids, the words before.
        most: int.
        temperature: float.
        unknown: bool, whether `<unk>` may be drawn.
    """
    ids, first = [START, *prefix], 1 + len(prefix)
    while len(ids) - first < most:
        p = model.distribution([ids[max(0, len(ids) - model.order + 1) :]])[0]
        if not unknown:
            p[UNKNOWN] = 0.0
        if not p.max() > 0:
            break
        with np.errstate(divide="ignore"):
            p = np.exp((np.log(p) - np.log(p.max())) / temperature)
        total = np.cumsum(p)
        index = int(np.searchsorted(total, rng.random() * total[-1], side="right"))
        if index == END:
            break
        ids.append(index)
    return ids[first:]
