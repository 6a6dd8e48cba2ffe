"""One tag for each word, and the entities that the tags mark."""

import keras
import tensorflow as tf
from keras import ops

from kctx.arguments import is_integer
from kctx.heads import head_of
from kctx.preprocessors import ModelInput
from kctx.tasks.batches import functional, run_rows, stacked
from kctx.tasks.classification import checked_labels
from kctx.tasks.entities import entities_of, marks_entities
from kctx.tasks.field import Field
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

DECODED_AT_ONCE = 64  # sentences


class Tagging(Task):
    """Texts, or lists of words, to tags: as many as there are words, however long the sentence.

    The tags of a sentence are decoded as a whole, after its windows were put together.

    Options:
        split: "words" or "characters", what is tagged in raw text, see `text_words`. With
            "characters", words that are given are joined without spaces.
        stride: int, most tokens from the start of one window to that of the next. Default: half a
            window.
    """

    name = "tagging"
    has_labels = True
    fields = FIELDS
    defaults = OPTIONS
    output_axes = ("B", "W")
    long_texts = LONG_TEXTS
    predicate_field = Field("predicates", "number of the predicate among the words", dtype="int32")
    meanings = {
        "words": ("(B, W)", 'the words, "" behind the last one'),
        "tags": ("(B, W)", "the tag of each"),
        "scores": ("(B, W)", "the probability of each tag"),
        "starts": ("(B, W)", "where each word begins in its text, in code points; -1 behind them"),
        "ends": ("(B, W)", "where it ends"),
        "word_count": ("(B,)", "words in this text"),
        "entities": ("(B, E)", 'the text of each entity, "" behind the last one'),
        "entity_labels": ("(B, E)", "its label"),
        "entity_starts": ("(B, E)", "where it begins in its text, in code points"),
        "entity_ends": ("(B, E)", "where it ends"),
        "entity_scores": ("(B, E)", "the mean probability of its tags"),
        "entity_count": ("(B,)", "entities in this text"),
    }

    id_meanings = {"tags": meanings["tags"], "scores": meanings["scores"]}

    def __init__(self, model, preprocessor, labels=None, **options):
        super().__init__(model, preprocessor, labels, **options)
        check_options(self.split, self.stride)
        self.head = head_of(model)
        self._decoder = None
        self.takes_predicates = "predicate_indicator" in model.input
        if self.takes_predicates:
            self.fields = {**self.fields, "predicate": self.predicate_field}

    @classmethod
    def check_labels(cls, model, labels):
        if not cls.tells(model):
            raise ValueError(f"`model` must have a head for {cls.name}. Received: {model.name}")
        return checked_labels(labels, model.output.shape[-1], "tag")

    @property
    def inputs(self):
        found = {**super().inputs, **INPUTS}
        if self.takes_predicates:
            indicator = ModelInput("int32", 0, "1 = the predicate", axes=("B", "W"))
            found["predicate_indicator"] = indicator
        return found

    def signatures(self):
        more = ("predicate",) if self.takes_predicates else ()
        return {"serving_default": ("text", *more), "words": ("words", *more)}

    def check(self, columns, first=0):
        texts, *more = columns
        for index, predicate in enumerate(more[0] if more else (), first):
            if not is_integer(predicate):
                raise TypeError(f"`predicates[{index}]` must be an int. Received: {predicate!r}")
            if not 0 <= predicate < 2**31:
                raise ValueError(
                    f"`predicates[{index}]` must be the number of a word. Received: {predicate}"
                )
        return word_signature(texts, first)

    def tensors(self, columns):
        texts, *more = columns
        return [word_tensor(texts), *(tf.constant(column, tf.int32) for column in more)]

    def prepare(self, signature, *columns):
        texts, *predicates = columns
        windows, state = word_rows(self.preprocessor, signature, texts, self.split, self.stride)
        inputs = windows.inputs
        if predicates:
            number = checked_predicates(predicates[0], state["words"].row_lengths())
            here = tf.gather(number, windows.sentence_index) - windows.word_starts  # (N,)
            column = tf.range(tf.shape(inputs["word_mask"])[1])[None]
            inputs["predicate_indicator"] = tf.cast(column == here[:, None], tf.int32)
        return inputs, state

    def answer(self, outputs, inputs, state, decode=None):
        """See `Task.answer`.

        Args:
            decode: function of logits and a mask to tags and scores, (B, W) each. Default: that of
                the head.
        """
        words = state["words"]
        logits = of_words(outputs["output"], inputs["word_mask"], state)  # (B, W, C), ragged
        logits = logits.to_tensor(shape=[None, None, len(self.labels)])
        # There must be a first step, in texts without words too.
        none = tf.maximum(1 - tf.shape(logits)[1], 0)
        logits = tf.pad(logits, [[0, 0], [0, none], [0, 0]])
        mask = tf.sequence_mask(words.row_lengths(), tf.shape(logits)[1])
        tags, scores = (decode or self.decode)(logits, mask)  # (B, W)
        tags, scores = (words.with_values(tf.boolean_mask(x, mask)) for x in (tags, scores))
        answer = {
            "words": words,
            "tags": tags.with_values(tf.gather(tf.constant(self.labels), tags.values)),
            "scores": scores,
            "starts": state["starts"],
            "ends": state["ends"],
            "word_count": tf.cast(words.row_lengths(), tf.int32),
            **self._entities(tags, scores, state),
        }
        padding = {"starts": -1, "ends": -1, "entity_starts": -1, "entity_ends": -1}
        return {
            key: value.to_tensor(padding.get(key)) if "count" not in key else value
            for key, value in answer.items()
        }

    def answer_ids(self, outputs, inputs):
        """The tags of each row, which is taken for a sentence of its own."""
        mask = inputs["word_mask"]
        tags, scores = self.decode(outputs["output"], mask)
        tags = tf.where(mask, tf.gather(tf.constant(self.labels), tags), "")
        return {"tags": tags, "scores": tf.where(mask, scores, 0.0)}

    def decode(self, logits, mask):
        """Tags and their probabilities, (B, W) each, of logits (B, W, C) and bool (B, W)."""
        tags = self.head.decode(logits, mask)
        probabilities = self.head.probabilities(logits, mask)
        scores = ops.take_along_axis(probabilities, ops.expand_dims(tags, -1), axis=-1)[..., 0]
        return tags, scores

    def answer_eagerly(self, outputs, inputs, state):

        def decode(logits, mask):
            if self._decoder is None:
                self._decoder = self._make_decoder()
            declared = {
                "logits": ModelInput("float32", 0, "", axes=("B", "W", "C")),
                "word_mask": ModelInput("bool", False, "", axes=("B", "W")),
            }
            asked = {"logits": logits, "word_mask": mask}
            longest = max(int(mask.shape[1]), 1)
            rows = run_rows(
                self._decoder, declared, asked, lambda x, _: x, DECODED_AT_ONCE, longest
            )
            if not rows:
                return tf.zeros_like(mask, tf.int32), tf.zeros_like(mask, tf.float32)
            made = stacked(rows, mask.shape[1:])
            return made["tags"], made["scores"]

        return self.answer(outputs, inputs, state, decode)

    def rows(self, answer):
        """Lists of words, tags, scores, and of entities, dicts of text, label, places, score."""
        columns = {key: as_python(value) for key, value in answer.items()}
        keys = {"text": "entities", "label": "entity_labels", "start": "entity_starts"}
        keys |= {"end": "entity_ends", "score": "entity_scores"}
        found = []
        for row in (
            dict(zip(columns, x, strict=True)) for x in zip(*columns.values(), strict=True)
        ):
            count = row["word_count"]
            parts = zip(*(row[key][: row["entity_count"]] for key in keys.values()), strict=True)
            found.append(
                {
                    **{key: row[key][:count] for key in ("words", "tags", "scores")},
                    "entities": [dict(zip(keys, part, strict=True)) for part in parts],
                }
            )
        return found

    def _entities(self, tags, scores, state):
        if marks_entities(self.labels):
            found = entities_of(tags.values, tags.row_splits, self.labels)
        else:
            none = tf.zeros([0], tf.int64)
            found = (none, none, tf.zeros([0], tf.string))
        first, last, labels = found
        row = tf.gather(tags.value_rowids(), first)
        starts = tf.gather(state["starts"].values, first)
        ends = tf.gather(state["ends"].values, last)
        texts = tf.strings.substr(
            tf.gather(state["texts"], row), starts, ends - starts, unit="UTF8_CHAR"
        )
        totals = tf.cumsum(tf.pad(tf.cast(scores.values, tf.float64), [[1, 0]]))  # (1 + W,)
        count = last + 1 - first
        means = (tf.gather(totals, last + 1) - tf.gather(totals, first)) / tf.cast(
            count, tf.float64
        )

        def ragged(values):
            return tf.RaggedTensor.from_value_rowids(values, row, tags.nrows(), validate=False)

        return {
            "entities": ragged(texts),
            "entity_labels": ragged(labels),
            "entity_starts": ragged(starts),
            "entity_ends": ragged(ends),
            "entity_scores": ragged(tf.cast(means, tf.float32)),
            "entity_count": tf.cast(ragged(starts).row_lengths(), tf.int32),
        }

    def _make_decoder(self):
        logits = keras.Input((None, len(self.labels)), dtype="float32", name="logits")
        mask = keras.Input((None,), dtype="bool", name="word_mask")
        tags, scores = _Decoding(self.decode, self.head)(logits, mask)
        inputs = {"logits": logits, "word_mask": mask}
        return functional(inputs, {"tags": tags, "scores": scores}, self.model, "decoder")


