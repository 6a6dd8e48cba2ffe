"""From a model's outputs to the named answers of an exported graph: one class per task.

An answer knows which inputs its model needs beyond those of the preprocessor (`prepare`), and how
outputs become a dict of tensors (`__call__`). The keys are words of the task, fixed and documented
in `MEANINGS`; they never depend on tensor names or on what else was built in the process.
"""

import keras
import tensorflow as tf

from kctx.layers import Pooling

# Task -> key of an output -> (shape, what it is), as printed in the files beside an export.
MEANINGS = {
    "classification": {
        "label": ("(B,)", "name of the most probable class"),
        "score": ("(B,)", "its probability"),
        "scores": ("(B, C)", "probability of each class, in the order of `labels`"),
    },
    "regression": {"score": ("(B,)", "the predicted number")},
    "embedding": {"embedding": ("(B, D)", "one vector for each text")},
    "masked_lm": {
        "tokens": ("(B, M, K)", "most probable vocabulary entries for each mask, best first"),
        "scores": ("(B, M, K)", "their probabilities"),
        "mask_count": ("(B,)", "masks in this text; tokens and scores beyond are '' and 0"),
    },
}


def single_output(outputs):
    """The only output of a model, whether it is bare or in a dict of one.

    Raises:
        ValueError: there are several.
    """
    flat = keras.tree.flatten(outputs)
    if len(flat) != 1:
        names = sorted(outputs) if isinstance(outputs, dict) else len(flat)
        raise ValueError(f"`model` must have exactly one output for this task. Received: {names}")
    return flat[0]


class Answer:
    """What classification, regression and embedding share: no further inputs are needed."""

    def prepare(self, inputs):
        return inputs


class Classification(Answer):
    """Logits (B, C) to `label` string (B,), `score` float32 (B,), `scores` float32 (B, C)."""

    def __init__(self, labels):
        self.labels = list(labels)

    def __call__(self, outputs, inputs):
        logits = tf.cast(single_output(outputs), tf.float32)  # (B, C)
        scores = tf.nn.softmax(logits, axis=-1)
        best = tf.argmax(scores, axis=-1, output_type=tf.int32)  # (B,)
        return {
            "label": tf.gather(tf.constant(self.labels), best),
            "score": tf.reduce_max(scores, axis=-1),
            "scores": scores,
        }


class Regression(Answer):
    """One number a text, (B, 1), to `score` float32 (B,)."""

    def __call__(self, outputs, inputs):
        return {"score": tf.cast(single_output(outputs), tf.float32)[:, 0]}


class Embedding(Answer):
    """Encoder outputs to `embedding` float32 (B, D).

    Args:
        pooling: "mean" and "max" over real tokens, "cls" (first vector) or "pooled" (the
            encoder's `pooled_output`).
    """

    def __init__(self, pooling):
        self.pooling = pooling

    def __call__(self, outputs, inputs):
        if self.pooling == "pooled":
            return {"embedding": tf.cast(outputs["pooled_output"], tf.float32)}
        vectors = tf.cast(outputs["sequence_output"], tf.float32)  # (B, T, D)
        return {"embedding": Pooling(self.pooling)(vectors, inputs["padding_mask"])}


class MaskedLM(Answer):
    """Fills each mask token: `tokens` string, `scores` float32 (B, M, K), `mask_count` int32 (B,).

    M is the greatest number of masks in a text of the batch.

    Logits beyond the vocabulary, of a model whose tables were rounded up, are left out.

    Args:
        vocabulary: list of str, V.
        mask_id: int, id of the mask token.
        top_k: int, K, at most V.
    """

    def __init__(self, vocabulary, mask_id, top_k):
        self.vocabulary = list(vocabulary)
        self.mask_id = mask_id
        self.top_k = top_k

    def _found(self, inputs):
        return (inputs["token_ids"] == self.mask_id) & inputs["padding_mask"]  # (B, T)

    def prepare(self, inputs):
        found = self._found(inputs)
        positions = tf.broadcast_to(tf.range(tf.shape(found)[1])[None, :], tf.shape(found))
        ragged = tf.ragged.boolean_mask(positions, found)
        return {**inputs, "mask_positions": ragged.to_tensor()}  # (B, M)

    def __call__(self, outputs, inputs):
        logits = outputs["masked_lm"][:, :, : len(self.vocabulary)]  # (B, M, V)
        logits = tf.cast(logits, tf.float32)
        scores, best = tf.math.top_k(tf.nn.softmax(logits, axis=-1), self.top_k)  # (B, M, K)
        count = tf.reduce_sum(tf.cast(self._found(inputs), tf.int32), axis=-1)  # (B,)
        real = tf.sequence_mask(count, tf.shape(logits)[1])[:, :, None]  # (B, M, 1)
        return {
            "tokens": tf.where(real, tf.gather(tf.constant(self.vocabulary), best), ""),
            "scores": tf.where(real, scores, 0.0),
            "mask_count": count,
        }
