"""One vector for each word, in its context."""

import itertools

import keras
import numpy as np
from keras import ops

from kctx.arguments import check_choice
from kctx.heads import encoder_of
from kctx.preprocessors import ModelInput
from kctx.tasks.batches import functional
from kctx.tasks.embedding import last_four
from kctx.tasks.task import Task, as_python
from kctx.tasks.word_rows import (
    FIELDS,
    INPUTS,
    LONG_TEXTS,
    OPTIONS,
    check_options,
    of_words,
    word_rows,
    word_signature,
    word_tensor,
)

POOLINGS = ("mean", "first")
LAYERS = ("last", "last4_mean")


class WordEmbedding(Task):
    """Texts, or lists of words, to a vector for each word.

    Options:
        pooling: "mean" of a word's pieces, or the "first".
        layers: "last", or "last4_mean", the mean of the last four, see `last_four`.
        split, stride: as of `Tagging`.
    """

    name = "word_embedding"
    fields = FIELDS
    defaults = {"pooling": "mean", "layers": "last", **OPTIONS}
    output_axes = ("B", "W")
    long_texts = LONG_TEXTS

    def __init__(self, model, preprocessor, labels=None, **options):
        super().__init__(model, preprocessor, labels, **options)
        check_choice("pooling", self.pooling, POOLINGS)
        check_choice("layers", self.layers, LAYERS)
        check_options(self.split, self.stride)
        encoder = encoder_of(model)
        inputs = dict(encoder.input)
        starts = keras.Input((None,), dtype="int32", name="word_positions")
        ends = keras.Input((None,), dtype="int32", name="word_ends")
        mask = keras.Input((None,), dtype="bool", name="word_mask")
        vectors = _WordVectors(self.layers)(encoder(inputs), starts, ends)
        inputs |= {"word_positions": starts, "word_ends": ends, "word_mask": mask}
        self.model = functional(inputs, vectors, model, f"{encoder.name}_words")

    @property
    def inputs(self):
        ends = ModelInput("int32", 0, "the token behind each word", axes=("B", "W"))
        return {**super().inputs, **INPUTS, "word_ends": ends}

    def check(self, columns, first=0):
        return word_signature(columns[0], first)

    def tensors(self, columns):
        return [word_tensor(columns[0])]

    def prepare(self, signature, texts):
        windows, state = word_rows(self.preprocessor, signature, texts, self.split, self.stride)
        inputs = windows.inputs
        ends = windows.word_ends
        if self.pooling == "first":
            ends = inputs["word_positions"] + 1
        return {**inputs, "word_ends": ends}, state

    def answer(self, outputs, inputs, state):
        vectors = of_words(outputs["output"], inputs["word_mask"], state)
        return {"words": state["words"], "vectors": vectors}

    def rows(self, answer):
        """(words, vectors): list of str, and float32 (W, D), for each text."""
        splits = np.asarray(answer["words"].row_splits)
        vectors = np.asarray(answer["vectors"].values)
        parts = [vectors[start:end] for start, end in itertools.pairwise(splits)]
        return list(zip(as_python(answer["words"]), parts, strict=True))


class _WordVectors(keras.layers.Layer):
    """The mean of the vectors of tokens `starts` to `ends` - 1: float32 (B, W, D)."""

    def __init__(self, layers):
        super().__init__(dtype="float32")
        self.layers = layers

    def call(self, encoded, starts, ends):
        x = encoded["sequence_output"]  # (B, T, D)
        if self.layers == "last4_mean":
            last = last_four(encoded["hidden_states"])
            x = sum(last) / len(last)
        places = ops.arange(ops.shape(x)[1], dtype="int32")[None, None]  # (1, 1, T)
        starts, ends = ops.expand_dims(starts, -1), ops.expand_dims(ends, -1)  # (B, W, 1)
        inside = ops.cast(ops.logical_and(places >= starts, places < ends), "float32")
        count = ops.maximum(ops.sum(inside, axis=-1, keepdims=True), 1.0)
        return ops.matmul(inside / count, ops.cast(x, "float32"))  # (B, W, D)
