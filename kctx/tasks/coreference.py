"""Which of the mentions in a text name the same thing."""

import tensorflow as tf
from keras import ops

from kctx.heads.mention_ranker import linked_clusters
from kctx.preprocessors import ModelInput
from kctx.tasks.field import Field
from kctx.tasks.mentions import as_mention_tensor, check_mentions, most_context, word_spans
from kctx.tasks.task import Task, as_python
from kctx.tasks.word_rows import (
    FIELDS,
    OPTIONS,
    check_options,
    word_rows,
    word_signature,
    word_tensor,
)


class Coreference(Task):
    """Texts with their mentions, or lists of words with them, to antecedents and clusters.

    A mention is (start, end), the end behind it: code points of a text, or numbers of words where
    words are given. It is read as the whole words that it touches, in any order. Of a text that is
    longer than the model, each mention's antecedent comes from the window that holds most of what
    is before it; clusters join what is linked over all windows.

    Options:
        split, stride: as of `Tagging`.
    """

    name = "coreference"
    keeps_bytes = False
    fields = {
        **FIELDS,
        "mentions": Field(
            "mentions",
            "start and end of each, code points of the text, or words; -1 behind the last",
            axes=("B", "M", "2"),
            dtype="int32",
        ),
    }
    defaults = OPTIONS
    output_axes = ("B", "M")
    meanings = {
        "mentions": ("(B, M)", 'the text of each mention, "" where there is none'),
        "starts": ("(B, M)", "where it begins in its text, in code points; -1 where there is none"),
        "ends": ("(B, M)", "where it ends"),
        "clusters": ("(B, M)", "the same number for mentions of one thing, 0 for one by itself"),
        "antecedents": ("(B, M)", "number of the mention that each goes back to, from 0; -1: none"),
        "scores": ("(B, M)", "the probability of that antecedent, or of none"),
    }
    id_meanings = {
        "clusters": ("(B, M)", "1 + the column of the first mention of a thing, 0 for one alone"),
        "antecedents": meanings["antecedents"],
        "scores": meanings["scores"],
    }
    long_texts = "Texts longer than {} tokens are read in windows."

    def __init__(self, model, preprocessor, labels=None, **options):
        super().__init__(model, preprocessor, labels, **options)
        check_options(self.split, self.stride)

    @property
    def inputs(self):
        def places(meaning):
            return ModelInput("int32", 0, meaning, axes=("B", "M"), places_of="T")

        mask = ModelInput("bool", False, "true = a mention", axes=("B", "M"))
        return {
            **self.preprocessor.inputs,
            "span_starts": places("the first token of each mention, in the order of the text"),
            "span_ends": places("its last token"),
            "span_mask": mask,
        }

    def signatures(self):
        return {"serving_default": ("text", "mentions"), "words": ("words", "mentions")}

    def check(self, columns, first=0):
        texts, mentions = columns
        signature = word_signature(texts, first)
        check_mentions(texts, mentions, first)
        return signature

    def tensors(self, columns):
        texts, mentions = columns
        return [word_tensor(texts), as_mention_tensor(mentions)]

    def prepare(self, signature, texts, mentions):
        windows, state = word_rows(self.preprocessor, signature, texts, self.split, self.stride)
        none = tf.maximum(1 - tf.shape(mentions)[1], 0)
        mentions = tf.pad(mentions, [[0, 0], [0, none], [0, 0]], constant_values=-1)
        code_points_of = None if signature == "words" else state["texts"]
        spans, bounds = word_spans(mentions, state["starts"], state["ends"], code_points_of)
        # In the order of the text, those that are none last.
        key = tf.cast(spans, tf.int64) * [1 << 32, 1]
        key = tf.where(spans[..., 1] > 0, tf.reduce_sum(key, axis=-1), key.dtype.max)
        order = tf.argsort(key, axis=1, stable=True)  # (B, S)
        ordered = tf.gather(spans, order, batch_dims=1)  # (B, S, 2)

        # The mentions that each window holds whole, one behind the other.
        mask = windows.inputs["word_mask"]
        local = tf.gather(ordered, windows.sentence_index)  # (N, S, 2)
        real = local[..., 1] > 0
        local -= windows.word_starts[:, None, None]
        size = tf.reduce_sum(tf.cast(mask, tf.int32), axis=1)  # (N,)
        inside = real & (local[..., 0] >= 0) & (local[..., 1] <= size[:, None])
        column = tf.ragged.boolean_mask(
            tf.broadcast_to(tf.range(tf.shape(inside)[1])[None], tf.shape(inside)), inside
        )
        held = tf.sequence_mask(column.row_lengths())  # (N, M)
        column = column.to_tensor()
        none = tf.maximum(1 - tf.shape(column)[1], 0)
        column, held = (tf.pad(x, [[0, 0], [0, none]]) for x in (column, held))
        local = tf.where(held[..., None], tf.gather(local, column, batch_dims=1), 0)  # (N, M, 2)
        last = tf.maximum(local[..., 1] - 1, 0)
        starts = tf.gather(windows.inputs["word_positions"], local[..., 0], batch_dims=1)
        ends = tf.gather(windows.word_ends, last, batch_dims=1) - 1
        inputs = {key: windows.inputs[key] for key in self.preprocessor.inputs}
        inputs |= {
            "span_starts": tf.where(held, starts, 0),
            "span_ends": tf.where(held, ends, 0),
            "span_mask": held,
        }
        more = {"bounds": bounds, "order": order, "column": column, "before": local[..., 0]}
        more["is_real"] = tf.gather(spans[..., 1] > 0, order, batch_dims=1)
        return inputs, {**state, **more}

    def select(self, outputs, inputs):
        scores = tf.nn.softmax(super().select(outputs, inputs)["output"], axis=-1)  # (N, M, M + 1)
        best = tf.argmax(scores, axis=-1, output_type=tf.int32)
        return {"best": best, "scores": tf.reduce_max(scores, axis=-1)}

    def answer(self, outputs, inputs, state, link=linked_clusters):
        """See `Task.answer`.

        Args:
            link: function of antecedents and a mask, (B, M) each, to clusters.
        """
        order, is_real = state["order"], state["is_real"]  # (B, M), of the order of the text
        chosen, found = most_context(
            inputs["span_mask"], state["sentence_index"], state["column"], state["before"], is_real
        )  # (B, M): where each is read; whether anywhere
        best = tf.gather_nd(outputs["best"], chosen)  # 1 + the column in its window
        window = chosen[..., 0]
        before = tf.gather_nd(state["column"], tf.stack([window, tf.maximum(best - 1, 0)], axis=-1))
        antecedents = tf.where(found & (best > 0), before + 1, 0)
        clusters = link(antecedents, is_real)
        scores = tf.where(found, tf.gather_nd(outputs["scores"], chosen), 0.0)

        # Back in the order of the request.
        antecedents = tf.gather(
            tf.pad(order, [[0, 0], [1, 0]], constant_values=-1), antecedents, batch_dims=1
        )
        place = tf.argsort(order, axis=1)
        found = {"clusters": clusters, "antecedents": antecedents, "scores": scores}
        found = {key: tf.gather(value, place, batch_dims=1) for key, value in found.items()}
        starts, ends = tf.unstack(state["bounds"], axis=-1)
        texts = tf.broadcast_to(state["texts"][:, None], tf.shape(starts))
        length = tf.where(starts < 0, 0, ends - starts)
        texts = tf.strings.substr(texts, tf.maximum(starts, 0), length, unit="UTF8_CHAR")
        return {"mentions": texts, "starts": starts, "ends": ends, **found}

    def answer_eagerly(self, outputs, inputs, state):
        def link(antecedents, is_real):  # under whichever backend
            given = (ops.convert_to_tensor(x.numpy()) for x in (antecedents, is_real))
            return tf.constant(ops.convert_to_numpy(linked_clusters(*given)))

        outputs = {key: tf.convert_to_tensor(value) for key, value in outputs.items()}
        return self.answer(outputs, inputs, state, link)

    def answer_ids(self, outputs, inputs):
        """Of each row, which is taken for a text of its own."""
        mask = inputs["span_mask"]
        best = tf.where(mask, outputs["best"], 0)
        return {
            "clusters": linked_clusters(best, mask),
            "antecedents": best - 1,
            "scores": tf.where(mask, outputs["scores"], 0.0),
        }

    def rows(self, answer):
        """`mentions`, dicts of text, places, antecedent, score; `clusters`, lists of numbers."""
        columns = {key: as_python(value) for key, value in answer.items()}
        keys = {"text": "mentions", "start": "starts", "end": "ends"}
        keys |= {"antecedent": "antecedents", "score": "scores"}
        found = []
        for number in range(len(columns["mentions"])):
            row = {key: columns[column][number] for key, column in keys.items()}
            count = sum(start >= 0 for start in row["start"])
            mentions = [{key: row[key][place] for key in keys} for place in range(count)]
            clusters = {}
            for place, cluster in enumerate(columns["clusters"][number][:count]):
                if mentions[place]["antecedent"] < 0:
                    mentions[place]["antecedent"] = None
                if cluster:
                    clusters.setdefault(cluster, []).append(place)
            found.append({"mentions": mentions, "clusters": list(clusters.values())})
        return found
