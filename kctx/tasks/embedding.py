"""One vector for each text."""

import keras
from keras import ops

from kctx.heads import encoder_of
from kctx.layers import Pooling
from kctx.tasks.batches import functional
from kctx.tasks.task import Task, as_python

POOLINGS = ("mean", "cls", "max", "pooled", "last4_mean", "last4_concat")


class Embedding(Task):
    """A text to `embedding` float32 (B, D).

    Options:
        pooling: one of `POOLINGS`, see `EncoderPooling`. Default "mean".
    """

    name = "embedding"
    fields = {"text": Task.fields["text"]}
    defaults = {"pooling": "mean"}
    meanings = {"embedding": ("(B, D)", "one vector for each text")}

    def __init__(self, model, preprocessor, labels=None, **options):
        super().__init__(model, preprocessor, labels, **options)
        self.model = pooled_encoder(model, self.pooling)

    @classmethod
    def tells(cls, model):
        """Whether there is an output `sequence_output`."""
        outputs = getattr(model, "output", None)
        return isinstance(outputs, dict) and "sequence_output" in outputs

    @classmethod
    def check_labels(cls, model, labels):
        encoder_of(model)
        if labels is not None:
            super().check_labels(model, labels)

    def signatures(self):
        return {"serving_default": ("text",)}

    def answer(self, outputs, inputs, state):
        return {"embedding": outputs["output"]}

    def rows(self, answer):
        return [{"embedding": row} for row in as_python(answer["embedding"])]


class EncoderPooling(keras.layers.Layer):
    """Encoder outputs to one vector.

    Args:
        kind: "mean" and "max" over real tokens, "cls" (the first vector), "pooled" (the encoder's
            `pooled_output`), "last4_mean" and "last4_concat": the mean over real tokens of the mean
            or the concatenation of the last four layers' vectors (Devlin et al., 2018, section
            5.3), see `last_four`.

    Call arguments:
        encoded: dict of encoder outputs.
        padding_mask: bool (B, T), True = a real token.

    Returns:
        float32 (B, D), for "last4_concat" (B, 4 D), or less where there are fewer layers
    """

    def __init__(self, kind, **kwargs):
        super().__init__(dtype="float32", **kwargs)
        self.kind = kind
        last4 = kind.startswith("last4")
        if kind != "pooled":
            self.pool = Pooling("mean" if last4 else kind, dtype="float32")

    def call(self, encoded, padding_mask=None):
        if self.kind == "pooled":
            return encoded["pooled_output"]
        if not self.kind.startswith("last4"):
            return self.pool(encoded["sequence_output"], padding_mask)
        last = last_four(encoded["hidden_states"])
        if self.kind == "last4_concat":
            return self.pool(ops.concatenate(last, axis=-1), padding_mask)
        return self.pool(sum(last) / len(last), padding_mask)


def last_four(hidden_states):
    """The vectors of the last four layers, of all where there are fewer.

    The embeddings, with which the list begins, are no layer; they are taken where there is nothing
    else.
    """
    return (hidden_states[1:] or hidden_states)[-4:]


def pooled_encoder(model, pooling):
    """The encoder in a model as a model of its own that gives vectors: float32 (B, D).

    Raises:
        ValueError: unknown pooling; there is no encoder, or none with a `pooled_output`.
    """
    if pooling not in POOLINGS:
        raise ValueError(f"`pooling` must be one of {', '.join(POOLINGS)}. Received: {pooling}")
    encoder = encoder_of(model)
    inputs = dict(encoder.input)
    key = "pooled_output" if pooling == "pooled" else "sequence_output"
    if not isinstance(encoder.output, dict) or key not in encoder.output:
        raise ValueError(
            f"`model` must be an encoder with a `{key}` for embeddings. Received: {model.name}"
        )
    first = pooling in ("pooled", "cls") and getattr(encoder, "takes_positions", False)
    encoded = encoder(inputs, positions="cls") if first else encoder(inputs)
    vectors = EncoderPooling(pooling)(encoded, padding_mask=inputs.get("padding_mask"))
    return functional(inputs, vectors, model, f"{encoder.name}_{pooling}")
