"""Batches of labelled lines for fastText's classifier, resumable at any of them."""

import hashlib
import math

import numpy as np
import tensorflow as tf

from kctx import kernels
from kctx.arguments import check_choice, check_count, check_number
from kctx.data.ahead import ahead
from kctx.data.label_targets import OBJECTIVES, LabelTargets, within_runs
from kctx.data.step_stream import StepStream

_FILL = 256  # numbers of features are rounded up to it, so that few shapes are compiled


class LabelledStream(StepStream):
    """The training data of `FastTextClassifier`: every epoch in a new order.

    Args:
        lines: `LabelledLines`.
        label_counts: int64 (L,), how often each label occurs.
        objective: one of "softmax", "hierarchical_softmax", "negative_sampling", "one_vs_all".
        epochs: int. Default 5.
        learning_rate: of the first step; falls with each to 0 at the end of the last epoch.
            Default 0.1.
        num_negatives: k, int, for negative sampling. Default 5.
        step_lines: B, int, lines of a step. Default: 128, or fewer, so that an epoch has at least
            64 steps.
        steps: S, int, steps of a batch. Default: 64 where kernels train, see `kctx.kernels`, whose
            steps take less time than what `fit` does around each batch; else 8.
        seed: int.

    Attributes:
        steps_per_epoch, total_steps: int, batches of an epoch and of the whole run.
        words_per_batch: float, tokens of a batch.
    """

    def __init__(
        self,
        lines,
        label_counts,
        objective="softmax",
        epochs=5,
        learning_rate=0.1,
        num_negatives=5,
        step_lines=None,
        steps=None,
        seed=0,
    ):
        if step_lines is None:
            step_lines = max(1, min(128, len(lines) // 64))
        if steps is None:
            steps = 64 if objective in kernels.LABEL_OBJECTIVES and kernels.usable() else 8
        for name, value, least in (
            ("epochs", epochs, 1),
            ("step_lines", step_lines, 1),
            ("steps", steps, 1),
            ("num_negatives", num_negatives, 1),
            ("seed", seed, 0),
        ):
            check_count(name, value, least)
        check_choice("objective", objective, OBJECTIVES)
        check_number("learning_rate", learning_rate, above=0)
        if len(label_counts) < 2:
            raise ValueError(
                "`label_counts` must hold at least two labels. With one there is nothing to learn. "
                f"Received: {len(label_counts)}"
            )
        if not len(lines):
            raise ValueError(
                "`lines` must hold a line with a label and a known word. "
                f"Received: none, {lines.num_skipped} were left out"
            )
        self.num_labels = len(label_counts)
        if lines.label_ids.max() >= self.num_labels:
            raise ValueError(
                "`label_counts` must hold a count for each label of `lines`. "
                f"Received: {self.num_labels}, a label of number {lines.label_ids.max()}"
            )
        self.lines, self.objective = lines, objective
        self.epochs, self.learning_rate = epochs, learning_rate
        self.num_negatives, self.step_lines, self.steps = num_negatives, step_lines, steps
        self.seed = seed
        self.steps_per_epoch = math.ceil(len(lines) / (step_lines * steps))
        self.total_steps = self.steps_per_epoch * epochs
        self.words_per_batch = lines.num_tokens / self.steps_per_epoch
        lengths = np.diff(lines.offsets)
        # Mean over the lines of the share that each row has in their features.
        shares = np.bincount(lines.rows, np.repeat(1 / lengths, lengths)) / len(lines)
        self._shares = shares.astype(np.float32)
        # Nearly all steps have no more features than this, and so the same shape.
        usual = step_lines * lengths.mean() + 5 * math.sqrt(step_lines) * lengths.std()
        self._usual_features = int(usual)
        self._targets = LabelTargets(lines, label_counts, objective, num_negatives)

    def dataset(self, prefetch=8):
        """`tf.data.Dataset` of dicts, beginning where the stream was restored to.

        Each value has the steps S as its first axis: `features` and `feature_lines` int32 (S, E),
        rows and the lines they belong to, B where there are no more; `sizes` float32 (S, B),
        number of features; `rows`, `labels`, `weights` (S, B, R): what each line is scored
        against, int32 rows of the output table, their labels and whether they count; `rate`
        float32 (S,); `shares` float32 (S, E), the mean share of each row in the features of a
        line.
        """
        signature = {
            name: tf.TensorSpec((self.steps, *[None] * (value.ndim - 1)), value.dtype)
            for name, value in next(self._batches(0)).items()
        }
        return tf.data.Dataset.from_generator(
            lambda: self._batches(self.first_step), output_signature=signature
        ).prefetch(prefetch)

    def batches(self):
        """Yields what `dataset` does as `(dict of arrays,)`, without tf.data."""
        return ahead(((batch,) for batch in self._batches(self.first_step)), 2)

    def line_batches(self):
        """Yields the batches of `batches` for kernels: which lines, in place of copies of them.

        Each is `(dict of arrays,)`: `numbers` int64 (M,), the lines of the steps, one after the
        other; `bounds` int64 (S + 1,), where each step begins and the last one ends;
        `label_bounds` int64 (M, 2), first and last + 1 place in `label_ids` of each line's labels,
        of which all but one are left out where one is drawn; `rate` float32 (S,); and, always the
        same, `rows`, `offsets`, `label_ids` of `LabelledLines` and `row_shares` float32 (V,), the
        mean share of each row in the features of a line.

        Raises:
            ValueError: no kernel knows the objective.
        """
        check_choice("objective", self.objective, kernels.LABEL_OBJECTIVES)
        lines = self.lines
        for numbers, rates, draws in self._parts(self.first_step):
            sizes = [len(part) for part in np.array_split(numbers, self.steps)]
            batch = {
                "numbers": numbers,
                "bounds": np.concatenate([[0], np.cumsum(sizes)]),
                "label_bounds": self._targets.bounds(numbers, draws),
                "rate": rates,
                "rows": lines.rows,
                "offsets": lines.offsets,
                "label_ids": lines.label_ids,
                "row_shares": self._shares,
            }
            yield (batch,)

    def _batches(self, first):
        return (self._batch(*part) for part in self._parts(first))

    def _parts(self, first):
        """(lines, rate of each step, random generator) of each batch."""
        within_batch = np.arange(self.steps) / self.steps
        first_epoch, offset = divmod(first, self.steps_per_epoch)
        for epoch in range(first_epoch, self.epochs):
            order = np.random.default_rng([self.seed, epoch]).permutation(len(self.lines))
            # The lines are spread evenly, so that no batch is nearly empty.
            shares = np.array_split(order, self.steps_per_epoch)
            for within in range(offset, self.steps_per_epoch):
                draws = np.random.default_rng([self.seed, epoch, within])
                done = epoch * self.steps_per_epoch + within + within_batch
                rates = self.learning_rate * (1 - done / self.total_steps)
                yield shares[within], rates.astype(np.float32), draws
            offset = 0

    def _batch(self, numbers, rates, draws):
        steps = [self._step(part, draws) for part in np.array_split(numbers, self.steps)]
        most = max(self._usual_features, *(len(step["features"]) for step in steps))
        most = -(-most // _FILL) * _FILL
        for step in steps:
            missing = most - len(step["features"])
            step["features"] = np.pad(step["features"], (0, missing))
            step["feature_lines"] = np.pad(
                step["feature_lines"], (0, missing), constant_values=self.step_lines
            )
        batch = {name: np.stack([step[name] for step in steps]) for name in steps[0]}
        batch["shares"] = self._shares[batch["features"]]
        return {**batch, "rate": rates}

    def _step(self, numbers, draws):
        lines, size = self.lines, self.step_lines
        lengths = lines.offsets[numbers + 1] - lines.offsets[numbers]
        within = within_runs(lengths)
        sizes = np.ones(size, np.float32)
        sizes[: len(numbers)] = lengths
        rows, labels, weights = self._targets(numbers, draws)
        filled = ((0, size - len(numbers)), (0, 0))
        return {
            "features": lines.rows[np.repeat(lines.offsets[numbers], lengths) + within],
            "feature_lines": np.repeat(np.arange(len(numbers), dtype=np.int32), lengths),
            "sizes": sizes,
            "rows": np.pad(rows, filled),
            "labels": np.pad(labels, filled),
            "weights": np.pad(weights, filled),
        }

    def fingerprint(self):
        """What must be equal for the batches to be the same."""
        digest = hashlib.sha256(self.lines.rows.tobytes())
        digest.update(self.lines.label_ids.tobytes())
        settings = "objective epochs learning_rate num_negatives step_lines steps seed"
        return {
            "lines_sha256": digest.hexdigest(),
            **{name: getattr(self, name) for name in settings.split()},
        }
