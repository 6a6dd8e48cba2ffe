"""A corpus as word ids on disk, memory-mapped, so that its size is no matter."""

import tempfile
from pathlib import Path

import numpy as np

from kctx.data.text_blocks import PLAIN_WHITE_SPACE, line_blocks, text_blocks, text_files
from kctx.files import whole_file

UNKNOWN, LINE_END = -1, -2


class IdCorpus:
    """Word ids of a text, line by line.

    Args:
        ids: int32 (N,): places in a vocabulary, `UNKNOWN` (-1) for other words, `LINE_END` (-2)
            behind the last word of each line.

    Attributes:
        ids: as given; usually a memory map.
    """

    def __init__(self, ids):
        ids = np.asanyarray(ids)
        if ids.dtype != np.int32 or ids.ndim != 1:
            raise ValueError(
                f"`ids` must be int32 of one dimension. Received: {ids.dtype}, shape {ids.shape}"
            )
        self.ids = ids

    @classmethod
    def build(
        cls,
        vocabulary,
        files=(),
        lines=None,
        path=None,
        white_space=PLAIN_WHITE_SPACE,
        progress=True,
    ):
        """Looks the words of a text up, once.

        Args:
            vocabulary: `WordVocabulary`.
            files: file name or list of them.
            lines: iterable of str or bytes instead.
            path: where to keep the ids, 4 bytes a token. Default: a temporary file that goes with
                the process.
            white_space: where to split, see `kctx.data.text_blocks`.
            progress: whether to show a bar.

        Raises:
            FileNotFoundError: no such file.
            ValueError: the text holds no word of the vocabulary.
        """
        if lines is None:
            blocks = text_blocks(text_files(files), "looking words up", progress)
        else:
            blocks = line_blocks(lines)

        def write(file):
            known = total = 0
            for block in blocks:
                ids = vocabulary.encode(block, white_space)
                ids.tofile(file)
                known, total = known + int((ids >= 0).sum()), total + len(ids)
            if not known:
                raise ValueError("The text holds no word of the vocabulary")
            return total

        if path is None:
            with tempfile.TemporaryFile() as file:
                total = write(file)
                file.flush()
                return cls(np.memmap(file, np.int32, "r", shape=(total,)))
        with whole_file(path) as file:
            write(file)
        return cls.open(path)

    @classmethod
    def open(cls, path):
        """Maps ids that `build(path=...)` kept.

        Raises:
            ValueError: no file of ids, or one that was cut short; names it.
        """
        size = Path(path).stat().st_size
        if not size or size % 4:
            raise ValueError(
                f"{path} must hold ids of 4 bytes each: it was cut short or is something else. "
                f"Received: {size:,} bytes"
            )
        return cls(np.memmap(path, np.int32, "r"))

    def __len__(self):
        return len(self.ids)

    def chunks(self, size=1 << 20, start=0):
        """Yields (begin, ids) pieces of whole lines of about `size` ids, from place `start` on.

        A line longer than `size` is cut.
        """
        while start < len(self.ids):
            piece = np.asarray(self.ids[start : start + size])
            if start + size < len(self.ids):
                ends = np.flatnonzero(piece == LINE_END)
                if len(ends):
                    piece = piece[: ends[-1] + 1]
            yield start, piece
            start += len(piece)
