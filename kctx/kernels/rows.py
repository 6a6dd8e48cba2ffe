"""Inner loops of kernels: products of a vector with rows, sigmoids, sums into rows."""

import numpy as np

from kctx.kernels.compiling import compiled

# sigmoid(s) = 1/2 + s P(s^2) / Q(s^2) for |s| <= 16, fitted by reweighted least squares: at most
# 2.3e-7 off in float32. Loops of it run on vectors, which those of `exp` do not.
_LARGEST = np.float32(16)
_P0, _P1, _P2, _P3 = (
    np.float32(x)
    for x in (
        0.24999984053753255,
        0.00807102688906169,
        4.59192102655862e-05,
        4.4180625783338796e-08,
    )
)
_Q1, _Q2, _Q3, _Q4 = (
    np.float32(x)
    for x in (0.11561685446937899, 0.001485239661422863, 3.7035734805400576e-06, 9.46814890081e-10)
)
ONE, _HALF, ZERO = np.float32(1), np.float32(0.5), np.float32(0)


@compiled
def gradients_of_scores(scores, positive, total, count):
    """Turns scores into positive - total * sigmoid(score), in place."""
    for i in range(count):
        s = scores[i]
        s = _LARGEST if s > _LARGEST else s
        s = -_LARGEST if s < -_LARGEST else s
        y = s * s
        top = s * (_P0 + y * (_P1 + y * (_P2 + y * _P3)))
        bottom = ONE + y * (_Q1 + y * (_Q2 + y * (_Q3 + y * _Q4)))
        scores[i] = positive[i] - total[i] * (_HALF + top / bottom)


@compiled
def loss_of_scores(scores, positive, total, count):
    loss = 0.0
    for i in range(count):
        s = scores[i]
        loss += total[i] * (max(s, ZERO) + np.log1p(np.exp(-abs(s)))) - positive[i] * s
    return loss


# These take tables and places in them rather than rows: making a view of a row costs as much as
# adding one.


@compiled
def scores_of(vectors, v, rows, chosen, count, scores, start):
    """scores[start + i] = vectors[v] . rows[chosen[i]], four at a time: one waits for its sum."""
    width = vectors.shape[1]
    whole = count - count % 4
    for i in range(0, whole, 4):
        u0, u1, u2, u3 = chosen[i], chosen[i + 1], chosen[i + 2], chosen[i + 3]
        s0, s1, s2, s3 = ZERO, ZERO, ZERO, ZERO
        for d in range(width):
            s0 += vectors[v, d] * rows[u0, d]
            s1 += vectors[v, d] * rows[u1, d]
            s2 += vectors[v, d] * rows[u2, d]
            s3 += vectors[v, d] * rows[u3, d]
        i += start
        scores[i], scores[i + 1], scores[i + 2], scores[i + 3] = s0, s1, s2, s3
    for i in range(whole, count):
        u, s = chosen[i], ZERO
        for d in range(width):
            s += vectors[v, d] * rows[u, d]
        scores[start + i] = s


@compiled
def add_products(weights, start, chosen, count, rows, out, o):
    """out[o] += weights[start:] @ rows[chosen], four rows at a time: sums are read and written."""
    width = out.shape[1]
    whole = count - count % 4
    for i in range(0, whole, 4):
        u0, u1, u2, u3 = chosen[i], chosen[i + 1], chosen[i + 2], chosen[i + 3]
        k = start + i
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for d in range(width):
            out[o, d] += w0 * rows[u0, d] + w1 * rows[u1, d] + w2 * rows[u2, d] + w3 * rows[u3, d]
    for i in range(whole, count):
        u, w = chosen[i], weights[start + i]
        for d in range(width):
            out[o, d] += w * rows[u, d]


@compiled
def add_multiples(vectors, v, weights, start, chosen, count, out):
    """out[chosen[i]] += weights[start + i] * vectors[v], four rows at a time; all differ."""
    width = out.shape[1]
    whole = count - count % 4
    for i in range(0, whole, 4):
        u0, u1, u2, u3 = chosen[i], chosen[i + 1], chosen[i + 2], chosen[i + 3]
        k = start + i
        w0, w1, w2, w3 = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for d in range(width):
            x = vectors[v, d]
            out[u0, d] += w0 * x
            out[u1, d] += w1 * x
            out[u2, d] += w2 * x
            out[u3, d] += w3 * x
    for i in range(whole, count):
        u, w = chosen[i], weights[start + i]
        for d in range(width):
            out[u, d] += w * vectors[v, d]


@compiled
def clear_row(table, row):
    for d in range(table.shape[1]):
        table[row, d] = ZERO


@compiled
def copy_rows(table, ids, out):
    for i in range(len(ids)):
        row = ids[i]
        for d in range(table.shape[1]):
            out[i, d] = table[row, d]


@compiled
def owner(row, cores):
    """The core that changes a row of a table, without a division.

    Rows are spread by a multiplication: neighbours, frequent words among them, go to many cores.
    """
    return ((row * 633 & 1023) * cores) >> 10


@compiled
def add_rows(core, cores, table, ids, used, updates, rates):
    """table[ids] += rates * updates of the rows that a core owns, in order.

    Of the rows of each block the first `used` count.
    """
    for g in range(ids.shape[0]):
        for i in range(used[g]):
            row, rate = ids[g, i], rates[g, i]
            if owner(row, cores) == core and rate != ZERO:
                for d in range(table.shape[1]):
                    table[row, d] += rate * updates[g, i, d]
