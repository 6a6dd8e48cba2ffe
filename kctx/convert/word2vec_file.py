"""word2vec's binary format.

Mikolov et al., 2013. A line `V D` in ASCII; then for each word its bytes, a space, and D float32
numbers, little-endian. The original tool writes a line feed after each vector, others do not: a
reader takes both.
"""

import numpy as np

from kctx.convert.byte_source import BLOCK, likely_rows, most_bytes, opened
from kctx.convert.collected_words import CollectedWords
from kctx.files import whole_file
from kctx.vectors.tables import chunks
from kctx.words import to_bytes

_ROWS_AT_ONCE = 4096
_LONGEST_WORD = 64 * 2**20  # bytes; a small gzip file may hold any number of them


def parse_header(line):
    """The two sizes of a line `V D`, or None if it is no such line."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) < 19 for field in fields):
        return None
    return int(fields[0]), int(fields[1])


def check_header(path, rows, dim, least):
    """Raises a `ValueError` for sizes that the file cannot have; no memory is taken before.

    Args:
        least: int, fewest bytes that the rows can have.
    """
    if dim < 1:
        raise ValueError(f"{path}: the header promises vectors of {dim} numbers.")
    if rows * least > most_bytes(path):
        raise ValueError(
            f"{path} is truncated or its header is wrong: {rows} rows of {dim} numbers need at "
            f"least {rows * least} bytes, and the file can hold {most_bytes(path)}."
        )


def fits(data, rows, dim):
    """Whether the bytes of a whole file are those of the binary format, with these sizes."""
    position = data.find(b"\n") + 1
    for _ in range(rows):
        while data[position : position + 1] == b"\n":
            position += 1
        space = data.find(b" ", position)
        position = space + 1 + 4 * dim
        if space < 0 or position > len(data):
            return False
    return not data[position:].strip(b"\n")


def read(path, report, first=None, only=None, storage="float32", progress=False):
    """Reads a file of the binary format, gzipped or not.

    Args:
        report: `VectorsReport` to fill.
        first, only, storage, progress: as `kctx.convert.load_vectors`.

    Returns:
        `Vectors`.

    Raises:
        ValueError: the header is wrong, or the file ends too early or too late; the row and the
            byte offset are named.
    """
    with opened(path, progress) as source:
        data = source.read()
        end = data.find(b"\n", 0, 64)
        sizes = None if end < 0 else parse_header(data[:end])
        if sizes is None:
            raise ValueError(f"{path} does not begin with a line of two sizes: {data[:40]!r}")
        rows, dim = sizes
        check_header(path, rows, dim, 4 * dim + 1)
        kept = CollectedWords(report, likely_rows(path, rows, dim), dim, first, only, storage)
        rest = _Rows(source, data, end + 1, 4 * dim)
        for start in range(0, rows, _ROWS_AT_ONCE):
            words, numbers = rest.take(start, min(start + _ROWS_AT_ONCE, rows), rows)
            kept.add(words, np.frombuffer(numbers, "<f4").reshape(-1, dim))
            if kept.is_full:
                return kept.vectors()
        rest.check_end(rows)
    return kept.vectors()


def check_filled(vectors):
    """Raises a `ValueError` for vectors without words, of which readers make nothing."""
    if not len(vectors):
        raise ValueError("`vectors` must hold a word. Received: none")


class _Rows:
    """Cuts rows out of blocks of bytes."""

    def __init__(self, source, data, position, width):
        self.source, self.data, self.position, self.width = source, data, position, width
        self.before = 0  # bytes of the file before `data`

    def take(self, start, stop, rows):
        """Words of rows `start` to `stop`, and their numbers as bytes."""
        words, numbers = [], []
        for row in range(start, stop):
            while True:
                data, begin = self.data, self.position
                while data[begin : begin + 1] == b"\n":
                    begin += 1
                space = data.find(b" ", begin)
                end = space + 1 + self.width
                if space >= 0 and end <= len(data):
                    break
                offset = self.before + begin
                if space < 0 and len(data) - begin > _LONGEST_WORD:
                    raise ValueError(
                        f"{self.source.path}: the word of row {row + 1} at byte {offset} has more "
                        f"than {_LONGEST_WORD} bytes."
                    )
                if not self._more():
                    raise ValueError(
                        f"{self.source.path} is truncated: the header promises {rows} rows, and "
                        f"row {row + 1} at byte {offset} is not whole."
                    )
            words.append(data[begin:space])
            numbers.append(data[space + 1 : end])
            self.position = end
        return words, b"".join(numbers)

    def check_end(self, rows):
        """Raises a `ValueError` if something follows the last row."""
        while True:
            if self.data[self.position :].strip(b"\n"):
                raise ValueError(
                    f"{self.source.path}: the header promises {rows} rows, but the file goes on "
                    f"after them, at byte {self.before + self.position}."
                )
            if not self._more():
                return

    def _more(self):
        # As much again as is left, so that a long word does not make many short steps.
        new = self.source.read(max(BLOCK, len(self.data) - self.position))
        self.before += self.position
        self.data, self.position = self.data[self.position :] + new, 0
        return bool(new)


def write(vectors, path, newline=True):
    """Writes the binary format, whole or not at all.

    Args:
        vectors: `Vectors`.
        newline: bool, whether a line feed follows each vector, as the original tool has it.

    Raises:
        ValueError: no words, or one that the format cannot hold, because it contains a space or a
            line feed; it is named, and nothing is written.
    """
    check_filled(vectors)
    words = [to_bytes(word) for word in vectors.words]
    for word in words:
        if b" " in word or b"\n" in word:
            raise ValueError(
                "word2vec's binary format cannot hold a word with a space or a line feed. "
                f"Received: {word[:80]!r}. `Vectors.save` keeps any words"
            )
    ending = b"\n" if newline else b""
    with whole_file(path) as file:
        file.write(b"%d %d\n" % (len(vectors), vectors.dim))
        for start, rows in chunks(vectors.table, _ROWS_AT_ONCE):
            data, width = np.ascontiguousarray(rows, "<f4").tobytes(), 4 * vectors.dim
            file.write(
                b"".join(
                    word + b" " + data[i * width : (i + 1) * width] + ending
                    for i, word in enumerate(words[start : start + len(rows)])
                )
            )
