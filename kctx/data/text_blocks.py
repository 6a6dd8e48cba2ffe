"""Text files as blocks of bytes, for the models that split text at white space."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from rich.progress import Progress

from kctx.files import unpacked, warn_of_utf16
from kctx.words import to_bytes

# What the word2vec and GloVe tools take for white space (they also drop every carriage return),
# and what fastText does. `bytes.split` knows both kinds but the zero byte.
PLAIN_WHITE_SPACE = b" \t\r\n"
ALL_WHITE_SPACE = b" \t\r\n\x0b\x0c\0"
_BLOCK_BYTES = 1 << 22
_UNUSUAL = re.compile(rb"[\x0b\x0c\0]")


def split_tokens(block, white_space=PLAIN_WHITE_SPACE):
    """Tokens of a block of bytes, line ends forgotten.

    Args:
        block: bytes.
        white_space: `PLAIN_WHITE_SPACE` or `ALL_WHITE_SPACE`.
    """
    if not _UNUSUAL.search(block):
        return block.split()
    if white_space == ALL_WHITE_SPACE:
        return block.replace(b"\0", b" ").split()
    return [token for token in re.split(rb"[ \t\r\n]+", block) if token]


def text_files(files):
    """`files` as a list of existing paths.

    Raises:
        FileNotFoundError: one of them is no file.
        ValueError: there are none.
    """
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    files = [Path(name) for name in files]
    if not files:
        raise ValueError("`files` must name at least one file. Received: []")
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"No such file in `files`. Received: {file}")
    return files


def text_blocks(files, what, progress=True, whole_lines=False, block_bytes=_BLOCK_BYTES):
    """Yields blocks that end with a line or, within a line longer than a block, with white space.

    So a corpus that is one line takes no more memory than another. A file without a line end at
    its end gets one.

    Args:
        files: list of paths; gzip files are unpacked.
        what: str, shown beside the progress bar.
        progress: whether to show the bar.
        whole_lines: whether long lines, too, are held whole. Default False.
        block_bytes: int, about how much is read at a time. Default 4 MiB.

    Raises:
        ValueError: a gzip file that is broken or cut short; names it.
    """
    sizes = [file.stat().st_size for file in files]
    total, done = sum(sizes), 0
    with Progress(disable=not progress or total < 8 * block_bytes, transient=True) as bar:
        task = bar.add_task(what, total=total)
        for path, size in zip(files, sizes, strict=True):
            with unpacked(path) as (file, raw):
                rest, within_line, first = [], False, True
                while block := file.read(block_bytes):
                    if first:
                        warn_of_utf16(path, block)
                    first = False
                    bar.update(task, completed=done + raw.tell())
                    cut = block.rfind(b"\n")
                    if cut < 0 and not whole_lines:
                        cut = max(block.rfind(b" "), block.rfind(b"\t"))
                    if cut < 0:
                        rest.append(block)
                        continue
                    yield b"".join([*rest, block[: cut + 1]])
                    within_line = block[cut] != ord("\n")
                    rest = [block[cut + 1 :]]
                last = b"".join(rest)
                if last or within_line:
                    yield last + b"\n"
            done += size


def line_blocks(lines, block_lines=1 << 14):
    """Blocks as those of `text_blocks`, from an iterable of str or bytes, a line each."""
    if isinstance(lines, (str, bytes)) or not isinstance(lines, Iterable):
        shown = lines[:60] if isinstance(lines, (str, bytes)) else lines
        raise ValueError(f"`lines` must be several texts. Received: {shown!r}")
    block = []
    for line in lines:
        block.append(to_bytes(line).replace(b"\n", b" "))
        if len(block) == block_lines:
            yield b"\n".join([*block, b""])
            block = []
    if block:
        yield b"\n".join([*block, b""])
