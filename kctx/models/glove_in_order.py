"""GloVe trained on one record after the other, in float64: the reference for the fast way."""

import math

import numpy as np


def train_in_order(
    parameters,
    squares,
    records,
    x_max=100.0,
    alpha=0.75,
    learning_rate=0.05,
    clip=100.0,
    bias_rate=1.0,
):
    """One pass of AdaGrad over records, as the C tool does it with one thread.

    Pennington, Socher and Manning, 2014, equation 8, with half the square. Both sides of a record
    use old values; the denominators are those before the record; biases are not clipped.

    Args:
        parameters: float64 (2V, d + 1), changed in place: V rows of words, then V of contexts, the
            bias last.
        squares: float64 (2V, d + 1), changed in place: sums of squared steps, 1 at the beginning.
        records: array of (word1, word2, value), ids from 1.
        x_max, alpha: the weight of a record is min(1, (value / x_max) ** alpha).
        learning_rate: of vectors.
        clip: float, largest component of a vector's gradient.
        bias_rate: of biases; 1 as in the C tool since 2019, before that as `learning_rate`.

    Returns:
        float, the mean cost of a record at the moment it was seen.

    Raises:
        FloatingPointError: a value became infinite or NaN; names the record. Nothing of it is
            written.
    """
    size, total = len(parameters) // 2, 0.0
    for number, (word1, word2, value) in enumerate(records.tolist()):
        i, j = word1 - 1, size + word2 - 1
        w, c = parameters[i], parameters[j]
        with np.errstate(over="ignore", invalid="ignore"):
            difference = w[:-1] @ c[:-1] + w[-1] + c[-1] - math.log(value)
            weighted = min(1.0, (value / x_max) ** alpha) * difference
            cost = 0.5 * weighted * difference
            steps = []
            for other in (c, w):
                step = np.append(
                    np.clip(weighted * other[:-1], -clip, clip) * learning_rate,
                    weighted * bias_rate,
                )
                steps.append(step)
            new = [w - steps[0] / np.sqrt(squares[i]), c - steps[1] / np.sqrt(squares[j])]
        if not (math.isfinite(cost) and np.isfinite(new).all()):
            raise FloatingPointError(
                f"Training would give a value that is not finite at record {number}: "
                f"word1={word1}, word2={word2}, value={value}, cost={cost}"
            )
        total += cost
        parameters[i], parameters[j] = new
        squares[i] += steps[0] ** 2
        squares[j] += steps[1] ** 2
    return total / len(records)
