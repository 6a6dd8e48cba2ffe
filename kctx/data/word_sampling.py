"""Which words Word2Vec and fastText leave out, and which they draw as negatives."""

import numpy as np

_TABLE_SIZE = 1 << 22


def keep_probabilities(counts, num_tokens, sample):
    """Chance of each word to be kept, by the formula of the C tool (the paper's differs).

    sqrt(t/f) + t/f with f the word's share of all tokens, at most 1.

    Args:
        counts: int (V,).
        num_tokens: int, the whole that the share is of.
        sample: t, float >= 0; 0: all words are kept.

    Returns:
        float64 (V,).
    """
    counts = np.asarray(counts, np.float64)
    if not sample:
        return np.ones(len(counts))
    ratio = sample * num_tokens / np.maximum(counts, 1)
    return np.minimum(1.0, np.sqrt(ratio) + ratio)


def noise_probabilities(counts, exponent):
    """Distribution of the negatives: counts to a power, 0.75 in Word2Vec, 0.5 in fastText.

    Raises:
        ValueError: counts below 0, or none above it; powers that are not finite.
    """
    counts = np.asarray(counts, np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        powers = counts**exponent
        total = powers.sum()
    if not (total > 0 and np.isfinite(total) and counts.min() >= 0):
        raise ValueError(
            "`counts` must not be negative nor all 0, and their powers finite. "
            f"Received: counts={counts[:5].tolist()}.., exponent={exponent}"
        )
    return powers / total


class NoiseTable:
    """Draws word ids from a distribution by looking into a table, as the C tool does.

    A table of 4 million places, or 8 for each word if that is more: a word's share is right to one
    place, and every word with a chance has at least the place that rounding leaves it.

    Args:
        probabilities: float (V,), summing to 1.
    """

    def __init__(self, probabilities):
        size = max(_TABLE_SIZE, 8 * len(probabilities))
        bounds = np.rint(np.cumsum(probabilities) * size).astype(np.int64)
        # A rare word keeps one place, so that its row is trained as well.
        repeats = np.maximum(np.diff(bounds, prepend=0), (np.asarray(probabilities) > 0))
        self.table = np.repeat(np.arange(len(probabilities), dtype=np.int32), repeats)

    def draw(self, generator, shape):
        """int32 ids of the given shape."""
        return self.table[generator.integers(0, len(self.table), shape, np.int64)]
