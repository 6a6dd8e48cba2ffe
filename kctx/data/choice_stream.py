"""Batches of multiple-choice examples."""

import numpy as np
import tensorflow as tf

from kctx.data.batch_stream import BatchStream, check_stream, joined


class ChoiceStream(BatchStream):
    """The training side of multiple choice: every epoch in a new order, endlessly.

    `dataset()` gives the encoder's inputs of each context with each of its choices, (B, N, T),
    `choice_mask` bool (B, N), True = a choice (examples may have fewer than N), and labels int32
    (B,).

    Args:
        examples: `ChoiceExamples`, with labels.
        preprocessor: maps two string tensors (B,) to a dict of encoder inputs.
        batch_size: B, examples of a batch; the last batch of an epoch may be smaller. Default 8.
        seed: int.
        window: number of batches within which examples are sorted by length, which saves padding.
            Default 16; 0: no sorting.

    Attributes:
        steps_per_epoch: int.

    Raises:
        ValueError: there are no examples, or no labels.
    """

    def __init__(self, examples, preprocessor, batch_size=8, seed=0, window=16):
        check_stream(examples, batch_size, seed, window)
        if examples.labels is None:
            raise ValueError("The examples have no labels: give `labelled=True` when reading them.")
        self._contexts = np.array([text.encode() for text in examples.contexts], object)
        self._choices = [[choice.encode() for choice in row] for row in examples.choices]
        self._labels = np.asarray(examples.labels, np.int32)
        lengths = [
            len(context) + max(map(len, choices))
            for context, choices in zip(self._contexts, self._choices, strict=True)
        ]
        super().__init__(preprocessor, np.array(lengths), batch_size, seed, window)

    @property
    def signature(self):
        return (
            tf.TensorSpec((None,), tf.string),
            tf.TensorSpec((None, None), tf.string),
            tf.TensorSpec((None,), tf.int32),
            tf.TensorSpec((None,), tf.int32),
        )

    def raw(self, indices):
        chosen = [self._choices[index] for index in indices]
        counts = np.array([len(row) for row in chosen], np.int32)
        table = np.full((len(chosen), counts.max()), b"", object)
        for row, choices in enumerate(chosen):
            table[row, : len(choices)] = choices
        return self._contexts[indices], table, counts, self._labels[indices]

    def prepare(self, contexts, choices, counts, labels):
        return choice_inputs(self.preprocessor, contexts, choices, counts), labels

    def content(self):
        yield joined(self._contexts)
        for choices in self._choices:
            yield joined(choices)
        yield self._labels.tobytes()


def choice_inputs(preprocessor, contexts, choices, counts):
    """A batch of multiple choice, in graph operations.

    Args:
        preprocessor: maps two string tensors (B,) to a dict of encoder inputs.
        contexts: string (B,).
        choices: string (B, N), "" where there is none.
        counts: int32 (B,), how many each has.

    Returns:
        dict of the encoder's inputs (B, N, T) and `choice_mask` bool (B, N).
    """
    batch, most = tf.unstack(tf.shape(choices))
    contexts, flat = tf.repeat(contexts, most), tf.reshape(choices, [-1])  # (B * N,)
    return {
        **{
            name: tf.reshape(value, tf.concat([[batch, most], tf.shape(value)[1:]], 0))
            for name, value in preprocessor(contexts, flat).items()
        },
        "choice_mask": tf.range(most)[None] < counts[:, None],
    }
