"""Phrases: pairs of words that stand together more often than chance, joined into one word.

Mikolov et al., 2013b, section 4, as in the original's second tool, word2phrase:

    score(a, b) = (count(ab) - delta) / (count(a) count(b)) * number of words
"""

import tempfile
from pathlib import Path

import numpy as np

from kctx.arguments import check_count
from kctx.data.text_blocks import (
    PLAIN_WHITE_SPACE,
    line_blocks,
    split_tokens,
    text_blocks,
    text_files,
)
from kctx.data.word_vocabulary import WordVocabulary
from kctx.files import whole_file

_MOST_PAIRS = 16_000_000  # of different pairs held while counting, 16 bytes each


class PairCounts:
    """Counts of numbers, in bounded memory: with too many the rarest are forgotten.

    Args:
        most: int, how many different ones to hold.

    Attributes:
        keys: int64 (N,), sorted.
        counts: int64 (N,).
    """

    def __init__(self, most=_MOST_PAIRS):
        self.most = most
        self.keys = self.counts = np.zeros(0, np.int64)
        self._pending, self._pending_size = [], 0

    def add(self, keys):
        """Counts int64 (n,) numbers."""
        self._pending.append(np.unique(keys, return_counts=True))
        self._pending_size += len(self._pending[-1][0])
        # Seldom enough that merging costs less than counting.
        if self._pending_size > max(len(self.keys), 1 << 20):
            self.merge()

    def merge(self):
        """Brings `keys` and `counts` up to date."""
        keys, counts = zip((self.keys, self.counts), *self._pending, strict=True)
        self._pending, self._pending_size = [], 0
        keys, counts = np.concatenate(keys), np.concatenate(counts)
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        first = np.ones(len(keys), bool)
        first[1:] = keys[1:] != keys[:-1]
        starts = np.flatnonzero(first)
        self.keys = keys[starts]
        self.counts = np.add.reduceat(counts, starts) if len(starts) else counts
        least = 1
        while len(self.keys) > self.most:
            kept = self.counts > least
            self.keys, self.counts = self.keys[kept], self.counts[kept]
            least += 1


