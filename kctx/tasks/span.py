"""The answer to a question, a span of the context."""

import tensorflow as tf

from kctx.arguments import check_count, check_number
from kctx.preprocessors import ModelInput
from kctx.preprocessors.span_windows import span_windows, valid
from kctx.tasks.field import Field
from kctx.tasks.task import Task

MOST_TOKENS = 1 << 30  # more than any row has


class Span(Task):
    """Questions and contexts to answers; contexts too long for the model are cut into windows.

    The candidates are all spans of at most `max_answer_length` tokens that begin in the window
    where their first token has most context, and "no answer". Their logits are start + end, that of
    "no answer" the lowest of the windows (run_squad.py of BERT's reference implementation); their
    probabilities are over all candidates of all windows.

    Options:
        stride: int, most tokens from the start of one window to the start of the next, see
            `kctx.preprocessors.span_windows`. Default 128.
        question_length: int, most tokens of a question. Default 64.
        max_answer_length: int, in tokens. Default 30.
        no_answer_threshold: float, "" is answered where the logit of "no answer" is greater than
            that of the best span by more than this. None: never, unless the context holds no token.
            Default 0.0.
    """

    name = "span"
    keeps_bytes = False
    output_axes = ("B", "T")
    batches_at_once = 8  # all spans of a batch take a lot of memory
    defaults = {
        "stride": 128,
        "question_length": 64,
        "max_answer_length": 30,
        "no_answer_threshold": 0.0,
    }
    fields = {
        "question": Field("questions", "questions, UTF-8"),
        "context": Field("contexts", "texts that hold the answers, UTF-8, any length"),
    }
    meanings = {
        "answer": ("(B,)", 'the most probable answer, "" where there is none'),
        "start": ("(B,)", "where it begins in the context, in code points; -1 where there is none"),
        "end": ("(B,)", "where it ends"),
        "score": ("(B,)", "the probability of this answer, or of no answer"),
        "no_answer_probability": ("(B,)", "the probability that the context holds no answer"),
    }
    id_meanings = {
        "start_token": ("(B,)", "first token of the answer in its row; -1 where there is none"),
        "end_token": ("(B,)", "its last token"),
        "score": meanings["score"],
        "no_answer_probability": meanings["no_answer_probability"],
    }
    long_texts = "Contexts longer than {} tokens are read in windows."

    def __init__(self, model, preprocessor, labels=None, **options):
        super().__init__(model, preprocessor, labels, **options)
        for option in ("stride", "question_length", "max_answer_length"):
            check_count(option, getattr(self, option))
        if self.no_answer_threshold is not None:
            check_number("no_answer_threshold", self.no_answer_threshold)

    @property
    def inputs(self):
        context = ModelInput("bool", False, "true = a token of the context")
        return {**self.preprocessor.inputs, "answer_mask": context}

    def signatures(self):
        return {"serving_default": ("question", "context")}

    def prepare(self, signature, question, context):
        context = valid(context)
        windows = span_windows(
            self.preprocessor, question, context, self.stride, self.question_length
        )
        state = {
            "context": context,
            "context_index": windows.context_index,
            "offsets": windows.offsets,
            "max_context": windows.max_context,
        }
        return windows.inputs, state

    def answer(self, outputs, inputs, state):
        context = state["context"]
        index, starting = state["context_index"], state["max_context"]
        found = self._best(
            outputs["output"], inputs["answer_mask"], starting, index, tf.size(context)
        )
        window, first, last, none, probability, no_answer = found
        first, last = tf.where(none, 0, first), tf.where(none, 0, last)
        start = tf.gather_nd(state["offsets"][:, :, 0], tf.stack([window, first], 1))
        end = tf.gather_nd(state["offsets"][:, :, 1], tf.stack([window, last], 1))
        start, end = tf.where(none, -1, start), tf.where(none, -1, end)
        text = tf.strings.substr(context, tf.maximum(start, 0), end - start, unit="UTF8_CHAR")
        return {
            "answer": text,
            "start": start,
            "end": end,
            "score": probability,
            "no_answer_probability": no_answer,
        }

    def answer_ids(self, outputs, inputs):
        """The answer in each row, which is taken for a context of its own."""
        mask = inputs["answer_mask"]
        rows = tf.shape(mask)[0]
        found = self._best(outputs["output"], mask, mask, tf.range(rows), rows)
        _, first, last, none, probability, no_answer = found
        return {
            "start_token": tf.where(none, -1, first),
            "end_token": tf.where(none, -1, last),
            "score": probability,
            "no_answer_probability": no_answer,
        }

    def _best(self, logits, mask, starting, index, size):
        """The best candidate of each context.

        Args:
            logits: float32 (N, T, 2), of windows. mask: bool (N, T), tokens of the context.
            starting: bool (N, T), where answers may begin.
            index: int32 (N,), which of `size` contexts each window is of.

        Returns:
            (window, first, last, none, probability, no_answer), (B,) each: where the best span is,
            whether there is no answer, the probability of what is answered, and that of no answer.
        """
        logits, mask = tf.convert_to_tensor(logits), tf.convert_to_tensor(mask)
        null = tf.math.unsorted_segment_min(tf.reduce_sum(logits[:, 0], -1), index, size)  # (B,)

        # spans[n, t, a] begins at t and has a + 1 tokens.
        longest = tf.minimum(min(self.max_answer_length, MOST_TOKENS), tf.shape(mask)[1])
        lengths = tf.range(longest)
        places = tf.range(tf.shape(mask)[1])[:, None] + lengths  # (T, A)
        inside = places < tf.shape(mask)[1]
        places = tf.where(inside, places, 0)
        possible = starting[:, :, None] & inside & tf.gather(mask, places, axis=1)
        spans = logits[:, :, :1] + tf.gather(logits[:, :, 1], places, axis=1)  # (N, T, A)
        spans = tf.where(possible, spans, -1e9)

        per_window = tf.reshape(spans, [tf.size(index), -1])  # (N, T * A)
        per_window = tf.pad(per_window, [[0, 0], [0, 1]], constant_values=-1e9)
        best = tf.reduce_max(per_window, axis=1)  # (N,)
        highest = tf.math.unsorted_segment_max(best, index, size)  # (B,)
        top = tf.maximum(highest, null)
        share = tf.reduce_sum(tf.exp(per_window - tf.gather(top, index)[:, None]), axis=1)
        no_answer = tf.exp(null - top)
        total = tf.math.unsorted_segment_sum(share, index, size) + no_answer

        # Of two alike, the first window.
        window = tf.where(best == tf.gather(highest, index), tf.range(tf.size(index)), 1 << 30)
        window = tf.math.unsorted_segment_min(window, index, size)  # (B,)
        place = tf.argmax(tf.gather(per_window, window), axis=1, output_type=tf.int32)
        first = place // longest
        last = first + place % longest
        none = highest < -1e8
        if self.no_answer_threshold is not None:
            none |= null - highest > self.no_answer_threshold
        probability = tf.where(none, no_answer, tf.exp(highest - top)) / total
        return window, first, last, none, probability, no_answer / total
