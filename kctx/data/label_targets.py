"""What lines are scored against by fastText's classifier."""

import numpy as np

from kctx.data.word_sampling import NoiseTable, noise_probabilities
from kctx.vectors.huffman import huffman_tree

OBJECTIVES = ("softmax", "hierarchical_softmax", "negative_sampling", "one_vs_all")


def within_runs(lengths):
    """0, 1, .. for each of several runs, one after the other."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)


class LabelTargets:
    """Targets of labelled lines.

    Args:
        lines: `LabelledLines`.
        label_counts, objective, num_negatives: as `LabelledStream`.
    """

    def __init__(self, lines, label_counts, objective, num_negatives):
        self.lines, self.num_labels, self.objective = lines, len(label_counts), objective
        self.num_negatives = num_negatives
        if objective == "hierarchical_softmax":
            self._tree = huffman_tree(label_counts)
        elif objective == "negative_sampling":
            self._noise = NoiseTable(noise_probabilities(label_counts, 0.5))

    def bounds(self, numbers, draws):
        """int64 (N, 2), the first and the last + 1 place in `lines.label_ids` of lines' labels.

        Of several labels one is drawn, unless each is decided by itself.
        """
        offsets = self.lines.label_offsets
        first, end = offsets[numbers], offsets[numbers + 1]
        if self.objective != "one_vs_all":
            first = first + (draws.random(len(numbers)) * (end - first)).astype(np.int64)
            end = first + 1
        return np.stack([first, end], axis=1)

    def __call__(self, numbers, draws):
        """(rows int32, labels float32, weights float32), each (N, R)."""
        first, end = self.bounds(numbers, draws).T
        label = self.lines.label_ids[first]
        every = np.tile(np.arange(self.num_labels, dtype=np.int32), (len(numbers), 1))
        if self.objective == "one_vs_all":
            counts = end - first
            labels = np.zeros((len(numbers), self.num_labels), np.float32)
            flat = self.lines.label_ids[np.repeat(first, counts) + within_runs(counts)]
            labels[np.repeat(np.arange(len(numbers)), counts), flat] = 1
            return every, labels, np.ones_like(labels)
        if self.objective == "softmax":
            labels = (every == label[:, None]).astype(np.float32)
            return every, labels, np.ones_like(labels)
        if self.objective == "hierarchical_softmax":
            points, codes = self._tree.points[label], self._tree.codes[label]
            weights = (points >= 0).astype(np.float32)
            return np.maximum(points, 0), np.maximum(codes, 0).astype(np.float32), weights
        negatives = self._noise.draw(draws, (len(numbers), self.num_negatives))
        # One that is the label is drawn again in the reference; so often that it hardly remains.
        for _ in range(20):
            same = negatives == label[:, None]
            if not same.any():
                break
            negatives[same] = self._noise.draw(draws, int(same.sum()))
        rows = np.concatenate([label[:, None], negatives], axis=1)
        labels = np.zeros(rows.shape, np.float32)
        labels[:, 0] = 1
        weights = np.ones_like(labels)
        weights[:, 1:] = negatives != label[:, None]
        return rows, labels, weights
