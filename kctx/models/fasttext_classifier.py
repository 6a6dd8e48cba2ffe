"""fastText's classifier: a text as the mean of the rows of its words and n-grams."""

import keras
from keras import ops

from kctx import kernels
from kctx.arguments import check_choice, check_count
from kctx.kernels.host_memory import arrays, in_memory, shared_tensors
from kctx.layers.bags import add_to_bags, bag_sums
from kctx.layers.sparse_rows import add_rows, read_rows
from kctx.models.sparse_model import SparseModel, check_rows

_OBJECTIVES = ("softmax", "hierarchical_softmax", "negative_sampling", "one_vs_all")


@keras.saving.register_keras_serializable("kctx")
class FastTextClassifier(SparseModel):
    """Bag of tricks for text classification (Joulin et al. 2017).

    The mean of the rows of a line's words, n-grams of characters and n-grams of words is scored
    against the rows of the labels. Trained by `fit` on a `kctx.data.LabelledStream`; a step of
    many lines is made from the values before it. At rates as the reference uses them, one line at
    a time, the sum of so many would overshoot: where rate times curvature of the lines together is
    above 1, a row's change is divided by it.

    Args:
        vocabulary_size: V, int >= 1.
        num_labels: L, int >= 1.
        buckets: int >= 0, rows for hashed n-grams. Default 0.
        dim: D, int. Default 100.
        objective: "softmax" (default), "hierarchical_softmax" over the labels' Huffman tree,
            "negative_sampling", or "one_vs_all" (a decision for each label, for lines with several
            labels).
        seed: int, of the initial values.

    Weights: `input_table` (V + buckets, D), uniform in [-1, 1) / D at first; `output_table` (L, D),
    zeros at first.
    """

    def __init__(
        self,
        vocabulary_size,
        num_labels,
        buckets=0,
        dim=100,
        objective="softmax",
        seed=0,
        dtype=None,
        name="fasttext_classifier",
    ):
        super().__init__(dtype=dtype, name=name)
        check_count("vocabulary_size", vocabulary_size)
        check_count("num_labels", num_labels)
        check_count("buckets", buckets, least=0)
        check_count("dim", dim)
        check_choice("objective", objective, _OBJECTIVES)
        self.vocabulary_size, self.num_labels, self.buckets = vocabulary_size, num_labels, buckets
        self.dim, self.objective, self.seed = dim, objective, seed

        # layers
        self.input_table = self.add_weight(
            shape=(vocabulary_size + buckets, dim),
            initializer=keras.initializers.RandomUniform(-1 / dim, 1 / dim, seed=seed),
            dtype="float32",
            name="input_table",
        )
        self.output_table = self.add_weight(
            shape=(num_labels, dim), initializer="zeros", dtype="float32", name="output_table"
        )
        self._finish()
        self.by_kernel = kernels.usable() and objective in kernels.LABEL_OBJECTIVES

    def check_stream(self, stream):
        rows = int(stream.lines.rows.max(initial=-1)) + 1
        check_rows("vocabulary_size + buckets", self.vocabulary_size + self.buckets, rows)
        check_rows("num_labels", self.num_labels, stream.num_labels)

    def batches_of(self, stream):
        if stream.objective != self.objective:
            raise ValueError(
                f"The stream must have the model's objective, {self.objective!r}. "
                f"Received: objective={stream.objective!r}"
            )
        if self.by_kernel:
            return shared_tensors(stream.line_batches())
        return super().batches_of(stream)

    def update(self, batch):
        """One batch of `kctx.data.LabelledStream`: its steps, one after the other.

        Args:
            batch: of its `batches`, or for kernels of its `line_batches`.
        """
        if "numbers" in batch:
            return self._update_by_kernel(batch)
        losses, counts = [], []
        for step in range(batch["sizes"].shape[0]):
            loss, count = self._update_step({name: value[step] for name, value in batch.items()})
            losses.append(loss)
            counts.append(count)
        return sum(losses), sum(counts)

    def _update_by_kernel(self, batch):
        from kctx.kernels.classifier import classifier_steps

        tables = (in_memory(x) for x in (self.input_table, self.output_table))
        loss, count = classifier_steps(arrays(batch), *tables, self.objective == "softmax")
        return ops.convert_to_tensor(loss, "float32"), ops.convert_to_tensor(count, "float32")

    def _update_step(self, step):
        lines, sizes = step["feature_lines"], ops.expand_dims(step["sizes"], -1)  # (B, 1)
        number = ops.shape(sizes)[0]
        hidden = bag_sums(self.input_table, step["features"], lines, number) / sizes  # (B, D)
        labels, weights, rate = step["labels"], step["weights"], step["rate"]  # (B, R), (B, R), ()
        whole = self.objective in ("softmax", "one_vs_all")
        if whole:
            outputs = ops.convert_to_tensor(self.output_table)  # (L, D)
            scores = ops.matmul(hidden, ops.transpose(outputs))
            lengths = ops.sum(ops.square(outputs), axis=-1)  # (L,)
        else:
            outputs = read_rows(self.output_table, step["rows"])  # (B, R, D)
            scores = ops.sum(outputs * ops.expand_dims(hidden, 1), axis=-1)
            lengths = ops.sum(ops.square(outputs), axis=-1)  # (B, R)
        if self.objective == "softmax":
            log_probabilities = ops.log_softmax(scores, axis=-1)
            losses, probabilities = -labels * log_probabilities, ops.exp(log_probabilities)
        else:
            losses = (ops.softplus(scores) - labels * scores) * weights
            probabilities = ops.sigmoid(scores)
        gradient = (labels - probabilities) * weights * rate
        # Second derivatives by the scores, times the rate.
        curvature = probabilities * (1 - probabilities) * weights * rate
        of_outputs = curvature * ops.sum(ops.square(hidden), axis=-1, keepdims=True)  # (B, R)
        if whole:
            back = ops.matmul(gradient, outputs)
            damping = ops.maximum(ops.sum(of_outputs, axis=0), 1.0)  # (L,)
            change = ops.matmul(ops.transpose(gradient), hidden)
            self.output_table.assign_add(change / ops.expand_dims(damping, -1))
        else:
            back = ops.sum(ops.expand_dims(gradient, -1) * outputs, axis=1)
            flat = ops.reshape(step["rows"], (-1,))
            sums = ops.segment_sum(ops.reshape(of_outputs, (-1,)), flat, self.num_labels)
            damped = gradient / ops.maximum(ops.take(sums, step["rows"], axis=0), 1.0)
            change = ops.expand_dims(damped, -1) * ops.expand_dims(hidden, 1)
            add_rows(self.output_table, step["rows"], change)
        of_inputs = ops.sum(curvature * lengths) * step["shares"]  # (E,)
        scales = 1.0 / ops.maximum(of_inputs, 1.0)
        add_to_bags(self.input_table, step["features"], lines, back / sizes, scales)
        real = ops.cast(ops.max(weights, axis=-1), "float32")
        return ops.sum(losses), ops.sum(real)

    def get_config(self):
        names = "vocabulary_size num_labels buckets dim objective seed name".split()
        return {**{name: getattr(self, name) for name in names}, "dtype": self.dtype_policy}
