"""Losses and metrics of labels, with padding or without.

A loss is the mean over all labels, weighted where there are weights, and 0 where there are none.
But for `ClassCrossEntropy`, which refuses it, a label of -1 stands for padding: it counts in no
loss and in no metric.
"""

import keras
from keras import ops

from kctx.layers import best_tags, check_range


def int_labels(labels, limit=None):
    """Labels in int32, after a check: see `kctx.layers.check_range`.

    Args:
        labels: tensor or array.
        limit: int, or in a compiled graph an int tensor: labels are below it. Default: any are.

    Raises:
        ValueError: they are fractions, or not below `limit`.
    """
    found = keras.backend.standardize_dtype(labels.dtype)
    if "int" not in found and found != "bool":
        raise ValueError(f"Labels must be integers. Received: {found}")
    labels = ops.cast(labels, "int32")
    if limit is None:
        return labels
    # Those below 0 are padding. Checked apart, and joined again so that the loss waits for it.
    message = f"Labels must be below {limit if isinstance(limit, int) else 'the number of places'}."
    return ops.where(labels < 0, labels, check_range(ops.maximum(labels, 0), limit, message))


@keras.saving.register_keras_serializable("kctx")
class ClassCrossEntropy(keras.losses.SparseCategoricalCrossentropy):
    """Mean cross-entropy of logits (B, C) with int labels (B,) in [0, C)."""

    def __init__(self, from_logits=True, name="class_cross_entropy", **kwargs):
        kwargs = {"reduction": "mean_with_sample_weight", **kwargs}
        super().__init__(from_logits=from_logits, name=name, **kwargs)

    def check_labels(self, labels, logits):
        """int32 labels, after a check of what they must be."""
        count = logits.shape[-1]
        message = f"Labels must lie in [0, {count}), the classes."
        return check_range(int_labels(labels), count, message)

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(self.check_labels(y_true, y_pred), y_pred, sample_weight)


def real_weights(labels, sample_weight=None):
    """float32 weights in the shape of `labels`: 0 at padding, else the weight of row or label."""
    weights = ops.cast(labels >= 0, "float32")
    if sample_weight is None:
        return weights
    return weights * of_rows(sample_weight, weights)


def of_rows(sample_weight, values):
    """Sample weights of rows, (B,) or as Keras' own losses take them (B, 1), or of each of `values`
    (B, ...): float32, so shaped that they multiply `values`.

    Raises:
        ValueError: they have another shape.
    """
    sample_weight = ops.cast(sample_weight, "float32")
    shape, wanted = tuple(sample_weight.shape), tuple(values.shape)
    if len(shape) == len(wanted) and all(
        None in pair or pair[0] == pair[1] for pair in zip(shape, wanted, strict=True)
    ):
        return sample_weight
    if len(shape) not in (1, 2) or (len(shape) == 2 and shape[1] != 1):
        raise ValueError(
            "`sample_weight` must have one number for each row, or one for each label. "
            f"Received: shape {shape}, of labels {wanted}"
        )
    return ops.reshape(sample_weight, (-1, *[1] * (len(wanted) - 1)))


@keras.saving.register_keras_serializable("kctx")
class PaddedCrossEntropy(keras.losses.Loss):
    """Mean cross-entropy of logits with int labels, where -1 is padding.

    Args:
        class_axis: int, axis of the logits that the classes lie on. Default -1; 1 for logits (B, T,
            2) of `Span`, where labels (B, 2) are places among T.
    """

    def __init__(self, class_axis=-1, name="padded_cross_entropy", **kwargs):
        super().__init__(name=name, **{"reduction": "mean_with_sample_weight", **kwargs})
        self.class_axis = class_axis

    def __call__(self, y_true, y_pred, sample_weight=None):
        labels = int_labels(y_true, ops.shape(y_pred)[self.class_axis])
        return super().__call__(labels, y_pred, real_weights(labels, sample_weight))

    def check_labels(self, labels, logits):
        """Raises a `ValueError` on labels that cannot be, where shapes tell."""
        int_labels(labels, logits.shape[self.class_axis])

    def call(self, y_true, y_pred):
        labels = ops.maximum(ops.cast(y_true, "int32"), 0)
        logits = ops.moveaxis(y_pred, self.class_axis, -1)
        return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)

    def get_config(self):
        return {**super().get_config(), "class_axis": self.class_axis}


@keras.saving.register_keras_serializable("kctx")
class PaddedAccuracy(keras.metrics.Mean):
    """Share of the labels that are the class of the greatest logit, where -1 is padding.

    Args:
        class_axis: int, as of `PaddedCrossEntropy`.
        whole_rows: bool, whether a row counts once, as right if all of its labels are. Default
            False.
    """

    def __init__(self, class_axis=-1, whole_rows=False, name="accuracy", **kwargs):
        super().__init__(name=name, **kwargs)
        self.class_axis = class_axis
        self.whole_rows = whole_rows

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        right = ops.cast(ops.argmax(y_pred, axis=self.class_axis), "int32") == labels
        weights = real_weights(labels, sample_weight)
        if self.whole_rows:
            right = ops.all(right | (labels < 0), axis=-1)  # (B,)
            weights = ops.max(weights, axis=-1)
        super().update_state(ops.cast(right, "float32"), weights)

    def get_config(self):
        return {
            **super().get_config(),
            "class_axis": self.class_axis,
            "whole_rows": self.whole_rows,
        }


