"""fastText: vectors of words as sums of the vectors of their n-grams."""

import keras
from keras import ops

from kctx.arguments import check_choice, check_count
from kctx.kernels.host_memory import arrays, in_memory, window_kernel
from kctx.layers.bags import add_to_bags, bag_sums
from kctx.layers.window_products import (
    ARCHITECTURES,
    LOSS_SHARE,
    OBJECTIVES,
    check_targets,
    window_step,
)
from kctx.models.sparse_model import SparseModel, check_rows

_OF_BATCH = {"features", "feature_words", "feature_scales", "word_sizes", "positions"}


@keras.saving.register_keras_serializable("kctx")
class FastText(SparseModel):
    """Skip-gram and continuous bag of words with subwords (Bojanowski et al. 2017).

    New against Word2Vec: a word's vector is the mean of a row of its own and of the rows of its
    character n-grams, which are hashed into buckets; so words that were never seen have vectors
    too. Trained in blocks as `Word2Vec`. As in the reference, the rows are averaged (the paper sums
    them), and each gets the whole gradient of the average. Departure: in skip-gram the input is the
    context word, which predicts the centre, as in the tool of Word2Vec; in the reference the
    centre's n-grams predict the context word. Windows reach as far to both sides, so each pair of
    words comes equally often either way round, and the expected step is the same.

    Args:
        vocabulary_size: V, int >= 2.
        buckets: int >= 0, rows for the hashed n-grams. Default 2,000,000.
        dim: D, int. Default 100.
        architecture: "skip_gram" (default) or "cbow".
        objective: "negative_sampling" (default) or "hierarchical_softmax".
        num_negatives: k, int, negatives of each pair. Default 5.
        seed: int, of the initial values.

    Weights: `input_table` (V + buckets, D), uniform in [-1, 1) / D at first; `output_table` (V, D),
    zeros at first (under hierarchical softmax its last row is not used).
    """

    def __init__(
        self,
        vocabulary_size,
        buckets=2_000_000,
        dim=100,
        architecture="skip_gram",
        objective="negative_sampling",
        num_negatives=5,
        seed=0,
        dtype=None,
        name="fasttext",
    ):
        super().__init__(dtype=dtype, name=name)
        check_count("vocabulary_size", vocabulary_size, least=2)
        check_count("buckets", buckets, least=0)
        check_count("dim", dim)
        check_count("num_negatives", num_negatives)
        check_choice("architecture", architecture, ARCHITECTURES)
        check_choice("objective", objective, OBJECTIVES)
        self.vocabulary_size, self.buckets, self.dim = vocabulary_size, buckets, dim
        self.architecture, self.objective = architecture, objective
        self.num_negatives, self.seed = num_negatives, seed

        # layers
        self.input_table = self.add_weight(
            shape=(vocabulary_size + buckets, dim),
            initializer=keras.initializers.RandomUniform(-1 / dim, 1 / dim, seed=seed),
            dtype="float32",
            name="input_table",
        )
        self.output_table = self.add_weight(
            shape=(vocabulary_size, dim), initializer="zeros", dtype="float32", name="output_table"
        )
        self._finish()
        self.kernel = window_kernel(architecture, num_negatives, LOSS_SHARE)

    def check_stream(self, stream):
        super().check_stream(stream)
        if stream.features is None:
            raise ValueError("The stream must have `features`, the rows of words. Received: none")
        rows = int(stream.features.rows.max(initial=-1)) + 1
        check_rows("buckets", self.buckets, rows - self.vocabulary_size)

    def update(self, batch):
        """One batch of `kctx.data.WindowStream` with features: its steps, one after the other.

        The vectors of the batch's words are made once; the steps change these, and at the end the
        change of each word is added to all its rows. So the rows, many for each word, are read and
        written once for a batch of thousands of words.
        """
        check_targets(self.objective, batch)
        if self.kernel is not None and self.kernel.takes(batch):
            return self._update_by_kernel(batch)
        features, owners = batch["features"], batch["feature_words"]
        sizes, positions = batch["word_sizes"], batch["positions"]
        places = ops.shape(sizes)[0]
        sums = bag_sums(self.input_table, features, owners, places)
        before = vectors = sums / ops.expand_dims(sizes, -1)  # (P, D)
        sizes = ops.cast(ops.take(sizes, positions, axis=0), self.compute_dtype)
        losses, counts = [], []
        for step in range(positions.shape[0]):
            inputs = ops.cast(ops.take(vectors, positions[step], axis=0), self.compute_dtype)
            gradients, loss, count = window_step(
                {name: batch[name][step] for name in batch if name not in _OF_BATCH},
                inputs,
                self.output_table,
                self.architecture,
                self.num_negatives,
                input_sizes=sizes[step],
            )
            rates = ops.expand_dims(batch["input_rates"][step], -1)
            changes = ops.reshape(ops.cast(gradients, "float32") * rates, (-1, self.dim))
            vectors = vectors + ops.segment_sum(
                changes, ops.reshape(positions[step], (-1,)), num_segments=places
            )
            losses.append(loss)
            counts.append(count)
        scales = batch["feature_scales"]
        add_to_bags(self.input_table, features, owners, vectors - before, scales)
        return sum(losses), sum(counts)

    def _update_by_kernel(self, batch):
        from kctx.kernels import bags

        batch = arrays(batch)
        table, output_table = (in_memory(x) for x in (self.input_table, self.output_table))
        features, sizes, positions = batch["features"], batch["word_sizes"], batch["positions"]
        offsets = bags.bag_offsets(batch["feature_words"], len(sizes))
        before = bags.bag_means(table, features, offsets, sizes)
        after = before.copy()
        loss, count = self.kernel.steps(batch, after, positions, output_table, sizes[positions])
        bags.add_to_bags(table, features, offsets, after, before, batch["feature_scales"])
        return ops.convert_to_tensor(loss, "float32"), ops.convert_to_tensor(count, "float32")

    def get_config(self):
        names = (
            "vocabulary_size buckets dim architecture objective num_negatives seed name"
        ).split()
        return {**{name: getattr(self, name) for name in names}, "dtype": self.dtype_policy}
