"""Steps of fastText's classifier as loops, for CPUs.

The same as `kctx.models.FastTextClassifier` computes with products, for the objectives that score
all labels. A step has two phases: what its lines ask for, then the rows of both tables, each
changed by one core and in the order of the lines. So results depend on neither the number of cores
nor on their timing.
"""

import numba
import numpy as np

from kctx.kernels.compiling import compiled, parallel
from kctx.kernels.cores import LOCK, num_cores
from kctx.kernels.rows import ONE, ZERO, add_products, clear_row, owner, scores_of

# Numbers that a step reads and writes, below which one core is faster: starting several, twice a
# step, takes some 100 microseconds.
_LEAST_SHARED = 4_000_000


@compiled
def _gather(lines, begin, end, rows, offsets, places, features):
    """The rows of a step's lines, one after the other.

    Lines stand anywhere in memory. These short loops wait for many of them at once, those that
    add rows up would wait for one at a time.
    """
    for b in range(begin, end):
        first, place = offsets[lines[b]], places[b] - places[begin]
        for i in range(places[b + 1] - places[b]):
            features[place + i] = rows[first + i]


@compiled
def _probabilities(scores, wanted, softmax):
    """Turns a line's scores into probabilities, in place; returns the loss."""
    loss = 0.0
    if softmax:
        largest, whole = np.float32(-np.inf), ZERO
        for u in range(len(scores)):
            largest = max(largest, scores[u])
            loss -= wanted[u] * scores[u]
        for u in range(len(scores)):
            scores[u] = np.exp(scores[u] - largest)
            whole += scores[u]
        for u in range(len(scores)):
            scores[u] /= whole
        return loss + largest + np.log(whole)
    for u in range(len(scores)):
        score = scores[u]
        small = np.exp(-abs(score))
        loss += max(score, ZERO) + np.log(ONE + small) - wanted[u] * score
        scores[u] = (ONE if score >= ZERO else small) / (ONE + small)
    return loss


@compiled
def _lines(begin, end, start, step, table, outputs, lengths, rate, softmax, room):
    """First phase, of lines `begin` ... `end` - 1 of a step whose first line is number `start`."""
    places, label_ids, label_bounds = step
    features, hidden, back, gradients, curvatures, of_lines, losses = room
    number, width = outputs.shape
    every = np.arange(number)
    scores, wanted = np.empty(number, np.float32), np.zeros(number, np.float32)
    ones = np.ones(len(features), np.float32)
    for b in range(begin, end):
        first = places[start + b] - places[start]
        size = places[start + b + 1] - places[start + b]
        clear_row(hidden, b)
        add_products(ones, 0, features[first : first + size], size, table, hidden, b)
        square = ZERO
        for d in range(width):
            hidden[b, d] /= size
            square += hidden[b, d] * hidden[b, d]
        scores_of(hidden, b, outputs, every, number, scores, 0)
        for i in range(label_bounds[start + b, 0], label_bounds[start + b, 1]):
            wanted[label_ids[i]] = ONE
        losses[b] = _probabilities(scores, wanted, softmax)
        whole = ZERO
        for u in range(number):
            p = scores[u]
            curvature = p * (ONE - p) * rate
            gradients[b, u] = (wanted[u] - p) * rate
            curvatures[b, u] = curvature * square
            whole += curvature * lengths[u]
            scores[u] = gradients[b, u] / size
        of_lines[b] = whole
        clear_row(back, b)
        add_products(scores, 0, every, number, outputs, back, b)
        for i in range(label_bounds[start + b, 0], label_bounds[start + b, 1]):
            wanted[label_ids[i]] = ZERO


@compiled
def _length(outputs, u):
    length = ZERO
    for d in range(outputs.shape[1]):
        length += outputs[u, d] * outputs[u, d]
    return length


@compiled
def _rows(core, cores, start, end, places, table, outputs, lengths, row_shares, room):
    """Second phase: the rows of both tables that a core owns, in the order of the lines."""
    features, hidden, back, gradients, curvatures, of_lines, _ = room
    lines, width = end - start, table.shape[1]
    for u in range(core, outputs.shape[0], cores):
        damping = ZERO
        for b in range(lines):
            damping += curvatures[b, u]
        scale = ONE / max(damping, ONE)
        for b in range(lines):
            weight = scale * gradients[b, u]
            for d in range(width):
                outputs[u, d] += weight * hidden[b, d]
        lengths[u] = _length(outputs, u)
    curvature = ZERO
    for b in range(lines):
        curvature += of_lines[b]
    for b in range(lines):
        for i in range(places[start + b] - places[start], places[start + b + 1] - places[start]):
            row = features[i]
            if owner(row, cores) == core:
                scale = ONE / max(curvature * row_shares[row], ONE)
                for d in range(width):
                    table[row, d] += scale * back[b, d]


@parallel
def _steps(numbers, bounds, step, rows, offsets, row_shares, tables, rates, softmax, cores, room):
    table, outputs = tables
    lengths, total = np.empty(len(outputs), np.float32), 0.0
    for u in range(len(outputs)):
        lengths[u] = _length(outputs, u)
    for s in range(len(bounds) - 1):
        start, end, rate = bounds[s], bounds[s + 1], rates[s]
        lines, places = end - start, step[0]
        _gather(numbers, start, end, rows, offsets, places, room[0])
        if cores == 1:
            _lines(0, lines, start, step, table, outputs, lengths, rate, softmax, room)
            _rows(0, 1, start, end, places, table, outputs, lengths, row_shares, room)
        else:
            for core in numba.prange(cores):
                first, last = lines * core // cores, lines * (core + 1) // cores
                _lines(first, last, start, step, table, outputs, lengths, rate, softmax, room)
            for core in numba.prange(cores):
                _rows(core, cores, start, end, places, table, outputs, lengths, row_shares, room)
        for b in range(lines):
            total += room[6][b]
    return total


def classifier_steps(batch, table, outputs, softmax, cores=None):
    """The steps of a batch, one after the other: changes both tables.

    Args:
        batch: dict of arrays, see `kctx.data.LabelledStream.line_batches`.
        table: float32 (V, D).
        outputs: float32 (L, D).
        softmax: bool; False: a decision for each label.
        cores: int. Default: all, or one where steps are too small to share.

    Returns:
        (sum of losses, number of lines).
    """
    numbers, bounds, offsets = batch["numbers"], batch["bounds"], batch["offsets"]
    number, width = outputs.shape
    places = np.zeros(len(numbers) + 1, np.int64)
    np.cumsum(offsets[numbers + 1] - offsets[numbers], out=places[1:])
    lines, most = np.diff(bounds).max(), np.diff(places[bounds]).max()
    if cores is None:
        cores = num_cores() if (most + lines * number) * width > _LEAST_SHARED else 1
    room = (
        np.empty(most, np.int32),  # features
        *(np.empty((lines, width), np.float32) for _ in range(2)),  # hidden, back
        *(np.empty((lines, number), np.float32) for _ in range(2)),  # gradients, curvatures
        np.empty(lines, np.float32),  # curvature of each line
        np.empty(lines),  # losses
    )
    step = (places, batch["label_ids"], batch["label_bounds"])
    of_lines = (batch["rows"], offsets, batch["row_shares"])
    with LOCK:
        loss = _steps(
            *(numbers, bounds, step, *of_lines, (table, outputs), batch["rate"]),
            *(softmax, cores, room),
        )
    return loss, len(numbers)
