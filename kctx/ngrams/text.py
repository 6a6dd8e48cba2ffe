"""Text to word ids: tokens split at space, tab, CR and LF, and at nothing else.

These are the separators of KenLM; a vertical tab, a form feed or a no-break space can be part of a
word. Words are bytes here: what is not UTF-8 passes through unchanged. A line is a sentence.

Two departures from KenLM's `lmplz`: a byte 0 is part of a word, where `lmplz` ends the word; and a
last line without LF is a whole sentence, where `lmplz` leaves out its `</s>`.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kctx.files import unpacked, warn_of_utf16
from kctx.words import to_bytes, to_text

UNKNOWN, START, END = 0, 1, 2
SPECIAL_WORDS = (b"<unk>", b"<s>", b"</s>")
SPECIAL_WORD_RULES = ("error", "skip", "unknown")
BLOCK_BYTES = 1 << 23

_TOKEN = re.compile(rb"[^ \t\r\n]+|\n")
_SEPARATORS = b" \t\r\n"


def split_words(text):
    """The words of one text as a list of str, which its line ends do not divide."""
    return [to_text(token) for token in _TOKEN.findall(to_bytes(text)) if token != b"\n"]


class WordIds(dict):
    """Bytes of a word -> id, by first appearance: `<unk>` 0, `<s>` 1, `</s>` 2, then the words.

    Args:
        vocabulary: list of words, if no others are known: each other word is `<unk>`. None: each
            new word gets the next id.
    """

    def __init__(self, vocabulary=None):
        super().__init__({word: index for index, word in enumerate(SPECIAL_WORDS)})
        self[b"\n"] = END
        self.words = list(SPECIAL_WORDS)
        self.open = True
        if vocabulary is not None:
            if isinstance(vocabulary, (str, bytes)) or not isinstance(vocabulary, Iterable):
                raise ValueError(f"`vocabulary` must be a list of words. Received: {vocabulary!r}")
            for word in vocabulary:
                word = checked_word(word)
                if word not in SPECIAL_WORDS:
                    if word in self:
                        raise ValueError(f"`vocabulary` holds {to_text(word)!r} twice")
                    self[word]
            if len(self.words) == len(SPECIAL_WORDS):
                raise ValueError("`vocabulary` must hold at least one word. Received: none")
            self.open = False

    def __missing__(self, word):
        if not self.open:
            return UNKNOWN
        index = self[word] = len(self.words)
        self.words.append(word)
        return index


def checked_word(word):
    """The bytes of a word of a given list, which must be one token."""
    data = to_bytes(word)
    if not data or any(byte in _SEPARATORS for byte in data):
        raise ValueError(
            f"A word must not be empty nor hold a space, tab or line end. Received: {word!r}"
        )
    return data


class Ids:
    """Streams sentences as arrays of ids, `</s>` behind each.

    Args:
        word_ids: `WordIds`, which may grow.
        special_words: what `<s>`, `</s>` and `<unk>` mean in the text: "error", "skip" them like
            spaces, or "unknown": each is a word not in the vocabulary.
        empty_lines: bool, whether a line without words is a sentence of no words.
    """

    def __init__(self, word_ids, special_words="error", empty_lines=True):
        if special_words not in SPECIAL_WORD_RULES:
            raise ValueError(
                f"`special_words` must be one of {SPECIAL_WORD_RULES}. Received: {special_words!r}"
            )
        self.word_ids = word_ids
        self.special_words = special_words
        self.empty_lines = empty_lines
        self._last = END

    def of(self, blocks):
        """Arrays of int32 ids of (name, first line number, bytes that end with a line or word)."""
        for name, line, block in blocks:
            ids = self._ids(name, line, block)
            if not self.empty_lines and len(ids):
                before = np.empty_like(ids)
                before[0], before[1:] = self._last, ids[:-1]
                self._last = ids[-1]
                ids = ids[(ids != END) | (before != END)]
            yield ids

    def _ids(self, name, line, block):
        special = any(word in block for word in SPECIAL_WORDS)
        if special or b"\x0b" in block or b"\x0c" in block:
            tokens = _TOKEN.findall(block)
            if special:
                tokens = self._replaced(name, line, tokens)
        else:
            tokens = block.replace(b"\n", b" </s> ").split()
        return np.fromiter(map(self.word_ids.__getitem__, tokens), np.int32, len(tokens))

    def _replaced(self, name, line, tokens):
        found = [index for index, token in enumerate(tokens) if token in SPECIAL_WORDS]
        if found and self.special_words == "error":
            line += tokens[: found[0]].count(b"\n")
            raise ValueError(
                f"{name} line {line} holds the word {to_text(tokens[found[0]])}, which means the "
                'edge of a sentence or an unknown word. Give special_words="skip" to read such '
                'words as spaces, or "unknown" to read them as unknown words.'
            )
        if self.special_words == "skip":
            return [token for token in tokens if token not in SPECIAL_WORDS]
        for index in found:
            tokens[index] = SPECIAL_WORDS[UNKNOWN]
        return tokens


def blocks_of(files, lines, advance=lambda size: None, size=BLOCK_BYTES):
    """Blocks of text, each ending with a line, or within a very long line with a word.

    Args:
        files: list of paths; those that begin like gzip are unpacked.
        lines: iterable of str or bytes instead, a sentence each, or None.
        advance: called with the number of bytes read.
        size: int, about so many bytes at once.

    Yields:
        (name, number of the first line, bytes). The last line of a file ends with LF even if the
        file does not.

    Raises:
        ValueError: a gzip file that is broken or cut short; names it.
    """
    if lines is not None:
        yield from _blocks_of_lines(lines, size)
        return
    for path in files:
        number, rest = 1, []
        with unpacked(path) as (file, _):
            while block := file.read(size):
                if number == 1 and not rest:
                    warn_of_utf16(path, block)
                advance(len(block))
                cut = max(block.rfind(b"\n"), block.rfind(b" "))
                if cut < 0:
                    rest.append(block)
                    continue
                whole = b"".join([*rest, block[: cut + 1]])
                rest = [block[cut + 1 :]]
                yield str(path), number, whole
                number += whole.count(b"\n")
            last = b"".join(rest)
            if last or (file.tell() and not whole.endswith(b"\n")):
                yield str(path), number, last + b"\n"


def _blocks_of_lines(lines, least):
    held, size, number = [], 0, 1
    for line in lines:
        data = to_bytes(line)
        data = data[:-1] if data.endswith(b"\n") else data
        if b"\n" in data:
            data = data.replace(b"\n", b" ")
        held.append(data)
        size += len(data) + 1
        if size >= least:
            yield "`lines`", number, b"\n".join(held) + b"\n"
            number += len(held)
            held, size = [], 0
    if held:
        yield "`lines`", number, b"\n".join(held) + b"\n"


def checked_source(files, lines):
    """The paths of `files`, after a check that either these or `lines` are given.

    Raises:
        ValueError: both or neither, or one text where several belong.
        FileNotFoundError: no such file.
    """
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    files = [Path(name) for name in files]
    if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable | None):
        shown = lines[:80] if isinstance(lines, (str, bytes)) else lines
        raise ValueError(f"`lines` must be several texts, a sentence each. Received: {shown!r}")
    if bool(files) == (lines is not None):
        shown = "None" if lines is None else f"a {type(lines).__name__}"
        raise ValueError(
            "Give either `files` or `lines`. "
            f"Received: files={[str(name) for name in files]}, lines={shown}"
        )
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"No such file in `files`. Received: {file}")
    return files
