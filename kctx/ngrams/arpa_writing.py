"""Writing ARPA files, fast: lines are laid out at fixed width as bytes, then closed up."""

import contextlib
import gzip
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from kctx.files import whole_file
from kctx.ngrams.suffix_order import workers

# Fills what a number or word leaves of its place. CR separates words, so no word holds one.
_FILL = 13
_ROWS = 1 << 16
_FLOOR = -99.0

# Four digits of each number below 10,000, and sign, tens, ones and point of 0 to 99.
_DIGITS = np.array([f"{n:04d}".encode() for n in range(10000)]).view(np.uint32)
_LEADS = np.array(
    [f"{sign}{n:2d}.".replace(" ", "\r").encode() for sign in "\r-" for n in range(100)]
).view(np.uint32)


def write_tables(tables, path):
    """Writes back-off tables as an ARPA file, whole or not at all.

    Logs have 8 decimals, which gives float32 back but for the last bit of values near 0. What is
    impossible is written as -99, as SRILM does. Names that end with `.gz` are packed.

    Args:
        tables: `BackoffTables`.
        path: str or `pathlib.Path`.
    """
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(whole_file(path))
        if str(path).endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile(fileobj=file, mode="wb", mtime=0))
        sizes = "".join(f"ngram {k}={size}\n" for k, size in enumerate(tables.sizes, 1))
        file.write(f"\\data\\\n{sizes}\n".encode())
        layout = _Layout(tables)
        pool = stack.enter_context(ThreadPoolExecutor(workers()))
        for order, size in enumerate(tables.sizes, 1):
            file.write(f"\\{order}-grams:\n".encode())
            starts = iter(range(0, size, _ROWS))
            # A few parts at a time, so that memory does not hold the whole file.
            while batch := list(itertools.islice(starts, 2 * workers())):
                for lines in pool.map(lambda start: layout.lines(order, start), batch):  # noqa: B023
                    file.write(lines)
            file.write(b"\n")
        file.write(b"\\end\\\n")


class _Layout:
    """Lines of n-grams: number, words, number, each in a place of 4 n bytes, filled up with CR."""

    def __init__(self, tables):
        self.tables = tables
        words = tables.words
        lengths = np.array([len(word) for word in words])
        # A place that nearly all words fit; lines with longer ones are put together by themselves.
        fitting = int(np.quantile(lengths, 0.995)) + 1
        self.width = min(48, max(8, -(-fitting // 8) * 8))
        self.long = lengths >= self.width
        self.lengths = lengths
        short = [
            b"" if long else word for word, long in zip(words, self.long.tolist(), strict=True)
        ]
        blob = b"".join(b"\t" + word.ljust(self.width - 1, b"\r") for word in short)
        first = np.frombuffer(blob, np.uint8).reshape(len(words), self.width)
        later = first.copy()
        later[:, 0] = ord(" ")
        self.first, self.later = (
            first.view(f"V{self.width}")[:, 0],
            later.view(f"V{self.width}")[:, 0],
        )

    def lines(self, order, start):
        """The bytes of at most `_ROWS` lines."""
        tables = self.tables
        stop = min(start + _ROWS, tables.sizes[order - 1])
        rows = tables.rows_of(order, start, stop)
        numbers = [tables.probabilities[order - 1][start:stop]]
        if order < tables.order:
            numbers.append(tables.backoffs[order - 1][start:stop])
        lead, width = 12, self.width
        total = lead + order * width + (20 if len(numbers) > 1 else 4)
        lines = np.full((stop - start, total), _FILL, np.uint8)
        lines[:, :lead] = _numbers(numbers[0])
        for k in range(order):
            place = lead + k * width
            source = self.later if k else self.first
            lines[:, place : place + width] = (
                source[rows[:, k]].view(np.uint8).reshape(len(rows), width)
            )
        place = lead + order * width
        if len(numbers) > 1:
            lines[:, place] = ord("\t")
            lines[:, place + 4 : place + 16] = _numbers(numbers[1])
        lines[:, -1] = ord("\n")
        long = np.flatnonzero(self.long[rows].any(axis=1))
        if not len(long):
            return lines.tobytes().translate(None, b"\r")
        return b"".join(self._with_long(lines, rows, numbers, long))

    def _with_long(self, lines, rows, numbers, long):
        before = 0
        for row in long.tolist():
            yield lines[before:row].tobytes().translate(None, b"\r")
            words = b" ".join(self.tables.words[index] for index in rows[row].tolist())
            texts = [_numbers(column[row : row + 1]).tobytes() for column in numbers]
            yield b"\t".join([texts[0], words, *texts[1:]]).translate(None, b"\r") + b"\n"
            before = row + 1
        yield lines[before:].tobytes().translate(None, b"\r")


def _numbers(values):
    """(N, 12) uint8: float32 logs with 8 decimals, "0" for 0."""
    values = np.maximum(values.astype(np.float64), _FLOOR)
    scaled = np.rint(np.abs(values) * 1e8).astype(np.int64)
    whole = scaled // 100_000_000
    fraction = (scaled - whole * 100_000_000).astype(np.int32)
    high = fraction // 10_000
    parts = np.empty((len(values), 3), np.uint32)
    parts[:, 0] = _LEADS[whole + 100 * (values < 0)]
    parts[:, 1] = _DIGITS[high]
    parts[:, 2] = _DIGITS[fraction - high * 10_000]
    parts[scaled == 0] = np.frombuffer(b"0\r\r\r\r\r\r\r\r\r\r\r", np.uint32)
    return parts.view(np.uint8)
