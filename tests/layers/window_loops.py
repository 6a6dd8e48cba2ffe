"""Steps of Word2Vec example after example in float64, to test the products of matrices by."""

import itertools

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def from_centres(step):
    """Whether the centre predicts the words of its window one by one, rather than these it."""
    return step["input_rates"].shape[1] == step["first"].shape[1]


def predicted_of(step):
    """(G, T), the words of the blocks that are predicted."""
    centres = step["first"].shape[1]
    halo = 0 if from_centres(step) else (step["words"].shape[1] - centres) // 2
    return step["words"][:, halo : step["words"].shape[1] - halo]


def rows_of(step):
    """(G, U), the rows of the output table that the blocks of a step use."""
    if "nodes" in step:
        return step["nodes"]
    return np.concatenate([predicted_of(step), step["negatives"]], axis=1)


def targets_of(step, block, place, num_negatives):
    """(place among the rows of the block, label, weight) of one predicted word."""
    if "paths" in step:
        row = step["paths"][block, place]
        return [(u, float(sign > 0), 1.0) for u, sign in enumerate(row) if sign]
    words, negatives = predicted_of(step)[block], step["negatives"][block]
    return [(place, 1.0, 1.0)] + [
        (len(words) + k, 0.0, num_negatives / len(negatives))
        for k, negative in enumerate(negatives)
        if negative != words[place]
    ]


def by_loops(step, inputs, outputs, architecture, num_negatives, average, corrected, sizes=None):
    """Gradients, losses and numbers of predictions of each block, example after example."""
    inputs, outputs = inputs.astype("float64"), outputs.astype("float64")
    sizes = np.ones(inputs.shape[:2]) if sizes is None else sizes
    by_inputs, by_outputs = np.zeros_like(inputs), np.zeros_like(outputs)
    blocks, centres = step["first"].shape
    halo = (step["words"].shape[1] - centres) // 2
    losses, numbers = np.zeros(blocks), np.zeros(blocks)
    for block, centre in itertools.product(range(blocks), range(centres)):
        first, last = step["first"][block, centre], step["last"][block, centre]
        context = [h for h in range(first, last + 1) if h != halo + centre]
        if from_centres(step):
            groups = [([centre], h) for h in context]
        elif architecture == "skip_gram":
            groups = [([h], centre) for h in context]
        else:
            groups = [(context, centre)] if context else []
        for group, place in groups:
            rows = inputs[block, group]
            if architecture == "skip_gram":
                shares = np.ones(1)
            else:
                shares = sizes[block, group]
                shares = shares / shares.sum() if average else shares
            hidden, error = shares @ rows, np.zeros(inputs.shape[2])
            for u, label, weight in targets_of(step, block, place, num_negatives):
                score = hidden @ outputs[block, u]
                gap = weight * (label - sigmoid(score))
                error += gap * outputs[block, u]
                by_outputs[block, u] += gap * hidden
                losses[block] -= weight * np.log(sigmoid(score if label else -score))
            back = shares if corrected or architecture == "skip_gram" else np.ones(len(group))
            by_inputs[block, group] += back[:, None] * error
            numbers[block] += 1
    return by_inputs, by_outputs, losses, numbers
