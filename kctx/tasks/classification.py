"""One of several classes for each text, or pair of texts."""

import keras
import tensorflow as tf

from kctx.heads import head_of
from kctx.tasks.task import Task


class Classification(Task):
    """Logits (B, C) to `label` string (B,), `score` float32 (B,), `scores` float32 (B, C)."""

    name = "classification"
    defaults = {"pairs": False}  # whether the model was taught on pairs, and asks for them
    has_labels = True
    meanings = {
        "label": ("(B,)", "name of the most probable class"),
        "score": ("(B,)", "its probability"),
        "scores": ("(B, C)", "probability of each class, in the order of `labels`"),
    }

    @classmethod
    def tells(cls, model):
        """Whether the head is a `Classifier`, or an output `next_sentence`, class 0 the real next.

        One class is always as probable as 1: such a head is a regressor.
        """
        head = head_of(model)
        if head is not None:
            return head.task == cls.name and head.num_classes > 1
        outputs = getattr(model, "output", None)
        return isinstance(outputs, dict) and "next_sentence" in outputs

    @classmethod
    def check_labels(cls, model, labels):
        """The labels, or "0", "1", ... where there are none."""
        num_classes = width_of_output(model, cls.name)
        return checked_labels(labels, num_classes, "class")

    def answer(self, outputs, inputs, state):
        scores = tf.nn.softmax(outputs["output"], axis=-1)
        best = tf.argmax(scores, axis=-1, output_type=tf.int32)  # (B,)
        return {
            "label": tf.gather(tf.constant(self.labels), best),
            "score": tf.reduce_max(scores, axis=-1),
            "scores": scores,
        }

    def rows(self, answer):
        return [
            {**row, "scores": dict(zip(self.labels, row["scores"], strict=True))}
            for row in super().rows(answer)
        ]


def width_of_output(model, task):
    """C of the only output (B, C) of a model.

    Raises:
        ValueError: it has none of that kind, or other outputs beside it.
    """
    outputs = keras.tree.flatten(model.output)
    if len(outputs) != 1 or len(outputs[0].shape) != 2:
        raise ValueError(
            f"`model` must have one output (B, C) for {task}. Received: {model.name} with outputs "
            f"of shapes {[output.shape for output in outputs]}"
        )
    return outputs[0].shape[-1]


def checked_labels(labels, count, kind):
    """Different strings, as many as there are outputs; "0", "1", ... for None.

    Raises:
        ValueError: they are not.
    """
    if isinstance(labels, str):
        raise ValueError(f"`labels` must be a list of strings. Received: {labels!r}")
    labels = [str(i) for i in range(count)] if labels is None else list(labels)
    if not all(isinstance(label, str) for label in labels) or len(set(labels)) < len(labels):
        raise ValueError(f"`labels` must be different strings. Received: {labels}")
    if len(labels) != count:
        raise ValueError(
            f"`labels` must be one for each {kind}: {count}. Received: {len(labels)}, {labels}"
        )
    return labels
