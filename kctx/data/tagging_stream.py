"""Batches of tagged sentences."""

import numpy as np
import tensorflow as tf

from kctx.data.batch_stream import BatchStream, check_stream, joined

_CHUNK = 256  # sentences looked at together


class TaggingStream(BatchStream):
    """The training side of tagging: every epoch in a new order, endlessly.

    A sentence that is longer than the model takes is trained on in several windows of whole words.
    `dataset()` gives what `preprocessor.words` makes, among it `word_positions` int32 and
    `word_mask` bool (B, W), and labels int32 (B, W), -1 behind the last word; of sentences with
    predicates also `predicate_indicator` int32 (B, W), 1 at the predicate.

    Args:
        sentences: `TaggedSentences`, with tags.
        preprocessor: one with a method `words`.
        batch_size: B, windows of a batch; the last batch of an epoch may be smaller. Default 32.
        seed: int.
        window: number of batches within which sentences are sorted by length, which saves padding.
            Default 16; 0: no sorting.

    Attributes:
        steps_per_epoch: int.
        num_windows: int, rows of an epoch.

    Raises:
        ValueError: there are no sentences, one has a tag that is not in `tag_names`, or all words
            have the same tag.
    """

    def __init__(self, sentences, preprocessor, batch_size=32, seed=0, window=16):
        check_stream(sentences, batch_size, seed, window)
        if sentences.tags is None:
            raise ValueError("The sentences have no tags: give `tag_column=` when reading them.")
        tag_ids = sentences.tag_ids
        for row, ids in enumerate(tag_ids):
            if -1 in ids:
                tag, line = sentences.tags[row][ids.index(-1)], sentences.lines
                raise ValueError(
                    "Only tags among `tag_names` can be trained on. Received: "
                    f"{tag!r} in the sentence of line {line[row] if line else 'unknown'}"
                )
        if len({tag for ids in tag_ids for tag in ids}) < 2:
            raise ValueError(
                "`sentences` must hold at least two tags, else there is nothing to learn. "
                f"Received: {len(sentences)} sentences, all tagged {sentences.tags[0][:1]}"
            )
        self._words, self._tags, self._predicates = [], [], []
        self._has_predicates = sentences.predicates is not None
        for row, first, last in _windows(sentences.words, preprocessor):
            self._words.append([word.encode() for word in sentences.words[row][first:last]])
            self._tags.append(np.asarray(tag_ids[row][first:last], np.int32))
            # In a window without it, the predicate lies outside.
            self._predicates.append(
                sentences.predicates[row] - first if self._has_predicates else -1
            )
        lengths = np.array([sum(map(len, words)) for words in self._words])
        super().__init__(preprocessor, lengths, batch_size, seed, window)
        self.num_windows = len(self._words)

    @property
    def signature(self):
        kinds = (tf.string, tf.int64, tf.int32, tf.int32)
        return tuple(tf.TensorSpec((None,), kind) for kind in kinds)

    def raw(self, indices):
        words = [word for index in indices for word in self._words[index]]
        lengths = np.array([len(self._words[index]) for index in indices], np.int64)
        tags = np.concatenate([self._tags[index] for index in indices])
        predicates = np.array([self._predicates[index] for index in indices], np.int32)
        return np.array(words, object), lengths, tags, predicates

    def prepare(self, words, lengths, tags, predicates):
        words = tf.RaggedTensor.from_row_lengths(words, lengths)
        inputs, sentence_index, word_starts = self.preprocessor.words(words)
        # The place of each word of each window among all words of the batch.
        first = tf.gather(tf.cast(words.row_starts(), tf.int32), sentence_index) + word_starts
        column = tf.range(tf.shape(inputs["word_mask"])[1])[None]
        place = tf.where(inputs["word_mask"], first[:, None] + column, 0)  # (B, W)
        if self._has_predicates:
            here = tf.gather(predicates, sentence_index) - word_starts
            inputs["predicate_indicator"] = tf.cast(column == here[:, None], tf.int32)
        return inputs, tf.where(inputs["word_mask"], tf.gather(tags, place), -1)

    def content(self):
        columns = (self._words, self._tags, self._predicates)
        for words, tags, predicate in zip(*columns, strict=True):
            yield joined(words)
            yield tags.tobytes()
            if self._has_predicates:
                yield str(predicate).encode()


def _windows(sentences, preprocessor):
    """(sentence, first word, the one behind the last) of each window of each sentence, in order."""
    found = []
    for first in range(0, len(sentences), _CHUNK):
        chunk = sentences[first : first + _CHUNK]
        inputs, index, starts = preprocessor.words(chunk)
        counts = np.asarray(inputs["word_mask"]).sum(axis=1)
        index, starts = np.asarray(index), np.asarray(starts)
        found += zip((first + index).tolist(), starts.tolist(), (starts + counts).tolist())  # noqa: B905
    return [(row, start, end) for row, start, end in found if end > start]
