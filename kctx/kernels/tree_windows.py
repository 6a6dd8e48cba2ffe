"""Gradients of a block of text with hierarchical softmax."""

import numba
import numpy as np

from kctx.kernels.compiling import compiled, parallel
from kctx.kernels.rows import (
    ONE,
    ZERO,
    add_multiples,
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
def _path(tree, word, nodes, labels):
    """Lists the nodes on a word's path and their labels; returns how many there are."""
    points, codes, positive_bit = tree
    count = 0
    while count < points.shape[1] and points[word, count] >= 0:
        nodes[count] = points[word, count]
        labels[count] = ONE if codes[word, count] == positive_bit else ZERO
        count += 1
    return count


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
    tree,
    output_table,
    options,
    numbers,
    input_gradients,
    output_gradients,
    rows,
    used_rows,
    losses,
):
    """First phase for blocks `begin` ... `end` - 1, see `kctx.kernels.windows`.

    The inputs that predict a word and its path make a small dense product, with nothing to leave
    out: those of its window, or the centres in whose windows it lies. `rows` (G, U)
    gets the nodes of each block, `used_rows` (G,) how many they are; `numbers` (V - 1,) holds -1s
    and does so again in the end.
    """
    cbow, average, corrected, loss_every = options
    num_words, num_centres = words.shape[1], first.shape[1]
    num_inputs, width = places.shape[1], table.shape[1]
    longest = tree[0].shape[1]
    halo = (num_words - num_centres) // 2
    from_centres = num_inputs == num_centres
    num_predicted = num_words if from_centres else num_centres
    inputs = np.empty((num_inputs, width), np.float32)
    hidden = np.empty((1, width), np.float32)
    hidden_gradient = np.empty((1, width), np.float32)
    nodes, labels = np.empty(longest, np.int64), np.empty(longest, np.float32)
    slots = np.empty(longest, np.int64)
    window, weights = np.empty(num_words, np.int64), np.empty(num_words, np.float32)
    only = np.zeros(1, np.int64)
    most = longest * (2 * halo + 1)
    scores, positive = np.empty(most, np.float32), np.empty(most, np.float32)
    total = np.ones(most, np.float32)
    column = np.empty(num_words, np.float32)
    for g in range(begin, end):
        copy_rows(table, places[g], inputs)
        of_inputs, of_outputs = input_gradients[g], output_gradients[g]
        of_inputs[:] = ZERO
        used = 0
        loss, number = 0.0, 0.0
        measured = g % loss_every == 0
        for t in range(num_predicted):
            if from_centres:
                size, place = centres_around(first[g], last[g], t, halo, window), t
            else:
                place = t + halo
                size = window_words(
                    first[g, t], last[g, t], place, sizes, g, average, window, weights
                )
            if size == 0:
                continue
            word = words[g, place]
            length = _path(tree, word, nodes, labels)
            if cbow:
                clear_row(hidden, 0)
                add_products(weights, 0, window, size, inputs, hidden, 0)
                vectors, chosen, windows = hidden, only, 1
            else:
                vectors, chosen, windows = inputs, window, size
            number += windows
            for i in range(windows):
                start = i * length
                scores_of(vectors, chosen[i], output_table, nodes, length, scores, start)
                for j in range(length):
                    positive[start + j] = labels[j]
            if measured:
                loss += loss_of_scores(scores, positive, total, windows * length)
            gradients_of_scores(scores, positive, total, windows * length)
            for j in range(length):
                u = numbers[nodes[j]]
                if u < 0:
                    u = numbers[nodes[j]] = used
                    rows[g, u] = nodes[j]
                    clear_row(of_outputs, u)
                    used += 1
                slots[j] = u
            if cbow:
                add_multiples(hidden, 0, scores, 0, slots, length, of_outputs)
                clear_row(hidden_gradient, 0)
                add_products(scores, 0, nodes, length, output_table, hidden_gradient, 0)
                add_to_window(hidden_gradient, window, weights, size, corrected, of_inputs)
            else:
                for j in range(length):
                    for i in range(size):
                        column[i] = scores[i * length + j]
                    add_products(column, 0, window, size, inputs, of_outputs, slots[j])
                for i in range(size):
                    start = i * length
                    add_products(scores, start, nodes, length, output_table, of_inputs, window[i])
        for u in range(used):
            numbers[rows[g, u]] = -1
        used_rows[g] = used
        if measured:
            losses[g, 0] += loss
            losses[g, 1] += number


@parallel
def tree_steps(
    bounds,
    words,
    first,
    last,
    table,
    places,
    sizes,
    tree,
    output_table,
    input_rates,
    node_scales,
    node_rate,
    options,
    numbers,
    input_gradients,
    output_gradients,
    losses,
):
    """Steps with hierarchical softmax, see `kctx.kernels.windows`.

    Args:
        bounds: int64 (cores + 1,), the blocks that each core begins with.
        places: as `sampled_steps`.
        tree: (points int32 (V, L), codes int8 (V, L), the bit whose label is 1).
        node_scales: float32 (V - 1,), what the rate of each node is multiplied by.
        numbers: int32 (cores, V - 1), room of -1s.
        output_gradients: float32 (G, U, D), room for as many nodes as a block may have.
    """
    cores = len(bounds) - 1
    blocks, room = output_gradients.shape[:2]
    used_words = np.full(blocks, places.shape[2])
    used_rows = np.zeros(blocks, np.int64)
    rows, rates = np.empty((blocks, room), np.int32), np.empty((blocks, room), np.float32)
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
                tree,
                output_table,
                options,
                numbers[core],
                input_gradients,
                output_gradients,
                rows,
                used_rows,
                losses,
            )
            for g in range(bounds[core], bounds[core + 1]):
                for u in range(used_rows[g]):
                    rates[g, u] = node_rate * node_scales[rows[g, u]]
        for core in numba.prange(cores):
            add_rows(core, cores, output_table, rows, used_rows, output_gradients, rates)
            add_rows(core, cores, table, places[s], used_words, input_gradients, input_rates[s])