def checked_predicates(predicates, word_counts):
    """`predicates`, or an error unless each is a word of its text; without words nothing is tagged.

    Args:
        predicates, word_counts: int tensors (B,).
    """
    if not tf.executing_eagerly():
        counts = tf.cast(word_counts, predicates.dtype)
        right = (counts == 0) | (predicates >= 0) & (predicates < counts)
        described = ["`predicate` must be the number of a word, from 0. Received:", predicates]
        with tf.control_dependencies([tf.debugging.Assert(tf.reduce_all(right), described)]):
            return tf.identity(predicates)
    for predicate, count in zip(
        *(x.numpy().tolist() for x in (predicates, word_counts)), strict=True
    ):
        if count and not 0 <= predicate < count:
            raise ValueError(
                f"`predicates` must be numbers of words, from 0. Received: {predicate} of a text "
                f"of {count} words"
            )
    return predicates


class _Decoding(keras.layers.Layer):
    """`Tagging.decode` as a layer, so that a backend compiles it."""

    def __init__(self, decode, head):
        super().__init__(dtype="float32")
        self.head = head  # its weights are needed
        self.decode = decode

    def call(self, logits, mask):
        return self.decode(logits, mask)

    def compute_output_spec(self, logits, mask):
        return keras.KerasTensor(mask.shape, "int32"), keras.KerasTensor(mask.shape, "float32")
