"""Labelled lines of text as rows of fastText's input table."""

import collections
from typing import NamedTuple

import numpy as np

from kctx.arguments import check_count
from kctx.data.text_blocks import ALL_WHITE_SPACE, split_tokens, text_blocks, text_files
from kctx.vectors.line_features import concatenated
from kctx.vectors.subwords import END_OF_SENTENCE
from kctx.words import to_text

_LINES_AT_ONCE = 10_000
_END = END_OF_SENTENCE.encode("utf-8")


def read_labelled_lines(files, label_prefix="__label__", progress=True):
    """Reads lines as fastText's: tokens, those that begin with the prefix being labels.

    As in the reference a token `</s>` ends a line, and labels may stand anywhere in it.

    Args:
        files: file name or list of them.
        label_prefix: str. Default "__label__".
        progress: whether to show a bar.

    Returns:
        list of (labels, words) pairs of lists of str; labels keep their prefix.

    Raises:
        ValueError: no line has a label, or an empty prefix, which would make all words labels.
    """
    if not isinstance(label_prefix, str) or not label_prefix:
        raise ValueError(
            f"`label_prefix` must be a str that is not empty. Received: {label_prefix!r}"
        )
    lines, prefix = [], label_prefix.encode("utf-8")
    for block in text_blocks(text_files(files), "reading", progress, whole_lines=True):
        for line in block.split(b"\n")[:-1]:
            for tokens in _sentences(split_tokens(line, ALL_WHITE_SPACE)):
                labels = [to_text(token) for token in tokens if token.startswith(prefix)]
                words = [to_text(token) for token in tokens if not token.startswith(prefix)]
                lines.append((labels, words))
    if not any(labels for labels, _ in lines):
        raise ValueError(
            f"No line has a label: none of the tokens of {len(lines):,} lines begins with "
            f"label_prefix={label_prefix!r}"
        )
    return lines


def _sentences(tokens):
    """The pieces between tokens `</s>`, nearly always one."""
    while _END in tokens:
        place = tokens.index(_END)
        yield tokens[:place]
        tokens = tokens[place + 1 :]
    yield tokens


class LabelledLines:
    """Lines with their labels and the rows that their features have.

    Lines without a label, or without a known feature, are left out of training as in the
    reference; `num_skipped` says how many there are.

    Args:
        lines: list of (labels, words) pairs of lists of str.
        labels: list of str.
        features: `LineFeatures`.

    Attributes:
        rows, offsets: int32 (K,), int64 (N + 1,): features of each line.
        label_ids, label_offsets: int32 (M,), int64 (N + 1,): labels of each line.
        num_tokens: int, of the lines kept, `</s>` and labels included.
    """

    def __init__(self, lines, labels, features):
        place = {label: number for number, label in enumerate(labels)}
        rows, offsets = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        label_ids, label_offsets = [], [0]
        self.num_tokens = self.num_skipped = 0
        for begin in range(0, len(lines), _LINES_AT_ONCE):
            some = lines[begin : begin + _LINES_AT_ONCE]
            found, bounds = features.of_lines([words for _, words in some])
            known = [[place[x] for x in of_line if x in place] for of_line, _ in some]
            usable = np.diff(bounds) > 0
            usable &= np.array([bool(of_line) for of_line in known], bool)
            chosen = np.flatnonzero(usable)
            self.num_skipped += len(some) - len(chosen)
            found, bounds = concatenated(found, bounds, chosen)
            rows.append(found.astype(np.int32))
            offsets.append(bounds[1:] + offsets[-1][-1])
            for number in chosen:
                label_ids += known[number]
                label_offsets.append(len(label_ids))
                self.num_tokens += len(some[number][0]) + len(some[number][1]) + 1
        self.rows, self.offsets = np.concatenate(rows), np.concatenate(offsets)
        self.label_ids = np.array(label_ids, np.int32)
        self.label_offsets = np.array(label_offsets, np.int64)

    def __len__(self):
        return len(self.offsets) - 1


class LabelledVocabulary(NamedTuple):
    """Words and labels of labelled lines, most frequent first.

    Attributes:
        words, labels: list of str.
        counts, label_counts: int64, how often each occurs.
        num_tokens: int, all words, labels and line ends, rare ones included.
    """

    words: list
    counts: np.ndarray
    labels: list
    label_counts: np.ndarray
    num_tokens: int


def count_labelled_lines(lines, min_count=1, min_count_label=0):
    """Counts words and labels; `</s>` is a word, as often as there are lines.

    Args:
        lines: list of (labels, words) pairs of lists of str.
        min_count, min_count_label: int, rarer words and labels are left out.

    Returns:
        `LabelledVocabulary`

    Raises:
        ValueError: no word or no label is left.
    """
    words, labels = collections.Counter(), collections.Counter()
    for of_line, tokens in lines:
        labels.update(of_line)
        words.update(tokens)
        words[END_OF_SENTENCE] += 1
    return LabelledVocabulary(
        *_frequent(words, "words", "min_count", min_count),
        *_frequent(labels, "labels", "min_count_label", min_count_label),
        words.total() + labels.total(),
    )


def _frequent(counter, what, argument, least):
    """Entries that occur often enough, and their counts, in falling order."""
    check_count(argument, least, least=0)
    kept = [(entry, count) for entry, count in counter.most_common() if count >= least]
    if not kept:
        raise ValueError(
            f"None of {len(counter):,} {what} occurs {argument}={least} times, the most frequent "
            f"one {max(counter.values(), default=0):,} times"
        )
    return [entry for entry, _ in kept], np.array([count for _, count in kept], np.int64)
