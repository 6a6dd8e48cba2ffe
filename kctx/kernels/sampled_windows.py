"""Gradients of a block of text with negative sampling."""

import numba
import numpy as np

from kctx.kernels.compiling import compiled, parallel
from kctx.kernels.rows import (
    ONE,
    ZERO,
    add_products,
    add_rows,
    clear_row,
    copy_rows,
    gradients_of_scores,
    loss_of_scores,
    scores_of,
)
from kctx.kernels.window_words import add_to_window, centres_around, window_words


@compiled
def _equal_negatives(words, negatives, pairs):
    """Lists the (word, negative) of a block that are the same word; returns how many."""
    count = 0
    for t in range(len(words)):
        for k in range(len(negatives)):
            if negatives[k] == words[t]:
                pairs[count, 0] = t
                pairs[count, 1] = k
                count += 1
    return count


@compiled
def _sampled_targets(predicted, number, num_words, num_negatives, share, pairs, equal, targets):
    """Targets of negative sampling: the words to predict, and the block's negatives."""
    chosen, positive, total = targets
    for i in range(number):
        chosen[i] = predicted[i]
        positive[i] = ONE
        total[i] = ONE
    for k in range(num_negatives):
        chosen[number + k] = num_words + k
        positive[number + k] = ZERO
        total[number + k] = share * number
    for e in range(equal):
        for i in range(number):
            if predicted[i] == pairs[e, 0]:
                total[number + pairs[e, 1]] -= share
    return number + num_negatives


@compiled
def _gradients(
    begin,
    end,
    words,
    first,
    last,
    table,
    places,
    sizes,
    rows,
    negatives,
    output_table,
    share,
    options,
    input_gradients,
    output_gradients,
    losses,
):
    """First phase for blocks `begin` ... `end` - 1, see `kctx.kernels.windows`."""
    cbow, average, corrected, loss_every = options
    num_centres, num_negatives = first.shape[1], negatives.shape[1]
    num_inputs, width = places.shape[1], table.shape[1]
    num_rows = rows.shape[1]
    num_predicted = num_rows - num_negatives
    halo = (words.shape[1] - num_centres) // 2
    # What predicts: the means of windows, or the inputs themselves.
    num_vectors = num_centres if cbow else num_inputs
    from_centres = num_inputs == num_centres  # else they are all words, which are more
    inputs = np.empty((num_inputs, width), np.float32)
    outputs = np.empty((num_rows, width), np.float32)
    hidden = np.empty((num_centres if cbow else 0, width), np.float32)
    hidden_gradient = np.empty((1, width), np.float32)
    gradients = np.empty((num_rows, num_vectors), np.float32)  # of scores
    most = max(num_rows, words.shape[1])
    chosen, scores = np.empty(most, np.int64), np.empty(most, np.float32)
    positive, total = np.empty(most, np.float32), np.empty(most, np.float32)
    targets = (chosen, positive, total)
    window, weights = np.empty(most, np.int64), np.empty(most, np.float32)
    predicted = np.empty(most, np.int64)
    pairs = np.empty((num_predicted * num_negatives, 2), np.int64)
    for g in range(begin, end):
        copy_rows(table, places[g], inputs)
        copy_rows(output_table, rows[g], outputs)
        vectors = hidden if cbow else inputs
        equal = _equal_negatives(rows[g, :num_predicted], negatives[g], pairs)
        gradients[:] = ZERO
        of_inputs, of_outputs = input_gradients[g], output_gradients[g]
        of_inputs[:] = ZERO
        loss, number = 0.0, 0.0
        measured = g % loss_every == 0
        for v in range(num_vectors):
            size = number_predicted = 0
            if cbow:
                size = window_words(
                    first[g, v], last[g, v], v + halo, sizes, g, average, window, weights
                )
                if size:
                    clear_row(hidden, v)
                    add_products(weights, 0, window, size, inputs, hidden, v)
                    predicted[0] = v
                    number_predicted = 1
            elif from_centres:
                for h in range(first[g, v], last[g, v] + 1):
                    if h != v + halo:
                        predicted[number_predicted] = h
                        number_predicted += 1
            else:
                number_predicted = centres_around(first[g], last[g], v, halo, predicted)
            if number_predicted == 0:
                continue
            number += number_predicted
            count = _sampled_targets(
                *(predicted, number_predicted, num_predicted, num_negatives),
                *(share, pairs, equal, targets),
            )
            scores_of(vectors, v, outputs, chosen, count, scores, 0)
            if measured:
                loss += loss_of_scores(scores, positive, total, count)
            gradients_of_scores(scores, positive, total, count)
            for i in range(count):
                gradients[chosen[i], v] = scores[i]
            if cbow:
                clear_row(hidden_gradient, 0)
                add_products(scores, 0, chosen, count, outputs, hidden_gradient, 0)
                add_to_window(hidden_gradient, window, weights, size, corrected, of_inputs)
            else:
                add_products(scores, 0, chosen, count, outputs, of_inputs, v)
        for u in range(num_rows):
            count = 0
            for v in range(num_vectors):
                if gradients[u, v] != ZERO:
                    chosen[count] = v
                    scores[count] = gradients[u, v]
                    count += 1
            clear_row(of_outputs, u)
            add_products(scores, 0, chosen, count, vectors, of_outputs, u)
        if measured:
            losses[g, 0] += loss
            losses[g, 1] += number


@parallel
def sampled_steps(
    bounds,
    words,
    first,
    last,
    table,
    places,
    sizes,
    rows,
    negatives,
    output_table,
    input_rates,
    output_rates,
    share,
    options,
    input_gradients,
    output_gradients,
    losses,
):
    """Steps with negative sampling, see `kctx.kernels.windows`.

    Args:
        bounds: int64 (cores + 1,), the blocks that each core begins with.
        places: int32 (S, G, I), the vectors of the inputs: of all words of the blocks, or, in
            skip-gram, of the centres, which then predict the words of their windows.
        rows: int32 (S, G, U), the words of each block that are predicted (its centres, or all) and
            its negatives.
        share: float, how many draws each of the negatives stands for.
    """
    cores = len(bounds) - 1
    used_words = np.full(words.shape[1], places.shape[2])
    used_rows = np.full(words.shape[1], rows.shape[2])
    for s in range(len(words)):
        for core in numba.prange(cores):
            _gradients(
                bounds[core],
                bounds[core + 1],
                words[s],
                first[s],
                last[s],
                table,
                places[s],
                sizes[s],
                rows[s],
                negatives[s],
                output_table,
                share,
                options,
                input_gradients,
                output_gradients,
                losses,
            )
        for core in numba.prange(cores):
            add_rows(
                core, cores, output_table, rows[s], used_rows, output_gradients, output_rates[s]
            )
            add_rows(core, cores, table, places[s], used_words, input_gradients, input_rates[s])
