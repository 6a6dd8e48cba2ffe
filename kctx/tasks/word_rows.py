"""What tasks on words share: texts or lists of words to rows, and rows back to words.

A request is a text, or words where a text is split already. What is too long for the model is cut
into windows; what is said of a word comes from the window where it has most context.
"""

import tensorflow as tf

from kctx.arguments import check_choice, check_count
from kctx.preprocessors import ModelInput
from kctx.preprocessors.span_windows import valid
from kctx.preprocessors.text_words import SPLITS, TextWords, text_words
from kctx.preprocessors.word_windows import as_word_lists, best_windows, word_windows
from kctx.tasks.field import Field
from kctx.tasks.task import check_texts, count_filled
from kctx.tokenizers.text_input import as_text_tensor

# Of a task's class: `fields`, `defaults`, and `long_texts`.
FIELDS = {
    "text": Field("texts", "raw texts, UTF-8, any length"),
    "words": Field("texts", 'words, "" behind the last one of a sentence', axes=("B", "W")),
}
OPTIONS = {"split": "words", "stride": None}
LONG_TEXTS = "Texts longer than {} tokens are read in windows; no word is left out."
# What a model of words takes beside what the preprocessor makes.
INPUTS = {
    "word_positions": ModelInput(
        "int32", 0, "the first token of each word", axes=("B", "W"), places_of="T"
    ),
    "word_mask": ModelInput("bool", False, "true = a word", axes=("B", "W")),
}


def check_options(split, stride):
    """Raises a `ValueError` unless they can be options."""
    check_choice("split", split, SPLITS)
    if stride is not None:
        check_count("stride", stride)


def word_signature(texts, first=0):
    """Which signature answers: "serving_default" to texts, "words" to lists of words.

    Args:
        texts: list of str, or of lists of str.
        first: int, number of the first.

    Raises:
        TypeError: they are mixed, or something else; its place is told.
    """
    if all(isinstance(text, (str, bytes)) for text in texts):
        return "serving_default"
    for index, text in enumerate(texts, first):
        if not isinstance(text, (list, tuple)):
            raise TypeError(
                f"`texts[{index}]` must be a list of words, as others are. Received: {text!r}"
            )
        check_texts(text, f"texts[{index}]")
    return "words"


def word_tensor(texts):
    """Checked texts, or lists of words, as `word_rows` takes them."""
    if texts and not isinstance(texts[0], (str, bytes)):
        return as_word_lists(texts)
    return as_text_tensor(texts, keep_bytes=False)


def word_rows(preprocessor, signature, texts, split, stride):
    """The `WordWindows` of texts, and a state for a task's `answer`.

    Args:
        preprocessor: of `kctx.preprocessors`.
        signature: str, see `word_signature`.
        texts: string (B,); for "words" (B, W), "" behind the last one, or ragged.
        split, stride: options of the task.
    """
    if signature == "words":
        if isinstance(texts, tf.Tensor):
            texts = tf.RaggedTensor.from_tensor(texts, lengths=count_filled(texts, "words"))
        texts = texts.with_values(valid(texts.values))
        gap = "" if split == "characters" else " "
        words = joined_words(texts, len(gap))
        count = tf.cast(texts.nrows(), tf.int32)
        texts = tf.strings.unsorted_segment_join(texts.values, texts.value_rowids(), count, gap)
    else:
        texts = valid(texts)
        words = text_words(texts, split)
    windows = word_windows(preprocessor, words.words, stride)
    return windows, {
        "texts": texts,
        "words": words.words,
        "starts": words.starts,
        "ends": words.ends,
        "sentence_index": windows.sentence_index,
        "word_starts": windows.word_starts,
    }


def of_words(values, word_mask, state):
    """What is known of each word, from its best window: (N, V, D) -> ragged (B, None, D)."""
    places = best_windows(
        word_mask, state["sentence_index"], state["word_starts"], state["words"].nrows()
    )
    values = tf.convert_to_tensor(values)
    values = tf.reshape(values, [-1, values.shape[-1]])
    return places.with_values(tf.gather(values, places.values))


def joined_words(words, gap):
    """`TextWords` of sentences given as words: where these stand when they are joined.

    Args:
        words: ragged string (N, None), valid UTF-8.
        gap: int, code points between two words.
    """
    ends = tf.cumsum(tf.strings.length(words.values, unit="UTF8_CHAR") + gap) - gap  # (W,)
    starts = ends - tf.strings.length(words.values, unit="UTF8_CHAR")
    origin = tf.repeat(tf.gather(tf.pad(starts, [[0, 1]]), words.row_starts()), words.row_lengths())
    return TextWords(words, words.with_values(starts - origin), words.with_values(ends - origin))
