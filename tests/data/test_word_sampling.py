"""Which words are left out, and which are drawn as negatives."""

import numpy as np
import pytest

from kctx.data.word_sampling import NoiseTable, keep_probabilities, noise_probabilities

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("sample", "expected"), [(1e-3, [0.11, 0.416228, 1.0]), (1e-4, [0.0326228, 0.11, 0.416228])]
)
def test_keep_probabilities(sample, expected):
    """Of words with a share of 0.1, 0.01 and 0.001."""
    kept = keep_probabilities([1000, 100, 10], 10_000, sample)
    np.testing.assert_allclose(kept, expected, atol=5e-7)


def test_keep_all():
    assert keep_probabilities([5, 0], 5, 0).tolist() == [1, 1]
    assert np.isfinite(keep_probabilities([0, 3], 5, 1e-3)).all()


@pytest.mark.parametrize(
    ("exponent", "expected"),
    [
        (0.75, [0.438520, 0.288211, 0.171371, 0.101898]),
        (0.5, [0.374754, 0.283288, 0.200315, 0.141644]),
    ],
)
def test_noise(exponent, expected):
    noise = noise_probabilities([7, 4, 2, 1], exponent)
    np.testing.assert_allclose(noise, expected, atol=5e-7)
    table = NoiseTable(noise)
    shares = np.bincount(table.table, minlength=4) / len(table.table)
    np.testing.assert_allclose(shares, noise, atol=1e-6)
    drawn = table.draw(np.random.default_rng(0), (100, 1000))
    assert drawn.shape == (100, 1000) and drawn.dtype == np.int32
    np.testing.assert_allclose(np.bincount(drawn.ravel()) / 1e5, noise, atol=6e-3)


def test_every_word_can_be_drawn():
    counts = np.array([10**12, *[1] * 1000, 0])
    table = NoiseTable(noise_probabilities(counts, 0.75)).table
    assert set(table.tolist()) == set(range(1001))


@pytest.mark.parametrize("counts", [[0, 0], [-1, 2], []])
def test_counts_without_a_distribution(counts):
    with pytest.raises(ValueError, match="`counts` must not be negative nor all 0"):
        noise_probabilities(counts, 0.75)
    with pytest.raises(ValueError, match="exponent=nan"):
        noise_probabilities([1, 2], float("nan"))
