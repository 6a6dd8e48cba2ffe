"""A picture of words in the plane; needs the extra `plot`."""

import numpy as np

from kctx.evaluation.plots import new_figure, save
from kctx.vectors.neighbours import unit


def word_map(vectors, words, png_path, method="pca", seed=0):
    """Draws words so that similar ones lie close together.

    Args:
        vectors: `kctx.vectors.Vectors`.
        words: list of str, three at least; those without a vector are left out.
        png_path: where the picture goes.
        method: "pca", the two directions in which the unit vectors differ most; or "tsne", which
            keeps neighbours together (van der Maaten and Hinton, 2008). Default "pca".
        seed: int, of t-SNE. Default 0.

    Returns:
        dict of word to (x, y).

    Raises:
        ValueError: unknown method, or fewer than three words with a vector.
    """
    if method not in ("pca", "tsne"):
        raise ValueError(f"`method` must be 'pca' or 'tsne'. Received: {method!r}")
    known = [word for word in dict.fromkeys(words) if vectors.subwords or word in vectors]
    if len(known) < 3:
        raise ValueError(
            f"`words` must hold three words with a vector at least. Received: {len(known)}"
        )
    rows = unit(vectors.get(known))
    if method == "pca":
        centred = rows - rows.mean(axis=0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        places = left[:, :2] * sizes[:2]
        if places.shape[1] < 2:  # vectors of one number
            places = np.pad(places, ((0, 0), (0, 1)))
        # The sign of a direction is arbitrary: the largest number is made positive.
        places *= np.sign(places[np.abs(places).argmax(axis=0), [0, 1]] + 1e-30)
    else:
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(known) - 1) / 3)
        places = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(rows)
    size = min(16.0, 5 + 0.05 * len(known))
    figure = new_figure(size, size * 0.8)
    axes = figure.add_subplot()
    axes.scatter(places[:, 0], places[:, 1], s=8)
    for word, (x, y) in zip(known, places.tolist(), strict=True):
        shown = word.encode("utf-8", "replace").decode("utf-8")
        axes.annotate(shown, (x, y), (3, 2), textcoords="offset points", fontsize=7)
    axes.set_title(f"{len(known)} words, {'PCA' if method == 'pca' else 't-SNE'}")
    axes.set_xticks([])
    axes.set_yticks([])
    save(figure, png_path)
    return {word: tuple(place) for word, place in zip(known, places.tolist(), strict=True)}
