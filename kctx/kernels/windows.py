"""The step of Word2Vec and fastText on blocks of text as loops, for CPUs.

`kctx.layers.window_products` computes the same as products of matrices, which suits accelerators
and needs nothing but Keras. On a CPU a loop over what the products hold anything for is several
times faster: of the pairs of a word and a target in a block only those within a window count, and
of the nodes of a Huffman tree that a block uses only those on the path of a predicted word.

A step has two phases. First every block computes its gradients from the rows before the step, on
all cores; then the gradients are added to the tables, each row by one core and in the order of the
blocks. So results depend neither on the number of cores nor on their timing.

Letters as in `kctx.layers.window_products`: G blocks, C centres, H words of a block with its halo,
I words that predict, U rows of the output table that a block uses, D width.
"""

import math

import numpy as np

from kctx.kernels.bags import add_to_bags, bag_means, distinct_words
from kctx.kernels.cores import LOCK, num_cores
from kctx.kernels.sampled_windows import sampled_steps
from kctx.kernels.tree_windows import tree_steps

_OF_STEP = ("words", "first", "last", "negatives", "input_rates", "output_rates")


class WindowKernel:
    """`kctx.layers.window_products.window_step` and what follows, for arrays in memory.

    Args:
        architecture: "skip_gram" or "cbow".
        num_negatives, cbow_average, cbow_corrected: as there.
        loss_every: int, the loss is measured on every so many blocks.
    """

    def __init__(self, architecture, num_negatives, cbow_average, cbow_corrected, loss_every):
        self.num_negatives = num_negatives
        self.options = (architecture == "cbow", cbow_average, cbow_corrected, loss_every)
        self._buffers = {}

    def _buffer(self, name, shape, dtype=np.float32, value=None):
        """An array that is kept, since fresh memory costs a page fault for every 4 kB of it."""
        size = math.prod(shape)
        held = self._buffers.get(name)
        if held is None or held.size < size:
            held = self._buffers[name] = np.empty(size, dtype)
            if value is not None:
                held[:] = value
        return held[:size].reshape(shape)

    @staticmethod
    def takes(batch):
        """Whether the targets of a batch are such as kernels know."""
        return "negatives" in batch or "points" in batch

    def steps(self, batch, table, places, predicted, output_table, sizes=None):
        """The steps of a batch, one after the other: changes both tables.

        Args:
            batch: dict of arrays, see `kctx.data.WindowStream`; S steps. With hierarchical softmax
                `points`, `codes`, `positive_bit`, `node_scales` and `node_rate` instead of
                `nodes`, `paths` and `output_rates`.
            table: float32 (N, D), the vectors that the inputs are among.
            places: int32 (S, G, I), the vectors of the words that predict.
            predicted: int32 (S, G, T), the words that are predicted.
            output_table: float32 (V, D).
            sizes: float32 (S, G, I), as `input_sizes` of `window_step`. Default: ones.

        Returns:
            (sum of losses, number of predictions) of the blocks on which they are measured.
        """
        words, first, width = batch["words"], batch["first"], table.shape[1]
        blocks = first.shape[1]
        if sizes is None:
            sizes = self._buffer("ones", places.shape, value=1)
        cores = num_cores()
        bounds = np.array([blocks * core // cores for core in range(cores + 1)])
        windows = (bounds, words, first, batch["last"], table, places, sizes)
        input_gradients = self._buffer("inputs", (*places.shape[1:], width))
        losses = np.zeros((blocks, 2))
        with LOCK:
            if "negatives" in batch:
                negatives = batch["negatives"]
                rows = np.concatenate([predicted, negatives], axis=2)
                sampled_steps(
                    *windows,
                    rows,
                    negatives,
                    output_table,
                    batch["input_rates"],
                    batch["output_rates"],
                    np.float32(self.num_negatives / negatives.shape[2]),
                    self.options,
                    input_gradients,
                    self._buffer("outputs", (*rows.shape[1:], width)),
                    losses,
                )
            else:
                points, scales = batch["points"], batch["node_scales"]
                most = min(predicted.shape[2] * points.shape[1], len(scales))
                tree_steps(
                    *windows,
                    (points, batch["codes"], int(batch["positive_bit"])),
                    output_table,
                    batch["input_rates"],
                    scales,
                    np.float32(batch["node_rate"]),
                    self.options,
                    self._buffer("numbers", (cores, len(scales)), np.int32, value=-1),
                    input_gradients,
                    self._buffer("outputs", (blocks, most, width)),
                    losses,
                )
        loss, number = losses.sum(axis=0)
        return loss, number

    def bag_steps(self, batch, table, inputs, predicted, output_table):
        """`steps` of words whose vectors are means of rows of a table, see `kctx.models.FastText`.

        Args:
            batch: as there, with `features`, `feature_offsets` and `feature_scales`.
            table: float32 (N, D), the rows.
            inputs: int32 (S, G, I), the words that predict.
            predicted, output_table: as there.

        Returns:
            float64 (2,), as `steps`.
        """
        rows, offsets = batch["features"], batch["feature_offsets"]
        sizes = np.diff(offsets).astype(np.float32)
        numbers = self._buffer("words", sizes.shape, np.int32, value=-1)
        total = np.zeros(2)
        for step in range(len(batch["words"])):
            one = {k: v[step : step + 1] if k in _OF_STEP else v for k, v in batch.items()}
            words, places = distinct_words(inputs[step], numbers)
            before = bag_means(table, rows, offsets, words)
            after = before.copy()
            total += self.steps(
                *(one, after, places[None], predicted[step : step + 1], output_table),
                sizes=sizes[words][places][None],
            )
            add_to_bags(table, rows, offsets, words, after, before, batch["feature_scales"])
        return total
