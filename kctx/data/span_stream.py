"""Batches of questions on contexts."""

import numpy as np
import tensorflow as tf

from kctx.data.alignment import pieces_of_spans
from kctx.data.batch_stream import BatchStream, check_stream, joined

_CHUNK = 256  # questions looked at together


class SpanStream(BatchStream):
    """The training side of answers as spans: every epoch in a new order, endlessly.

    A row is a question with a window of its context. `dataset()` gives what `preprocessor.spans`
    makes, among it `answer_mask` bool (B, T), and labels int32 (B, 2): the first and the last token
    of the first answer, both 0 where the window does not hold all of it (run_squad.py of the
    reference implementation of BERT).

    Args:
        examples: `SpanExamples`, with answers.
        preprocessor: one with a method `spans`.
        stride: int, most tokens from the start of one window to the start of the next, see
            `kctx.preprocessors.span_windows`. Default 128.
        question_length: int, most tokens of a question. Default 64.
        without_answer: bool, whether windows without the answer are kept where another window of
            the context has it. Default True.
        batch_size: B, windows of a batch; the last batch of an epoch may be smaller. Default 32.
        seed: int.
        window: number of batches within which rows are sorted by length, which saves padding.
            Default 16; 0: no sorting.

    Attributes:
        steps_per_epoch: int.
        num_windows: int, rows of an epoch.
        unseen_answers: list of ids of examples whose answer fits in no window; they are left out.

    Raises:
        ValueError: there are no examples, or no answers; or one has none though the file does.
    """

    def __init__(
        self,
        examples,
        preprocessor,
        stride=128,
        question_length=64,
        without_answer=True,
        batch_size=32,
        seed=0,
        window=16,
    ):
        check_stream(examples, batch_size, seed, window)
        if examples.answers is None:
            raise ValueError(
                "The examples have no answers: give `labelled=True` when reading them."
            )
        unlocated = [
            identity
            for identity, found, texts in zip(
                examples.ids, examples.answers, examples.gold_texts, strict=True
            )
            if texts and not found
        ]
        if unlocated:
            raise ValueError(
                "Only answers that were found in their context can be trained on: give "
                f"`unlocated='skip'` when reading them. Received: {unlocated[:5]}"
            )
        self.stride, self.question_length = stride, question_length
        self.unseen_answers = []
        rows = []
        for first in range(0, len(examples), _CHUNK):
            chunk = examples.take(range(first, min(first + _CHUNK, len(examples))))
            rows += [
                (first + row, number, start, end)
                for row, number, start, end in self._rows(chunk, preprocessor, without_answer)
            ]
        if not rows:
            raise ValueError(
                f"`preprocessor` must have a `sequence_length` that some answer fits in. Received: "
                f"{preprocessor.sequence_length}; none of {len(examples)} does, for instance "
                f"{', '.join(self.unseen_answers[:5])}"
            )
        self._example, self._number, starts, ends = np.array(rows, np.int32).reshape(-1, 4).T
        self._labels = np.stack([starts, ends], axis=1)
        self._questions = np.array([text.encode() for text in examples.questions], object)
        self._contexts = np.array([text.encode() for text in examples.contexts], object)
        lengths = np.array([len(text) for text in self._contexts])[self._example]
        super().__init__(preprocessor, lengths, batch_size, seed, window)
        self.num_windows = len(rows)

    def _rows(self, examples, preprocessor, without_answer):
        """[(example, number of the window among its own, first and last token of the answer)]"""
        _, index, offsets, _ = preprocessor.spans(
            examples.questions, examples.contexts, self.stride, self.question_length
        )
        index, offsets = np.asarray(index), np.asarray(offsets)
        windows = [[] for _ in examples.ids]
        for row, example in enumerate(index.tolist()):
            windows[example].append(offsets[row])
        rows = []
        for example, of_example in enumerate(windows):
            answers = examples.answers[example]
            labels = answer_tokens(of_example, answers[0][1:] if answers else None)
            seen = any(start for start, _ in labels)
            if answers and not seen:
                self.unseen_answers.append(examples.ids[example])
                continue
            rows += [
                (example, number, start, end)
                for number, (start, end) in enumerate(labels)
                if start or not seen or without_answer
            ]
        return rows

    @property
    def signature(self):
        text, number = (tf.TensorSpec((None,), dtype) for dtype in (tf.string, tf.int32))
        return text, text, number, tf.TensorSpec((None, 2), tf.int32)

    def raw(self, indices):
        examples = self._example[indices]
        columns = (self._questions[examples], self._contexts[examples])
        return (*columns, self._number[indices], self._labels[indices])

    def prepare(self, questions, contexts, numbers, labels):
        inputs, index, _, _ = self.preprocessor.spans(
            questions, contexts, self.stride, self.question_length
        )
        # All windows of each context are made; those that are wanted are taken out.
        rows = tf.searchsorted(index, tf.range(tf.size(numbers))) + numbers
        return {name: tf.gather(value, rows) for name, value in inputs.items()}, labels

    def content(self):
        yield joined(self._questions)
        yield joined(self._contexts)
        yield np.stack([self._example, self._number]).tobytes() + self._labels.tobytes()

    def fingerprint(self):
        """What must be equal for the batches to be the same."""
        own = {"stride": self.stride, "question_length": self.question_length}
        return {**super().fingerprint(), **own}


def answer_tokens(windows, answer):
    """Where an answer stands in each window of its context.

    Args:
        windows: list of int (T, 2), start and end of each token in the context, -1 for others.
        answer: (start, end) in the context, or None.

    Returns:
        list of (first, last): tokens of each window, (0, 0) where it does not hold all tokens of
        the answer.
    """
    if answer is None:
        return [(0, 0)] * len(windows)
    tokens = [np.flatnonzero(offsets[:, 0] >= 0) for offsets in windows]
    spans = [offsets[places] for offsets, places in zip(windows, tokens, strict=True)]
    # Over all windows: a border may cut through the answer.
    overlapping = [
        piece
        for pieces in spans
        for piece in pieces.tolist()
        if piece[1] > answer[0] and piece[0] < answer[1]
    ]
    labels = []
    for places, pieces in zip(tokens, spans, strict=True):
        first, last = pieces_of_spans([answer], pieces)[0]
        whole = (
            first < last
            and pieces[first].tolist() == min(overlapping)
            and pieces[last - 1].tolist() == max(overlapping)
        )
        labels.append((int(places[first]), int(places[last - 1])) if whole else (0, 0))
    return labels
