"""The words of a corpus by falling count: what every static model learns vectors for."""

import collections
import warnings

import numpy as np

from kctx.arguments import check_count
from kctx.data.text_blocks import (
    PLAIN_WHITE_SPACE,
    line_blocks,
    split_tokens,
    text_blocks,
    text_files,
)
from kctx.files import whole_file
from kctx.words import to_bytes, to_text

_MOST_TYPES = 20_000_000  # of words held while counting; the C tools hold 21 million


class WordVocabulary:
    """Words and their counts, most frequent first.

    Args:
        words: list of str. Bytes that are not UTF-8 are held by lone surrogates.
        counts: int64 (V,), of each word in the corpus.
        num_lines: int, lines of the corpus. Default 0.
        num_tokens: int, tokens of the corpus, rare words included. Default: the sum of `counts`.

    Attributes:
        words, counts, num_lines, num_tokens: as given.
        ids: dict of bytes of a word to its place.
    """

    def __init__(self, words, counts, num_lines=0, num_tokens=None):
        if isinstance(words, (str, bytes)):
            raise ValueError(f"`words` must be a list of str. Received: {words[:80]!r}")
        self.words = list(words)
        self.counts = np.asarray(counts, np.int64)
        self.num_lines = int(num_lines)
        self.num_tokens = int(self.counts.sum() if num_tokens is None else num_tokens)
        if self.counts.shape != (len(self.words),):
            raise ValueError(
                "`counts` must hold a number for each word. "
                f"Received: {len(self.words)} words, counts of shape {self.counts.shape}"
            )
        if len(self.counts) and self.counts.min() < 0:
            place = int(self.counts.argmin())
            raise ValueError(
                "`counts` must not be negative. "
                f"Received: {self.counts[place]} of {self.words[place]!r}"
            )
        self.ids = {to_bytes(word): place for place, word in enumerate(self.words)}
        if len(self.ids) != len(self.words):
            twice = collections.Counter(self.words).most_common(1)[0][0]
            raise ValueError(f"`words` must differ from each other. Received twice: {twice!r}")

    def __len__(self):
        return len(self.words)

    def __contains__(self, word):
        return to_bytes(word) in self.ids

    @classmethod
    def train(
        cls,
        files=(),
        lines=None,
        min_count=5,
        max_size=None,
        white_space=PLAIN_WHITE_SPACE,
        order="first",
        line_end=None,
        progress=True,
    ):
        """Counts the words of text split at white space.

        Memory is bounded by the number of different words; beyond 20 million of them the rarest
        are forgotten while counting, as in the C tools.

        Args:
            files: file name or list of them, gzipped or not. Any bytes: invalid UTF-8 is kept.
            lines: iterable of str or bytes instead.
            min_count: int, rarer words are left out. Default 5.
            max_size: int, how many words to keep at most. Default: all.
            white_space: where to split, see `kctx.data.text_blocks`.
            order: of words with equal counts: "first", by first appearance (word2vec), or
                "bytes", alphabetical by bytes (GloVe).
            line_end: str, a word that every line's end counts as: `</s>` in fastText. Default:
                none.
            progress: whether to show a bar.

        Raises:
            ValueError: no word is left.
            FileNotFoundError: no such file.
        """
        check_count("min_count", min_count, least=0)
        if max_size is not None:
            check_count("max_size", max_size)
        if order not in ("first", "bytes"):
            raise ValueError(f"`order` must be 'first' or 'bytes'. Received: order={order!r}")
        if lines is None:
            blocks = text_blocks(text_files(files), "counting words", progress)
        else:
            blocks = line_blocks(lines)
        counter, num_lines, forgotten = collections.Counter(), 0, 0
        for block in blocks:
            counter.update(split_tokens(block, white_space))
            num_lines += block.count(b"\n")
            if len(counter) > _MOST_TYPES:
                forgotten += _forget_rare(counter)
        if line_end is not None:
            counter[to_bytes(line_end)] += num_lines
        num_tokens = counter.total() + forgotten
        if forgotten:
            warnings.warn(
                f"The corpus has more than {_MOST_TYPES:,} different words. The rarest were "
                f"forgotten each time, {forgotten:,} tokens in all: a word that is rare in each "
                "part of the text may be missing, or have too low a count.",
                stacklevel=2,
            )
        kept = [(token, count) for token, count in counter.items() if count >= min_count]
        if not kept:
            most = max(counter.values(), default=0)
            raise ValueError(
                f"No word of the corpus occurs min_count={min_count} times: its {num_tokens:,} "
                f"tokens are {len(counter):,} words, the most frequent of which occurs {most:,} "
                "times. Lower `min_count` or give more text."
            )
        if order == "bytes":
            kept.sort()
        kept.sort(key=lambda entry: -entry[1])
        kept = kept[:max_size]
        words = [to_text(token) for token, _ in kept]
        return cls(words, [count for _, count in kept], num_lines, num_tokens)

    def encode(self, block, white_space=PLAIN_WHITE_SPACE):
        """Ids of the words of a block of text.

        Args:
            block: bytes that begin and end with whole words.
            white_space: where to split.

        Returns:
            int32 (tokens,): the word's place, -1 for an unknown word, -2 for each line end.
        """
        # By line, not with a marker for its end: text may hold any marker.
        *lines, rest = block.split(b"\n")
        lookup = self.ids.get
        ids = []
        for line in lines:
            ids += [lookup(token, -1) for token in split_tokens(line, white_space)]
            ids.append(-2)
        ids += [lookup(token, -1) for token in split_tokens(rest, white_space)]
        return np.array(ids, np.int32)

    def save(self, path):
        """Writes `word count` lines, as the tools of word2vec and GloVe do, whole or not at all.

        Raises:
            ValueError: a word holds white space, which such a file cannot.
        """
        for word in self.words:
            if not word or any(mark in word for mark in " \t\r\n"):
                raise ValueError(f"A vocabulary file cannot hold the word {word!r}")
        with whole_file(path) as file:
            for word, count in zip(self.words, self.counts.tolist(), strict=True):
                file.write(to_bytes(word) + b" %d\n" % count)

    @classmethod
    def load(cls, path):
        """Reads what `save` or the tools of word2vec and GloVe wrote.

        Raises:
            ValueError: a line is not `word count`; names the file and the line.
        """
        words, counts = [], []
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                word, _, count = line.rstrip(b"\r\n").rpartition(b" ")
                if not word or not count.isdigit() or len(count) > 18:  # of int64
                    raise ValueError(f"{path}, line {number} must be `word count`: {line[:80]!r}")
                words.append(to_text(word))
                counts.append(int(count))
        if not words:
            raise ValueError(f"{path} holds no words")
        return cls(words, counts)


def _forget_rare(counter):
    """Drops the rarest words until half the room is free; returns how many tokens they were."""
    counts = np.fromiter(counter.values(), np.int64, len(counter))
    threshold = np.partition(counts, len(counts) // 2)[len(counts) // 2]
    rare = [token for token, count in counter.items() if count <= threshold]
    return sum(counter.pop(token) for token in rare)
