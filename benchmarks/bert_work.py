"""What every candidate of `bert.py` gets to do: sizes, batches, and the operations they need."""

import numpy as np

CEILING = (2048, 2048, 2048)  # the product whose rate is the ceiling
LENGTH, MASKED = 128, 20
SIZES = {  # layers, width; heads are 64 wide, feed-forward 4 times the width
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
VOCABULARY = 30522


def batch_for(cell, batch):
    """The inputs and labels of a cell as NumPy arrays, the same for every candidate."""
    rng = np.random.default_rng(7)
    rows = 4 * batch if cell == "ragged" else batch
    lengths = np.full(rows, LENGTH)
    if cell == "ragged":
        lengths = rng.permutation(np.linspace(8, LENGTH, rows).round().astype(int))
    mask = np.arange(LENGTH) < lengths[:, None]
    ids = np.where(mask, rng.integers(1000, VOCABULARY, (rows, LENGTH)), 0).astype("int32")
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": mask,
        "positions": random_positions(rng, rows),
        "masked_labels": rng.integers(1000, VOCABULARY, (rows, MASKED)).astype("int32"),
        "labels": rng.integers(0, 2, rows).astype("int32"),
    }


def random_positions(rng, rows):
    """MASKED different positions for each row, in order: int32 (rows, MASKED)."""
    positions = np.tile(np.arange(LENGTH, dtype="int32"), (rows, 1))
    return np.sort(rng.permuted(positions, axis=1)[:, :MASKED], axis=1)


def products_of(cell, size, batch):
    """Floating point operations in matrix products: what a cell's real tokens need."""
    layers, width = SIZES[size]
    lengths = [int(row.sum()) for row in batch_for(cell, batch)["padding_mask"]]
    rows, tokens = len(lengths), sum(lengths)
    dense = layers * 12 * width * width * tokens + rows * width * width
    attention = layers * 2 * width * sum(length * length for length in lengths)
    if cell == "pretraining":
        dense += rows * MASKED * width * (VOCABULARY + width)
    return 2 * (dense + attention) * (3 if cell in ("training", "pretraining") else 1)


def pretraining_batch(model, rows):
    rows = {**rows, "mask_positions": rows["positions"]}
    inputs = {key: rows[key] for key in model.input}
    labels = {"masked_lm": rows["masked_labels"], "next_sentence": rows["labels"]}
    weights = {key: np.ones(value.shape, "float32") for key, value in labels.items()}
    return inputs, labels, weights


def masked_text(batch, steps):
    """Batches of masked English words: ids by frequency, 15% masked, none of it random text."""
    import collections
    import re
    from pydoc_data import topics

    words = re.findall(r"\w+|[^\w\s]", " ".join(topics.topics.values()).lower())
    ranks = [word for word, _ in collections.Counter(words).most_common(VOCABULARY - 1000)]
    number = {word: 1000 + rank for rank, word in enumerate(ranks)}
    text = np.array([number[word] for word in words], dtype="int32")
    rng = np.random.default_rng(3)
    for _ in range(steps):
        starts = rng.integers(0, len(text) - 2 * LENGTH, batch)
        follows = rng.integers(0, 2, batch).astype("int32")  # 1: the second half is from elsewhere
        half = LENGTH // 2
        seconds = np.where(follows, rng.integers(0, len(text) - half, batch), starts + half)
        ids = text[
            np.concatenate(
                [starts[:, None] + np.arange(half), seconds[:, None] + np.arange(half)], axis=1
            )
        ]
        positions = random_positions(rng, batch)
        labels = np.take_along_axis(ids, positions, axis=1)
        np.put_along_axis(ids, positions, 103, axis=1)
        yield {
            "token_ids": ids,
            "segment_ids": np.broadcast_to((np.arange(LENGTH) >= half), ids.shape).astype("int32"),
            "positions": positions,
            "masked_labels": labels,
            "labels": follows,
        }