class Phrases:
    """Pairs of words to join.

    Args:
        vocabulary: `WordVocabulary`.
        pairs: int (N, 2), ids of first and second words.
        scores: float64 (N,).
        white_space: where text is split, see `kctx.data.text_blocks`.

    Attributes:
        words: list of (first word, second word), highest score first.
        scores: float64 (N,), of these.
    """

    def __init__(self, vocabulary, pairs, scores, white_space=PLAIN_WHITE_SPACE):
        self.vocabulary, self.white_space = vocabulary, white_space
        pairs, scores = np.asarray(pairs, np.int64).reshape(-1, 2), np.asarray(scores, np.float64)
        order = np.argsort(-scores, kind="stable")
        self.scores = scores[order]
        words = vocabulary.words
        self.words = [(words[a], words[b]) for a, b in pairs[order].tolist()]
        self._keys = np.sort(_keys(pairs[:, 0], pairs[:, 1], len(vocabulary)))

    def __len__(self):
        return len(self.words)

    @classmethod
    def find(
        cls,
        files=(),
        lines=None,
        min_count=5,
        threshold=100.0,
        delta=None,
        white_space=PLAIN_WHITE_SPACE,
        progress=True,
    ):
        """Counts words and pairs of neighbours in a line, and scores the pairs.

        Memory is bounded: see `WordVocabulary.train`; of the pairs, 16 million are held, and with
        more of them the rarest are forgotten while counting, as in the original.

        Args:
            files: file name or list of them.
            lines: list of str or bytes instead, a text each.
            min_count: int, rarer words and pairs are in no phrase. Default 5.
            threshold: float, pairs with a higher score are phrases; a higher one gives fewer.
                Default 100.
            delta: float, what is taken off each pair's count, so that rare ones are no phrases.
                Default: `min_count`.
            white_space: where to split.
            progress: whether to show bars.

        Raises:
            ValueError: no word occurs `min_count` times.
            FileNotFoundError: no such file.
        """
        check_count("min_count", min_count)
        delta = min_count if delta is None else delta
        for name, value in (("threshold", threshold), ("delta", delta)):
            if not value >= 0:
                raise ValueError(f"`{name}` must be at least 0. Received: {name}={value}")
        lines = None if lines is None else list(lines)
        vocabulary = WordVocabulary.train(
            files, lines, min_count, white_space=white_space, progress=progress
        )
        if lines is None:
            blocks = text_blocks(text_files(files), "counting pairs", progress)
        else:
            blocks = line_blocks(lines)
        pairs, ids = PairCounts(), np.zeros(0, np.int64)
        for block in blocks:
            # With the word before it, where a block ends within a line.
            ids = np.concatenate([ids[-1:], vocabulary.encode(block, white_space)])
            both = (ids[1:] >= 0) & (ids[:-1] >= 0)
            pairs.add(_keys(ids[:-1][both], ids[1:][both], len(vocabulary)))
        pairs.merge()
        first, second = np.divmod(pairs.keys, len(vocabulary))
        counts = vocabulary.counts.astype(np.float64)
        scores = (pairs.counts - delta) / counts[first] / counts[second] * vocabulary.num_tokens
        kept = (scores > threshold) & (pairs.counts >= min_count)
        return cls(vocabulary, np.stack([first, second], 1)[kept], scores[kept], white_space)

    def join_block(self, block):
        """Joins the phrases of a text by "_", from the left; a word is in one phrase only.

        Args:
            block: bytes that begin and end with whole words.

        Returns:
            bytes: words with one space between, lines as they were.
        """
        ids = self.vocabulary.encode(block, self.white_space).astype(np.int64)
        joins = np.zeros(len(ids), bool)
        both = np.flatnonzero((ids[1:] >= 0) & (ids[:-1] >= 0)) + 1
        keys = _keys(ids[both - 1], ids[both], len(self.vocabulary))
        if len(self._keys):
            place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            joins[both[self._keys[place] == keys]] = True
        # Of pairs that overlap, a b c d, every second one is joined: a_b c_d.
        start = np.maximum.accumulate(np.where(joins, 0, np.arange(len(ids))))
        joins &= (np.arange(len(ids)) - start) % 2 == 1
        # What stands before each token: so many line ends, else "_" or a space.
        token = np.flatnonzero(ids != -2)
        ends = np.diff(token, prepend=-1) - 1
        before = np.where(ends > 0, ends + 1, joins[token])
        marks = [b" ", b"_", *(b"\n" * n for n in range(1, int(ends.max(initial=0)) + 1))]
        pieces = [b""] * (2 * len(token))
        pieces[::2] = [marks[i] for i in before.tolist()]
        pieces[1::2] = split_tokens(block, self.white_space)
        if len(ids) and ids[0] != -2:
            pieces[0] = b""
        rest = len(ids) - (token[-1] + 1 if len(token) else 0)
        return b"".join([*pieces, b"\n" * int(rest)])

    def join(self, files, path, progress=True):
        """Writes the text of some files with its phrases joined, whole or not at all.

        A line longer than 4 MiB is joined in parts: a phrase that lies across two stays apart.

        Args:
            files: file name or list of them.
            path: of the one file to write.
            progress: whether to show a bar.
        """
        with whole_file(path) as output:
            within_line = False
            for block in text_blocks(text_files(files), "joining phrases", progress):
                joined = self.join_block(block)
                if within_line and joined and not joined.startswith(b"\n"):
                    output.write(b" ")
                output.write(joined)
                within_line = not joined.endswith(b"\n") if joined else within_line


def join_phrases(
    files,
    path,
    thresholds=(200.0, 100.0),
    min_count=5,
    white_space=PLAIN_WHITE_SPACE,
    progress=True,
):
    """Several passes, each on the text that the one before it wrote, so that phrases grow.

    Args:
        files: file name or list of them.
        path: of the file to write.
        thresholds: list of float, of each pass. Default: the original demonstration's two.
        min_count, white_space, progress: as `Phrases.find`.

    Returns:
        list of `Phrases`, of each pass.
    """
    if not len(thresholds):
        raise ValueError("`thresholds` must hold a number for each pass. Received: none")
    path, found = Path(path), []
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        for number, threshold in enumerate(thresholds, 1):
            found.append(
                Phrases.find(
                    files,
                    min_count=min_count,
                    threshold=threshold,
                    white_space=white_space,
                    progress=progress,
                )
            )
            target = path if number == len(thresholds) else Path(folder) / str(number)
            found[-1].join(files, target, progress)
            files = [target]
    return found


def _keys(first, second, size):
    """A pair as one number."""
    return first * size + second
