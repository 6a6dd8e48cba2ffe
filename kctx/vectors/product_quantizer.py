"""Product quantisation: a row as one byte for every few of its numbers.

Jegou et al., 2011; for word vectors Joulin et al., 2016 ("FastText.zip"), section 3: each part of
`part_dim` numbers is replaced by the nearest of 256 centroids found by k-means; with norms apart,
what is quantised has length 1, and the length is quantised by itself.
"""

import numpy as np

CENTROIDS = 256
_ITERATIONS, _MOST_POINTS, _SEED = 25, 65536, 1234
_ROWS_AT_ONCE, _NARROW = 1024, 4


class ProductQuantizer:
    """Centroids of each part of a row.

    Args:
        centroids: list with a (256, d) float32 array for each part; only the last part may be
            narrower than the others.
    """

    def __init__(self, centroids):
        self.centroids = [np.asarray(part, np.float32) for part in centroids]
        self.dim = sum(part.shape[1] for part in self.centroids)
        self.part_dim = self.centroids[0].shape[1]

    @classmethod
    def train(cls, values, part_dim=2, iterations=_ITERATIONS, seed=_SEED):
        """Finds the centroids by k-means.

        Args:
            values: (N, D) float32, N at least 256.
            part_dim: int, numbers in a part. Default 2.
            iterations: int, of k-means. Default 25.
            seed: int. Default 1234.

        Raises:
            ValueError: fewer than 256 rows, or numbers that are not finite.
        """
        if len(values) < CENTROIDS:
            raise ValueError(
                f"Quantisation needs at least {CENTROIDS} rows. Received: {len(values)}"
            )
        random = np.random.default_rng(seed)
        centroids = []
        for start in range(0, values.shape[1], part_dim):
            part = values[:, start : start + part_dim]
            if len(values) > _MOST_POINTS:
                part = part[random.choice(len(values), _MOST_POINTS, replace=False)]
            part = np.ascontiguousarray(part, np.float32)
            if not np.isfinite(part).all():
                raise ValueError("Only finite numbers can be quantised. Received: NaN or infinity")
            centroids.append(k_means(part, iterations, random))
        return cls(centroids)

    def encode(self, values):
        """Codes of rows: (N, D) float32 -> (N, parts) uint8."""
        codes = np.empty((len(values), len(self.centroids)), np.uint8)
        start = 0
        for index, centroids in enumerate(self.centroids):
            part = values[:, start : start + centroids.shape[1]]
            codes[:, index] = _nearest(np.ascontiguousarray(part, np.float32), centroids)[0]
            start += centroids.shape[1]
        return codes

    def decode(self, codes):
        """Rows from codes: (N, parts) uint8 -> (N, D) float32."""
        values = np.empty((len(codes), self.dim), np.float32)
        start = 0
        for index, centroids in enumerate(self.centroids):
            values[:, start : start + centroids.shape[1]] = centroids[codes[:, index]]
            start += centroids.shape[1]
        return values


class QuantizedTable:
    """Rows kept as codes; see `kctx.vectors.tables` for what a table offers.

    Args:
        quantizer: `ProductQuantizer` of the rows.
        codes: (V, parts) uint8.
        norm_quantizer: `ProductQuantizer` of the norms, dim 1; None if norms are not apart.
        norm_codes: (V,) uint8, or None.
    """

    storage = "quantized"

    def __init__(self, quantizer, codes, norm_quantizer=None, norm_codes=None):
        self.quantizer, self.codes = quantizer, codes
        self.norm_quantizer, self.norm_codes = norm_quantizer, norm_codes
        self.shape = (len(codes), quantizer.dim)

    @classmethod
    def from_rows(cls, values, part_dim=2, norms=False, seed=_SEED):
        """Quantises (V, D) float32 rows; with `norms`, their lengths apart."""
        values = np.array(values, np.float32)
        if not norms:
            quantizer = ProductQuantizer.train(values, part_dim, seed=seed)
            return cls(quantizer, quantizer.encode(values))
        lengths = np.sqrt(np.einsum("ij,ij->i", values, values))[:, None]
        values /= np.where(lengths > 0, lengths, 1)
        norm_quantizer = ProductQuantizer.train(lengths, 1, seed=seed)
        quantizer = ProductQuantizer.train(values, part_dim, seed=seed)
        norm_codes = norm_quantizer.encode(lengths)[:, 0]
        return cls(quantizer, quantizer.encode(values), norm_quantizer, norm_codes)

    def rows(self, ids):
        """(N, D) float32."""
        values = self.quantizer.decode(self.codes[ids])
        if self.norm_codes is not None:
            values *= self.norm_quantizer.decode(self.norm_codes[ids][:, None])
        return values

    def chunk(self, start, stop):
        """(stop - start, D) float32."""
        return self.rows(slice(start, stop))


def k_means(points, iterations, random):
    """Centroids of (N, d) points: (256, d) float32.

    Begins with 256 of the points. A centroid that is left without points goes to one that lies far
    from its own, the farther the likelier.
    """
    centroids = points[random.choice(len(points), CENTROIDS, replace=False)].copy()
    for _ in range(iterations):
        nearest, distances = _nearest(points, centroids)
        counts = np.bincount(nearest, minlength=CENTROIDS)
        for column in range(points.shape[1]):
            sums = np.bincount(nearest, points[:, column], CENTROIDS)
            centroids[:, column] = np.where(
                counts > 0, sums / np.maximum(counts, 1), centroids[:, column]
            )
        empty = np.flatnonzero(counts == 0)
        if len(empty) and distances.sum() > 0:
            enough = min(len(empty), int(np.count_nonzero(distances)))
            chosen = random.choice(
                len(points), enough, replace=False, p=distances / distances.sum()
            )
            centroids[empty[:enough]] = points[chosen]
    return centroids


def _nearest(points, centroids):
    """The nearest centroid of each point, and the squared distance to it (float64)."""
    squares = np.einsum("ij,ij->i", centroids, centroids)
    doubled = np.ascontiguousarray(-2 * centroids.T)
    nearest = np.empty(len(points), np.int64)
    for start in range(0, len(points), _ROWS_AT_ONCE):
        some = points[start : start + _ROWS_AT_ONCE]
        if len(doubled) > _NARROW:
            block = some @ doubled
        else:  # so few columns are faster one by one
            block = np.multiply.outer(some[:, 0], doubled[0])
            for column in range(1, len(doubled)):
                block += np.multiply.outer(some[:, column], doubled[column])
        block += squares
        nearest[start : start + len(some)] = block.argmin(axis=1)
    gaps = points - centroids[nearest]
    return nearest, np.einsum("ij,ij->i", gaps, gaps, dtype=np.float64)
