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
    input_words,
    predicted_words,
    window_step,
)
from kctx.models.sparse_model import SparseModel, check_rows


@keras.saving.register_keras_serializable("kctx")
class FastText(SparseModel):
    """Skip-gram and continuous bag of words with subwords (Bojanowski et al. 2017).

    New against Word2Vec: a word's vector is the mean of a row of its own and of the rows of its
    character n-grams, which are hashed into buckets; so words that were never seen have vectors
    too. Trained in blocks as `Word2Vec`. As in the reference, the rows are averaged (the paper sums
    them), and each gets the whole gradient of the average. In skip-gram the centre's n-grams best
    predict the words of its window (a stream of `predicted="context"`), as in the paper; a stream
    of `predicted="centres"` teaches the same pairs the other way round, as the tool of Word2Vec
    has them, and reads more rows.

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
        """One batch of `kctx.data.WindowStream` with features: its steps, one after the other."""
        check_targets(self.architecture, self.objective, batch)
        if self.kernel is not None and "feature_offsets" in batch:
            batch = arrays(batch)
            table, output_table = (in_memory(x) for x in (self.input_table, self.output_table))
            words = (input_words(batch), predicted_words(batch))
            loss, count = self.kernel.bag_steps(batch, table, *words, output_table)
            return ops.convert_to_tensor(loss, "float32"), ops.convert_to_tensor(count, "float32")
        if "feature_offsets" in batch:
            raise ValueError(
                "This model trains without a kernel: the stream must have by_kernel=False. "
                "Received: batches that hold the rows of all words"
            )
        losses, counts = [], []
        for step in range(batch["words"].shape[0]):
            loss, count = self._update_step({name: value[step] for name, value in batch.items()})
            losses.append(loss)
            counts.append(count)
        return sum(losses), sum(counts)

    def _update_step(self, step):
        """The vectors of the step's words are made once each, and the change of each word is added
        to all its rows, which are many: so they are read and written once for all of its windows.
        """
        features, owners, positions = step["features"], step["feature_words"], step["positions"]
        places = ops.shape(step["word_sizes"])[0]
        sizes = ops.expand_dims(step["word_sizes"], -1)
        vectors = bag_sums(self.input_table, features, owners, places) / sizes  # (P, D)
        gradients, loss, count = window_step(
            step,
            ops.cast(ops.take(vectors, positions, axis=0), self.compute_dtype),
            self.output_table,
            self.architecture,
            self.num_negatives,
            input_sizes=ops.cast(
                ops.take(step["word_sizes"], positions, axis=0), self.compute_dtype
            ),
        )
        rates = ops.expand_dims(step["input_rates"], -1)
        changes = ops.segment_sum(
            ops.reshape(ops.cast(gradients, "float32") * rates, (-1, self.dim)),
            ops.reshape(positions, (-1,)),
            num_segments=places,
        )
        add_to_bags(self.input_table, features, owners, changes, step["feature_scales"])
        return loss, count

    def get_config(self):
        names = (
            "vocabulary_size buckets dim architecture objective num_negatives seed name"
        ).split()
        return {**{name: getattr(self, name) for name in names}, "dtype": self.dtype_policy}
