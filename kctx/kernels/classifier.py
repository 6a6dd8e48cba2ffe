"""Steps of fastText's classifier as loops, for CPUs.

The same as `kctx.models.FastTextClassifier` computes with products, for the objectives that score
all labels. As in `kctx.kernels.windows`, lines are shared out among the cores first, and then the
rows of the table, so results depend on neither their number nor their timing.
"""

import numba
import numpy as np

from kctx.kernels.compiling import compiled, parallel
from kctx.kernels.cores import LOCK, num_cores
from kctx.kernels.rows import ONE, ZERO


@compiled
def _lines(begin, end, table, features, offsets, sizes, outputs, labels, weights, softmax, made):
    """First phase, of lines `begin` ... `end` - 1; `made` is what it fills."""
    hidden, probabilities, losses = made
    width, number = table.shape[1], outputs.shape[0]
    for b in range(begin, end):
        for d in range(width):
            hidden[b, d] = ZERO
        for i in range(offsets[b], offsets[b + 1]):
            row = features[i]
            for d in range(width):
                hidden[b, d] += table[row, d]
        for d in range(width):
            hidden[b, d] /= sizes[b]
        largest, loss = np.float32(-np.inf), 0.0
        for u in range(number):
            score = ZERO
            for d in range(width):
                score += hidden[b, d] * outputs[u, d]
            probabilities[b, u] = score
            largest = max(largest, score)
        if softmax:
            whole = ZERO
            for u in range(number):
                whole += np.exp(probabilities[b, u] - largest)
            log_whole = largest + np.log(whole)
            for u in range(number):
                log_probability = probabilities[b, u] - log_whole
                loss -= labels[b, u] * log_probability
                probabilities[b, u] = np.exp(log_probability)
        else:
            for u in range(number):
                score = probabilities[b, u]
                small = np.exp(-abs(score))
                softplus = max(score, ZERO) + np.log(ONE + small)
                loss += (softplus - labels[b, u] * score) * weights[b, u]
                probabilities[b, u] = (ONE if score >= ZERO else small) / (ONE + small)
        losses[b] = loss


@compiled
def _outputs(outputs, labels, weights, rate, sizes, made, back):
    """Between the phases: changes the outputs; returns the curvature by a line's vector."""
    hidden, probabilities, _ = made
    lines, width = hidden.shape
    number = outputs.shape[0]
    lengths, damping = np.zeros(number, np.float32), np.zeros(number, np.float32)
    change = np.zeros((number, width), np.float32)
    for u in range(number):
        for d in range(width):
            lengths[u] += outputs[u, d] * outputs[u, d]
    whole = ZERO
    for b in range(lines):
        square = ZERO
        for d in range(width):
            square += hidden[b, d] * hidden[b, d]
            back[b, d] = ZERO
        for u in range(number):
            p, weight = probabilities[b, u], weights[b, u] * rate
            gradient, curvature = (labels[b, u] - p) * weight, p * (ONE - p) * weight
            damping[u] += curvature * square
            whole += curvature * lengths[u]
            if gradient != ZERO:
                for d in range(width):
                    back[b, d] += gradient * outputs[u, d]
                for d in range(width):
                    change[u, d] += gradient * hidden[b, d]
        for d in range(width):
            back[b, d] /= sizes[b]
    for u in range(number):
        scale = ONE / max(damping[u], ONE)
        for d in range(width):
            outputs[u, d] += scale * change[u, d]
    return whole


@compiled
def _rows(core, cores, table, features, offsets, back, shares, curvature):
    """Second phase: the rows that a core owns, in order."""
    for b in range(len(offsets) - 1):
        for i in range(offsets[b], offsets[b + 1]):
            row = features[i]
            if row % cores == core:
                scale = ONE / max(curvature * shares[i], ONE)
                for d in range(table.shape[1]):
                    table[row, d] += scale * back[b, d]


@parallel
def _steps(
    table, outputs, features, offsets, sizes, labels, weights, rates, shares, softmax, cores
):
    lines, width = sizes.shape[1], table.shape[1]
    hidden, back = np.empty((lines, width), np.float32), np.empty((lines, width), np.float32)
    probabilities = np.empty((lines, outputs.shape[0]), np.float32)
    losses, total = np.empty(lines), 0.0
    made = (hidden, probabilities, losses)
    for s in range(len(sizes)):
        for core in numba.prange(cores):
            begin, end = lines * core // cores, lines * (core + 1) // cores
            _lines(
                begin,
                end,
                table,
                features[s],
                offsets[s],
                sizes[s],
                outputs,
                labels[s],
                weights[s],
                softmax,
                made,
            )
        curvature = _outputs(outputs, labels[s], weights[s], rates[s], sizes[s], made, back)
        for core in numba.prange(cores):
            _rows(core, cores, table, features[s], offsets[s], back, shares[s], curvature)
        total += losses.sum()
    return total


def classifier_steps(batch, table, outputs, softmax):
    """The steps of a batch, one after the other: changes both tables.

    Args:
        batch: dict of arrays, see `kctx.data.LabelledStream`; S steps of B lines.
        table: float32 (V, D).
        outputs: float32 (L, D).
        softmax: bool; False: a decision for each label.

    Returns:
        (sum of losses, number of lines).
    """
    sizes, weights = batch["sizes"], batch["weights"]
    lines = np.arange(sizes.shape[1] + 1)
    offsets = np.stack([np.searchsorted(owners, lines) for owners in batch["feature_lines"]])
    with LOCK:
        loss = _steps(
            table,
            outputs,
            batch["features"],
            offsets,
            sizes,
            batch["labels"],
            np.broadcast_to(weights, batch["labels"].shape).copy(),
            batch["rate"],
            batch["shares"],
            softmax,
            num_cores(),
        )
    return loss, weights.max(axis=-1).sum()
