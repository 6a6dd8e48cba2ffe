"""Word2Vec: vectors of words from the words around them."""

import keras
import numpy as np
from keras import ops

from kctx.arguments import check_choice, check_count
from kctx.kernels.host_memory import arrays, in_memory, window_kernel
from kctx.layers.sparse_rows import add_rows, read_rows
from kctx.layers.window_products import (
    ARCHITECTURES,
    LOSS_SHARE,
    OBJECTIVES,
    check_targets,
    input_words,
    predicted_words,
    window_step,
)
from kctx.models.sparse_model import SparseModel
from kctx.vectors import Vectors


@keras.saving.register_keras_serializable("kctx")
class Word2Vec(SparseModel):
    """Skip-gram and continuous bag of words (Mikolov et al. 2013a, b).

    New against the NNLM: no hidden layer and no softmax over all words; two tables, whose rows
    are scored against each other by inner products. Trained on blocks of text that share their
    negatives (HogBatch, Ji et al. 2016), see `kctx.layers.window_products`; with one centre and
    its own negatives a step is that of the original tool. Departures: updates of a step are made
    from the values before it, and negatives are shared by a block.

    Args:
        vocabulary_size: V, int >= 2.
        dim: D, int, width of a vector. Default 100.
        architecture: "skip_gram" (default) or "cbow".
        objective: "negative_sampling" (default) or "hierarchical_softmax".
        num_negatives: k, int, negatives of each pair. Default 5.
        cbow_average: whether CBOW averages the words of a window (default, as the tool), or sums
            them (as the paper).
        cbow_corrected: whether the gradient of that average is divided by the number of words
            (Irsoy et al. 2021), which the original leaves out. Default False.
        seed: int, of the initial values.

    Weights: `input_table` (V, D), the vectors, uniform in [-0.5, 0.5) / D at first;
    `output_table` (V, D), or (V - 1, D) for the nodes of the tree; zeros at first.

    Example, from a text to vectors:
        vocabulary = kctx.data.WordVocabulary.train("text.txt", min_count=5)
        corpus = kctx.data.IdCorpus.build(vocabulary, "text.txt")
        negatives = kctx.data.NegativeSampling(vocabulary.counts)
        stream = kctx.data.WindowStream(corpus, vocabulary.counts, negatives, epochs=5)
        model = kctx.models.Word2Vec(len(vocabulary), dim=100)
        model.fit(stream, epochs=5, steps_per_epoch=stream.steps_per_epoch)
        vectors = model.vectors(vocabulary)  # kctx.vectors.Vectors
        vectors.most_similar("king")
        vectors.save("vectors")
    """

    def __init__(
        self,
        vocabulary_size,
        dim=100,
        architecture="skip_gram",
        objective="negative_sampling",
        num_negatives=5,
        cbow_average=True,
        cbow_corrected=False,
        seed=0,
        dtype=None,
        name="word2vec",
    ):
        super().__init__(dtype=dtype, name=name)
        check_count("vocabulary_size", vocabulary_size, least=2)
        check_count("dim", dim)
        check_count("num_negatives", num_negatives)
        check_choice("architecture", architecture, ARCHITECTURES)
        check_choice("objective", objective, OBJECTIVES)
        self.vocabulary_size, self.dim = vocabulary_size, dim
        self.architecture, self.objective = architecture, objective
        self.num_negatives, self.seed = num_negatives, seed
        self.cbow_average, self.cbow_corrected = cbow_average, cbow_corrected

        # layers
        half = 0.5 / dim
        self.input_table = self.add_weight(
            shape=(vocabulary_size, dim),
            initializer=keras.initializers.RandomUniform(-half, half, seed=seed),
            dtype="float32",
            name="input_table",
        )
        rows = vocabulary_size - (objective == "hierarchical_softmax")
        self.output_table = self.add_weight(
            shape=(rows, dim), initializer="zeros", dtype="float32", name="output_table"
        )
        self._finish()
        self.kernel = window_kernel(
            architecture, num_negatives, LOSS_SHARE, cbow_average, cbow_corrected
        )

    def update(self, batch):
        """One batch of `kctx.data.WindowStream`: its steps, one after the other."""
        check_targets(self.architecture, self.objective, batch)
        if self.kernel is not None and self.kernel.takes(batch):
            batch = arrays(batch)
            table, output_table = (in_memory(x) for x in (self.input_table, self.output_table))
            words = (input_words(batch), predicted_words(batch))
            loss, count = self.kernel.steps(batch, table, *words, output_table)
            return ops.convert_to_tensor(loss, "float32"), ops.convert_to_tensor(count, "float32")
        losses, counts = [], []
        for step in range(batch["words"].shape[0]):
            loss, count = self._update_step({name: value[step] for name, value in batch.items()})
            losses.append(loss)
            counts.append(count)
        return sum(losses), sum(counts)

    def _update_step(self, step):
        words = input_words(step)
        inputs = ops.cast(read_rows(self.input_table, words), self.compute_dtype)
        gradients, loss, number = window_step(
            step,
            inputs,
            self.output_table,
            self.architecture,
            self.num_negatives,
            self.cbow_average,
            self.cbow_corrected,
        )
        rates = ops.expand_dims(step["input_rates"], -1)
        add_rows(self.input_table, words, ops.cast(gradients, "float32") * rates)
        return loss, number

    def vectors(self, vocabulary):
        """The trained vectors, a copy.

        Args:
            vocabulary: `kctx.data.WordVocabulary` of V words.

        Returns:
            `kctx.vectors.Vectors`.

        Raises:
            ValueError: the vocabulary has another size.
        """
        if len(vocabulary) != self.vocabulary_size:
            raise ValueError(
                f"`vocabulary` must hold {self.vocabulary_size} words. Received: {len(vocabulary)}"
            )
        table = np.array(ops.convert_to_numpy(self.input_table))
        return Vectors(vocabulary.words, table, counts=vocabulary.counts)

    def get_config(self):
        names = (
            "vocabulary_size dim architecture objective num_negatives cbow_average "
            "cbow_corrected seed name"
        )
        return {**{name: getattr(self, name) for name in names.split()}, "dtype": self.dtype_policy}
