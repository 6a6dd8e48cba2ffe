"""From counts to a model."""

import numpy as np

from kctx.ngrams import estimators, jelinek_mercer
from kctx.ngrams.counts import NGramCounts
from kctx.ngrams.kneser_ney import kneser_ney
from kctx.ngrams.scoring import positions, whole_sentences
from kctx.ngrams.tables import BackoffTables
from kctx.ngrams.text import Ids, WordIds, blocks_of, checked_source


def tables_of(counts, kept, probabilities, backoffs):
    """`BackoffTables` of the kept n-grams, in float32 logs."""
    with np.errstate(divide="ignore"):
        logs = [
            np.log10(p if keep.all() else p[keep]).astype(np.float32)
            for p, keep in zip(probabilities, kept, strict=True)
        ]
        weights = [
            np.log10(b if keep.all() else b[keep]).astype(np.float32)
            for b, keep in zip(backoffs, kept, strict=False)
        ]
    if all(keep.all() for keep in kept):
        return BackoffTables(counts.words, counts.keys[1:], logs, weights)
    places = [np.cumsum(keep) - 1 for keep in kept]
    words = [word for word, keep in zip(counts.words, kept[0].tolist(), strict=True) if keep]
    keys = []
    for k in range(1, counts.order):
        table, keep = counts.orders[k], kept[k]
        suffix = places[k - 1][table.suffix[keep]]
        keys.append(suffix * len(words) + places[0][table.word[keep]])
    return BackoffTables(words, keys, logs, weights)


def estimate(counts, options):
    """(`BackoffTables`, `JointMixture` or None, dict of what was estimated).

    Args:
        counts: `NGramCounts`.
        options: `Options`.
    """
    if not isinstance(counts, NGramCounts):
        raise ValueError(f"`counts` must be NGramCounts. Received: {type(counts).__name__}")
    prune, limits, weights = options.for_order(counts.order)
    details = {"prune": prune}
    if options.smoothing == "jelinek_mercer" and weights is None:
        return _estimated_weights(counts, prune, options)
    if options.smoothing == "kneser_ney":
        *made, discounts = kneser_ney(
            counts,
            prune,
            options.discount_fallback,
            options.interpolate_unigrams,
            options.vocabulary_pad,
        )
        details["discounts"] = [[float(value) for value in row] for row in discounts]
    elif options.smoothing == "mle":
        made = estimators.maximum_likelihood(counts, prune)
    elif options.smoothing == "add_k":
        made = estimators.add_k(counts, prune, options.k)
        details["k"] = float(options.k)
    elif options.smoothing == "katz":
        made = estimators.katz(counts, prune, limits)
        details["katz_limit"] = limits
    else:
        nested = jelinek_mercer.nested_weights(weights)
        made = jelinek_mercer.nested_table(
            counts, prune, lambda k, total: np.full(len(total), nested[k - 1])
        )
        details["weights"] = weights
    return tables_of(counts, *made), None, details


def _estimated_weights(counts, prune, options):
    """Jelinek-Mercer smoothing with weights from held-out text."""
    kept, *made = estimators.maximum_likelihood(counts, prune)
    tables = tables_of(counts, kept, *made)
    frequencies = [np.array([float(counts.tokens)])]
    for k in range(1, counts.order):
        frequencies.append(estimators.context_totals(counts, kept, k)[kept[k - 1]])
    columns, contexts, ngrams = held_out_positions(tables, options)
    if options.buckets == "nested":
        found = jelinek_mercer.estimate_nested(
            tables, frequencies, contexts, ngrams, options.iterations
        )
        made = jelinek_mercer.nested_table(
            counts, prune, lambda k, total: found[k - 1][jelinek_mercer.doubling_buckets(total)]
        )
        return tables_of(counts, *made), None, {"prune": prune, "weights": found.tolist()}
    buckets = jelinek_mercer.joint_buckets(frequencies[1:], counts.tokens, columns, contexts)
    buckets = np.broadcast_to(buckets, len(ngrams[0]))
    found = jelinek_mercer.estimate_joint(tables, buckets, contexts, ngrams, options.iterations)
    mixture = jelinek_mercer.JointMixture(found, frequencies[1:], counts.tokens)
    return tables, mixture, {"prune": prune, "weights": found.tolist()}


def held_out_positions(tables, options):
    """Columns and chains of all tokens of the held-out text."""
    files = checked_source(options.held_out_files, options.held_out)
    reader = Ids(WordIds(tables.words[3:] or None), options.special_words)
    arrays = reader.of(blocks_of(files, options.held_out))
    batches = [positions(tables, ids) for ids in whole_sentences(arrays)]
    if not batches:
        raise ValueError("The held-out text must hold at least one sentence. Received: none")
    return [
        [np.concatenate(parts) for parts in zip(*(batch[place] for batch in batches), strict=True)]
        for place in range(3)
    ]
