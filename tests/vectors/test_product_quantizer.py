"""Product quantisation: what it costs, and what it refuses."""

import numpy as np
import pytest

from kctx.vectors import ProductQuantizer, QuantizedTable
from kctx.vectors.product_quantizer import k_means

pytestmark = pytest.mark.once


def test_few_distinct_points_are_kept_exactly():
    points = np.repeat(np.arange(200, dtype="float32").reshape(100, 2), 5, axis=0)
    quantizer = ProductQuantizer.train(points)
    np.testing.assert_allclose(quantizer.decode(quantizer.encode(points)), points, atol=1e-3)


@pytest.mark.parametrize(("dim", "part_dim"), [(6, 2), (5, 2), (4, 4), (3, 1)])
@pytest.mark.parametrize("norms", [False, True])
def test_error_is_small(dim, part_dim, norms):
    values = np.random.default_rng(0).normal(size=(2000, dim)).astype("float32")
    values *= np.random.default_rng(1).uniform(0.1, 5, size=(2000, 1)).astype("float32")
    table = QuantizedTable.from_rows(values, part_dim, norms)
    assert table.shape == (2000, dim) and table.codes.shape == (2000, -(-dim // part_dim))
    error = np.square(table.chunk(0, 2000) - values).sum() / np.square(values).sum()
    assert error < (0.12 if part_dim == 4 else 0.02)
    np.testing.assert_array_equal(table.rows(np.array([5, 3])), table.chunk(0, 2000)[[5, 3]])


def test_codes_are_the_nearest_centroids():
    values = np.random.default_rng(0).normal(size=(300, 4)).astype("float32")
    quantizer = ProductQuantizer.train(values)
    codes = quantizer.encode(values[:20])
    for part in range(2):
        gaps = values[:20, None, 2 * part : 2 * part + 2] - quantizer.centroids[part]
        assert codes[:, part].tolist() == np.square(gaps).sum(axis=2).argmin(axis=1).tolist()


def test_k_means_lowers_the_error():
    points = np.random.default_rng(0).normal(size=(5000, 2)).astype("float32")

    def error(iterations):
        centroids = k_means(points, iterations, np.random.default_rng(0))
        return np.square(points[:, None] - centroids).sum(axis=2).min(axis=1).mean()

    assert error(10) < 0.8 * error(0)


def test_a_row_of_zeros_stays_one():
    values = np.random.default_rng(0).normal(size=(400, 4)).astype("float32")
    values[7] = 0
    table = QuantizedTable.from_rows(values, norms=True)
    assert np.abs(table.rows(np.array([7]))).max() < 0.3


def test_wrong_rows():
    with pytest.raises(ValueError, match="at least 256 rows.*255"):
        ProductQuantizer.train(np.zeros((255, 2), "float32"))
    with pytest.raises(ValueError, match="Only finite numbers"):
        ProductQuantizer.train(np.full((256, 2), np.nan, "float32"))
