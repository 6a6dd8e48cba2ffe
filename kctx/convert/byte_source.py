"""The bytes of a file, plain or gzipped, in blocks."""

import contextlib
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from kctx.files import is_gzipped, unpacked

BLOCK = 4 * 2**20
_MOST_EXPANSION = 1032  # no deflate stream expands more
_USUAL_EXPANSION = 8  # more than that of numbers as text
_SHOWN_FROM = 64 * 2**20  # a bar for what takes a second or more


def most_bytes(path):
    """The most bytes that a file can hold: its size, or what gzip can make of it."""
    size = Path(path).stat().st_size
    return size * _MOST_EXPANSION if is_gzipped(path) else size


def likely_rows(path, rows, dim):
    """For how many rows of float32 to take memory at once, of those that a header promises.

    A plain file must have the bytes. Of a gzipped one only the end tells, so that no more is taken
    than packed numbers are likely to give; a table grows where there are more.
    """
    if not is_gzipped(path):
        return rows
    return min(rows, max(1024, Path(path).stat().st_size * _USUAL_EXPANSION // (4 * dim)))


@contextlib.contextmanager
def opened(path, progress=False):
    """Gives a `ByteSource`; with `progress`, a bar is shown for large files.

    Raises:
        ValueError: while reading, of a broken gzip file.
    """
    size = Path(path).stat().st_size
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with contextlib.ExitStack() as stack:
        file, raw = stack.enter_context(unpacked(path))
        told = None
        if progress and size >= _SHOWN_FROM:
            bar = stack.enter_context(Progress(*columns, TimeRemainingColumn()))
            task = bar.add_task(f"Reading {Path(path).name}", total=size)

            def told():
                bar.update(task, completed=raw.tell())

        yield ByteSource(path, file, told)


class ByteSource:
    """Hands out blocks of bytes.

    Args:
        path: to name in errors.
        file: what is read.
        told: function, called after each block. Default: none.
    """

    def __init__(self, path, file, told=None):
        self.path, self._file, self._told = path, file, told

    def read(self, size=BLOCK):
        """The next bytes; empty at the end."""
        data = self._file.read(size)
        if self._told is not None:
            self._told()
        return data