@keras.saving.register_keras_serializable("kctx")
class CRFLoss(keras.losses.Loss):
    """Negative log-likelihood of tag sequences under the CRF of a head, per real word.

    The sum over the sentences of a batch, divided by their words, so that its scale is that of
    cross-entropy. Labels int (B, W), -1 behind the last word; sample weights (B,).

    Args:
        head: `CRFTagger`, whose weights it computes with. It is no part of the configuration:
            `EncoderWithHead.compile_from_config` gives it to a loss that was saved with a model.
    """

    def __init__(self, head=None, name="crf_loss", **kwargs):
        super().__init__(name=name, **{"reduction": "mean_with_sample_weight", **kwargs})
        self.head = head

    def __call__(self, y_true, y_pred, sample_weight=None):
        labels = int_labels(y_true)
        words = ops.sum(real_weights(labels), axis=1)  # (B,)
        if sample_weight is not None:
            words = words * of_rows(sample_weight, words)
        return super().__call__(labels, y_pred, words)

    def check_labels(self, labels, logits):
        """Raises a `ValueError` on labels that are no tags."""
        int_labels(labels, logits.shape[-1])

    def call(self, y_true, y_pred):
        if self.head is None:
            raise ValueError(f"`{self.name}` belongs to a head: take it from `head.output_loss()`.")
        labels = ops.cast(y_true, "int32")
        mask = labels >= 0
        words = ops.sum(ops.cast(mask, "float32"), axis=1)  # (B,)
        likelihood = self.head.crf.log_likelihood(y_pred, labels, mask)  # (B,)
        return -likelihood / ops.maximum(words, 1.0)


@keras.saving.register_keras_serializable("kctx")
class TagAccuracy(keras.metrics.Mean):
    """Share of the words whose decoded tag is their label.

    Args:
        allowed: (C + 1, C + 1) bools of `kctx.layers.tag_transitions`, or None.
    """

    def __init__(self, allowed=None, name="accuracy", **kwargs):
        super().__init__(name=name, **kwargs)
        self.allowed = allowed

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        right = best_tags(y_pred, labels >= 0, self.allowed) == labels  # (B, W)
        super().update_state(ops.cast(right, "float32"), real_weights(labels, sample_weight))

    def get_config(self):
        return {**super().get_config(), "allowed": self.allowed}


@keras.saving.register_keras_serializable("kctx")
class AntecedentLoss(keras.losses.Loss):
    """Negative marginal log-likelihood of all right antecedents (Lee et al., 2017, section 4).

    Labels int (B, S), the cluster of each span: 0 = of none, -1 = padding. Right antecedents of a
    span are the earlier ones of its cluster, or none where there are none. Scores (B, S, S + 1), as
    of `MentionRanker`.
    """

    def __init__(self, name="antecedent_loss", **kwargs):
        super().__init__(name=name, **{"reduction": "mean_with_sample_weight", **kwargs})

    def __call__(self, y_true, y_pred, sample_weight=None):
        labels = int_labels(y_true)
        return super().__call__(labels, y_pred, real_weights(labels, sample_weight))

    def check_labels(self, labels, scores):
        """Raises a `ValueError` on labels that are no integers."""
        int_labels(labels)

    def call(self, y_true, y_pred):
        gold = gold_antecedents(ops.cast(y_true, "int32"))
        right = ops.logsumexp(ops.where(gold, y_pred, -1e9), axis=-1)  # (B, S)
        return ops.logsumexp(y_pred, axis=-1) - right


@keras.saving.register_keras_serializable("kctx")
class AntecedentAccuracy(keras.metrics.Mean):
    """Share of the spans whose best antecedent, or none, is right."""

    def __init__(self, name="accuracy", **kwargs):
        super().__init__(name=name, **kwargs)

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        best = ops.expand_dims(ops.argmax(y_pred, axis=-1), -1)  # (B, S, 1)
        gold = ops.cast(gold_antecedents(labels), "float32")
        right = ops.take_along_axis(gold, best, axis=-1)[..., 0]  # (B, S)
        super().update_state(right, real_weights(labels, sample_weight))


def gold_antecedents(clusters):
    """Clusters int (B, S) -> bool (B, S, S + 1): which antecedents are right; the first is none."""
    places = ops.arange(ops.shape(clusters)[1])
    earlier = places[None, :] < places[:, None]  # (S, S)
    same = ops.expand_dims(clusters, 2) == ops.expand_dims(clusters, 1)  # (B, S, S)
    same = same & earlier & (ops.expand_dims(clusters, 2) > 0)
    return ops.concatenate([~ops.any(same, axis=-1, keepdims=True), same], axis=-1)
