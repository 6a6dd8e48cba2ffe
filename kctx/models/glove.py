"""GloVe: word vectors whose products are the logarithms of co-occurrence counts."""

import math
import numbers

import keras
import numpy as np
from keras import ops

from kctx.arguments import check_count
from kctx.layers.sparse_rows import add_rows
from kctx.layers.table_rows import changed_rows, computes_on_cpu, host_array, take_rows
from kctx.models.glove_rows import Side, differences, update_rows, without_padding
from kctx.models.sparse_model import SparseModel
from kctx.vectors import Vectors

PARTS = ("sum", "word", "both")
_RAREST = 100  # words whose mean is the vector of unknown ones


@keras.saving.register_keras_serializable("kctx")
class GloVe(SparseModel):
    """Two tables of vectors with biases, trained by AdaGrad on the rows of a batch alone.

    Pennington, Socher and Manning, 2014, "GloVe: Global Vectors for Word Representation",
    equation 8; the cost is half the weighted squared error, as the C tool prints it. `fit` takes
    a `CooccurrenceStream`, which is endless: give `steps_per_epoch=stream.steps_per_epoch`. Its
    `loss` is the mean cost of the epoch's records.

    On a CPU the step is computed by NumPy and SciPy, else by Keras on the device.

    Args:
        vocabulary_size: int V.
        dim: int d, of the vectors. Default 100.
        x_max, alpha: a count x weighs min(1, (x / x_max) ** alpha). Defaults 100 and 0.75, the
            paper's.
        learning_rate: of the vectors. Default 0.05.
        bias_rate: learning rate of the biases. Default 1.0, as the C tool since 2019; before, they
            were learnt as the vectors.
        clip: float, largest component of the gradient of one record. Default 100.
        damping: float >= 0. A row's step in a batch is at most what would bring its records'
            differences to zero, divided by this; 0: without a bound. Default 2, since the other
            side of each record moves as well.
        on_cpu: whether to compute by NumPy and SciPy. Default: where Keras computes on a CPU.
        words: list of str (V), which errors name. Default: ids are named.
        seed: int or None, of the first values, uniform in [-0.5, 0.5) / d.

    Attributes:
        word_table, context_table: (V, d + 1) float32, the bias last.
        word_squares, context_squares: (V, d + 1), sums of squared steps.
    """

    def __init__(
        self,
        vocabulary_size,
        dim=100,
        x_max=100.0,
        alpha=0.75,
        learning_rate=0.05,
        bias_rate=1.0,
        clip=100.0,
        damping=2.0,
        on_cpu=None,
        words=None,
        seed=None,
        name="glove",
        **kwargs,
    ):
        super().__init__(name=name, **kwargs)
        check_count("vocabulary_size", vocabulary_size)
        check_count("dim", dim)
        for argument, value, least in (
            ("x_max", x_max, None),
            ("alpha", alpha, 0),
            ("learning_rate", learning_rate, None),
            ("bias_rate", bias_rate, 0),
            ("clip", clip, None),
            ("damping", damping, 0),
        ):
            is_number = isinstance(value, numbers.Real)
            if not is_number or not (value > 0 or value == least) or not math.isfinite(value):
                bound = "positive" if least is None else "zero or positive"
                raise ValueError(f"`{argument}` must be {bound}. Received: {argument}={value!r}")
        if words is not None and len(words) != vocabulary_size:
            raise ValueError(
                "`words` must hold `vocabulary_size` words. "
                f"Received: {len(words)} words, vocabulary_size={vocabulary_size}"
            )
        self.vocabulary_size, self.dim = vocabulary_size, dim
        self.x_max, self.alpha = float(x_max), float(alpha)
        self.learning_rate, self.bias_rate = float(learning_rate), float(bias_rate)
        self.clip, self.damping = float(clip), float(damping)
        self.words, self.seed = words, seed
        self.on_cpu = computes_on_cpu() if on_cpu is None else on_cpu
        shape = (vocabulary_size, dim + 1)
        seeds = (None, None) if seed is None else (seed, seed + 1)
        for side, side_seed in zip(("word", "context"), seeds, strict=True):
            uniform = keras.initializers.RandomUniform(-0.5 / dim, 0.5 / dim, seed=side_seed)
            table = self.add_weight(
                shape=shape, initializer=uniform, dtype="float32", name=f"{side}_table"
            )
            squares = self.add_weight(
                shape=shape,
                initializer="ones",
                dtype="float32",
                trainable=False,
                name=f"{side}_squares",
            )
            setattr(self, f"{side}_table", table)
            setattr(self, f"{side}_squares", squares)
        # The pair that made the first value that is not finite, ids from 1; 0 if there is none.
        self.bad_pair = self.add_weight(
            shape=(2,), initializer="zeros", dtype="int32", trainable=False, name="bad_pair"
        )
        self._finish()
        if self.on_cpu:
            self.compile(
                optimizer=keras.optimizers.SGD(self.learning_rate),
                run_eagerly=True,
                jit_compile=False,
            )

    def call(self, inputs):
        """The logarithm of the count that the model expects of pairs.

        Args:
            inputs: dict of int32 `word_ids` (N,) and `context_ids` (N,), from 0.

        Returns:
            float32 (N,).
        """
        word = ops.take(self.word_table, inputs["word_ids"], axis=0)
        context = ops.take(self.context_table, inputs["context_ids"], axis=0)
        products = ops.sum(word[:, :-1] * context[:, :-1], axis=1)
        return products + word[:, -1] + context[:, -1]

    def update(self, batch):
        return self._update_on_cpu(batch) if self.on_cpu else self._update_on_device(batch)

    def _update_on_cpu(self, batch):
        batch = without_padding({name: host_array(value) for name, value in batch.items()})
        ids = [batch["word_ids"], batch["context_ids"]]
        variables = [
            (self.word_table, self.word_squares),
            (self.context_table, self.context_squares),
        ]
        old = [take_rows(table, rows) for (table, _), rows in zip(variables, ids, strict=True)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sides = [Side.of(rows) for rows in old]
            difference = differences(*sides, batch)
            weights = self.alpha * (batch["log_values"] - np.float32(math.log(self.x_max)))
            weights = np.exp(np.minimum(weights, 0, out=weights), out=weights)
            errors = weights * difference
            cost = 0.5 * float(np.dot(errors, difference))
            if not math.isfinite(cost):
                raise self._stopped(batch, np.argmax(~np.isfinite(errors * difference)), cost)
            with changed_rows(variables, ids) as (tables, squares, places):
                bad = update_rows(
                    tables,
                    squares,
                    places,
                    sides,
                    batch,
                    errors,
                    weights,
                    (self.learning_rate, self.bias_rate),
                    self.clip,
                    self.damping,
                )
                if bad is not None:
                    side, row = bad
                    of_record = batch[("word_places", "context_places")[side]]
                    raise self._stopped(batch, np.argmax(of_record == row), cost)
        return cost, float(batch["num_records"])

    def _stopped(self, batch, record, cost):
        word = int(batch["word_ids"][batch["word_places"][record]])
        context = int(batch["context_ids"][batch["context_places"][record]])
        count = math.exp(batch["log_values"][record])
        return self.not_finite(word + 1, context + 1, f"cost={cost}, count={count:.6g}")

    def not_finite(self, word1, word2, what):
        """The error of a run whose values grew beyond all bounds; ids from 1."""
        pair = f"word1={word1}, word2={word2}"
        if self.words is not None:
            pair = f"{self.words[word1 - 1]!r} and {self.words[word2 - 1]!r} ({pair})"
        return FloatingPointError(
            "Training stopped at the first value that is not finite, which was not kept: at the "
            f"pair {pair}. Lower the learning rate. "
            f"Received: {what}, learning_rate={self.learning_rate}"
        )

    def _update_on_device(self, batch):
        """The same step by Keras, in graphs as well; see `glove_rows.update_rows`."""
        word = ops.take(self.word_table, batch["word_ids"], axis=0)  # (U, d + 1)
        context = ops.take(self.context_table, batch["context_ids"], axis=0)
        words = ops.take(word, batch["word_places"], axis=0)  # (N, d + 1)
        contexts = ops.take(context, batch["context_places"], axis=0)
        difference = ops.sum(words[:, :-1] * contexts[:, :-1], axis=1)
        difference = difference + words[:, -1] + contexts[:, -1] - batch["log_values"]
        weights = ops.exp(
            ops.minimum(self.alpha * (batch["log_values"] - math.log(self.x_max)), 0.0)
        )
        real = ops.arange(ops.shape(difference)[0], dtype="int32") < batch["num_records"]
        weights = ops.where(real, weights, 0.0)
        errors = weights * difference
        costs = 0.5 * errors * difference
        finite = ops.all(ops.isfinite(costs))
        sides = (
            (self.word_table, self.word_squares, batch["word_ids"], batch["word_places"]),
            (
                self.context_table,
                self.context_squares,
                batch["context_ids"],
                batch["context_places"],
            ),
        )
        changes = [
            self._changes(squares, ids, places, others, errors, weights)
            for (_, squares, ids, places), others in zip(sides, (contexts, words), strict=True)
        ]
        for steps, squares in changes:
            finite &= ops.all(ops.isfinite(steps)) & ops.all(ops.isfinite(squares))
        for (table, squares_table, ids, _), (steps, squares) in zip(sides, changes, strict=True):
            add_rows(table, ids, ops.where(finite, -steps, 0.0))
            add_rows(squares_table, ids, ops.where(finite, squares, 0.0))
        worst = ops.argmax(ops.where(ops.isfinite(costs), costs, math.inf))
        pair = ops.stack(
            [
                ops.take(batch["word_ids"], batch["word_places"][worst]),
                ops.take(batch["context_ids"], batch["context_places"][worst]),
            ]
        )
        self.bad_pair.assign(ops.where(finite, 0, ops.cast(pair, "int32") + 1))
        cost = ops.where(finite, ops.sum(costs), math.nan)
        return cost, ops.cast(batch["num_records"], "float32")

    def _changes(self, squares, ids, places, others, errors, weights):
        """Steps of the rows `ids`, and what their sums of squares grow by: two (U, d + 1)."""
        size = ids.shape[0] if ids.shape[0] is not None else ops.shape(ids)[0]
        vectors = ops.clip(errors[:, None] * others[:, :-1], -self.clip, self.clip)
        steps = ops.concatenate(
            [vectors * self.learning_rate, errors[:, None] * self.bias_rate], axis=1
        )
        summed = ops.segment_sum(steps, places, num_segments=size)
        square = ops.segment_sum(ops.square(steps), places, num_segments=size)
        lengths = ops.sum(ops.square(others[:, :-1]), axis=1)
        curvature = ops.stack(
            [weights * lengths * self.learning_rate, weights * self.bias_rate], axis=1
        )
        curvature = self.damping * ops.segment_sum(curvature, places, num_segments=size)
        bound = ops.concatenate(
            [ops.repeat(curvature[:, :1], self.dim, axis=1), curvature[:, 1:]], axis=1
        )
        denominator = ops.sqrt(ops.take(squares, ids, axis=0) + square)
        return summed / ops.maximum(denominator, bound), square

    def non_finite_error(self, loss):
        """The error names the pair of words; the tables hold finite values only."""
        word1, word2 = ops.convert_to_numpy(self.bad_pair).tolist()
        return self.not_finite(word1, word2, f"cost={loss}")

    def _stateless_step(self, state, batch):
        try:
            return super()._stateless_step(state, batch)
        except FloatingPointError:
            # JAX keeps the values apart from the variables during an epoch.
            groups = (
                self.trainable_variables,
                self.non_trainable_variables,
                self.optimizer.variables,
                self.metrics_variables,
            )
            for variables, values in zip(groups, state, strict=True):
                for variable, value in zip(variables, values, strict=True):
                    variable.assign(value)
            raise

    def parameters(self):
        """All trained numbers as the C tool lays them out: float64 (2V, d + 1)."""
        tables = [ops.convert_to_numpy(x) for x in (self.word_table, self.context_table)]
        return np.concatenate(tables).astype(np.float64)

    def set_parameters(self, parameters):
        """Sets what `parameters` gives.

        Raises:
            ValueError: the shape is another, or a value is not finite.
        """
        expected = (2 * self.vocabulary_size, self.dim + 1)
        if parameters.shape != expected or not np.isfinite(parameters).all():
            raise ValueError(
                f"`parameters` must be finite and have shape {expected}. "
                f"Received: shape {parameters.shape}, min {parameters.min()}"
            )
        self.word_table.assign(parameters[: self.vocabulary_size].astype("float32"))
        self.context_table.assign(parameters[self.vocabulary_size :].astype("float32"))

    def vectors(self, vocabulary, part="sum", unknown=False):
        """The trained vectors.

        Args:
            vocabulary: `WordVocabulary` of V words.
            part: "sum" of a word's two vectors, as published, "word" for the first alone, or
                "both", one behind the other (2d).
            unknown: whether to append `<unk>`, the mean of the 100 rarest words, as the C tool.

        Returns:
            `kctx.vectors.Vectors`.

        Raises:
            ValueError: `part` is unknown, the vocabulary has another size, or the word `<unk>`.
        """
        if part not in PARTS:
            raise ValueError(f"`part` must be one of {PARTS}. Received: part={part!r}")
        if len(vocabulary) != self.vocabulary_size:
            raise ValueError(
                f"`vocabulary` must hold {self.vocabulary_size} words. Received: {len(vocabulary)}"
            )
        word, context = (
            ops.convert_to_numpy(x)[:, :-1] for x in (self.word_table, self.context_table)
        )
        if part == "sum":
            table = word + context
        else:
            table = word if part == "word" else np.concatenate([word, context], axis=1)
        words, counts = list(vocabulary.words), vocabulary.counts
        if unknown:
            words.append("<unk>")
            counts = np.append(counts, 0)
            table = np.concatenate([table, table[-_RAREST:].mean(axis=0, keepdims=True)])
        return Vectors(words, np.ascontiguousarray(table), counts=counts)

    def get_config(self):
        return {
            "vocabulary_size": self.vocabulary_size,
            "dim": self.dim,
            "x_max": self.x_max,
            "alpha": self.alpha,
            "learning_rate": self.learning_rate,
            "bias_rate": self.bias_rate,
            "clip": self.clip,
            "damping": self.damping,
            "seed": self.seed,
            "name": self.name,
            "dtype": self.dtype_policy,
        }
