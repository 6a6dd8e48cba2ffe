"""Lines of a file, singly or many at once, with their numbers for errors."""

import zlib

import numpy as np

_BLOCK = 1 << 23
_LONGEST_LINE = 1 << 26  # a small packed file may hold any number of bytes


class Lines:
    """Reads a file of lines.

    Args:
        path: to name in errors.
        file: binary file to read from.
        advance: called after each block.
    """

    def __init__(self, path, file, advance):
        self.path = path
        self.number = 0  # of the line given last
        self._file = file
        self._advance = advance
        self._held = b""
        self._ended = False

    def error(self, message, line=None):
        return ValueError(f"{self.path} line {self.number if line is None else line}: {message}")

    def next(self):
        """The next line without its end, or None at the end of the file."""
        while b"\n" not in self._held and not self._ended:
            self._fill()
        if not self._held:
            return None
        line, _, self._held = self._held.partition(b"\n")
        self.number += 1
        return line.rstrip(b"\r")

    def next_filled(self):
        """The next line that is not blank, or None."""
        while (line := self.next()) is not None:
            if line.strip(b" \t\r\x0b\x0c"):
                return line
        return None

    def many(self, count):
        """(bytes of whole lines, their number), at most `count`; the number is 0 at the end."""
        while not self._ended and len(self._held) < _BLOCK:
            self._fill()
        if self._ended and self._held and not self._held.endswith(b"\n"):
            self._held += b"\n"
        while b"\n" not in self._held and not self._ended:
            self._fill()
        ends = np.flatnonzero(np.frombuffer(self._held, np.uint8) == 10)[:count]
        if not len(ends):
            return b"", 0
        cut = int(ends[-1]) + 1
        data, self._held = self._held[:cut], self._held[cut:]
        self.number += len(ends)
        return data, len(ends)

    def _fill(self):
        try:
            block = self._file.read(_BLOCK)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{self.path} cannot be unpacked: {error}") from error
        self._held += block
        if len(self._held) > _LONGEST_LINE and b"\n" not in self._held:
            raise self.error(f"it has more than {_LONGEST_LINE:,} bytes", self.number + 1)
        self._ended = not block
        self._advance()
