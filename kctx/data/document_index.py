"""Find the documents of text files by scanning bytes, without decoding a line in Python.

A document ends at a blank line (empty, or ASCII spaces and tabs only). The scan reads fixed-size
chunks, so memory does not depend on the size of a file or of a line, and keeps two 64-bit numbers
for each document. On the way every byte is checked against the encoding.
"""

import codecs
import re
import zlib

import numpy as np

from kctx.files import encoding_error

CHUNK_BYTES = 1 << 24
_SPACE = b" \t\r\n\x0b\x0c"
_SEPARATOR = re.compile(rb"\n(?:[ \t\r\x0b\x0c]*\n)+")
_UTF8_BOM = b"\xef\xbb\xbf"


def check_encoding(encoding):
    """Returns the canonical name of an encoding in which line ends and spaces are those of ASCII.

    Raises:
        ValueError: the encoding is unknown, or is one like UTF-16 whose files cannot be cut at the
            byte 0x0A.
    """
    try:
        name = codecs.lookup(encoding).name
        compatible = " \t\r\n".encode(name) == b" \t\r\n"
    except (LookupError, TypeError) as error:
        raise ValueError(
            f"`encoding` must be a text encoding known to Python. Received: {encoding!r}"
        ) from error
    if not compatible:
        raise ValueError(
            "`encoding` must keep ASCII as single bytes (UTF-8, Latin-1, GB18030, Big5, ...); "
            f"convert the files to UTF-8 first. Received: encoding={encoding!r}"
        )
    return name


def scan_documents(path, encoding="utf-8", chunk_bytes=CHUNK_BYTES):
    """Find the documents of one file.

    Args:
        path: file name.
        encoding: a name that `check_encoding` returned.
        chunk_bytes: bytes read at a time.

    Returns:
        `(starts, lengths, size, checksum)`: int64 arrays with the byte offset and byte length of
        each document (from its first non-blank line to the end of its last), the file size in
        bytes and the CRC-32 of the whole file.

    Raises:
        ValueError: the file is not valid in the encoding; names the file and the byte offset.
    """
    boundaries = []  # start, end, start, end, ... of the documents
    inside = False  # within a document
    checksum, position, tail = 0, 0, b""  # `tail`: white space whose meaning later bytes decide
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    with open(path, "rb") as file:
        while chunk := file.read(max(chunk_bytes, len(_UTF8_BOM))):
            checksum = zlib.crc32(chunk, checksum)
            _validate(decoder, chunk, path, encoding, position)
            first = position
            if position == 0 and encoding == "utf-8" and chunk.startswith(_UTF8_BOM):
                chunk, first = chunk[len(_UTF8_BOM) :], len(_UTF8_BOM)
            position = first + len(chunk)
            text, offset = tail + chunk, first - len(tail)
            kept = text.rstrip(_SPACE)
            tail = text[len(kept) :]
            if not kept:
                continue
            begin = 0
            if not inside:
                begin = _line_start(kept)
                boundaries.append(offset + begin)
            for match in _SEPARATOR.finditer(kept, begin):
                boundaries.append(offset + match.start())
                boundaries.append(offset + match.end())
            inside = True
            end = offset + len(kept)
    _validate(decoder, b"", path, encoding, position, final=True)
    if inside:
        boundaries.append(end)
    pairs = np.asarray(boundaries, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1] - pairs[:, 0], position, checksum


def cut_long_documents(path, starts, lengths, limit, encoding="utf-8"):
    """Cut documents longer than `limit` bytes at line ends (or spaces, or characters).

    So a file without blank lines does not have to fit in memory.

    Returns:
        `(starts, lengths)` in which only documents without any place to cut exceed `limit`.
    """
    if not len(lengths) or lengths.max() <= limit:
        return starts, lengths
    new_starts, new_lengths = [], []
    with open(path, "rb") as file:
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            while length > limit:
                file.seek(start)
                cut = _place_to_cut(file.read(limit), encoding)
                new_starts.append(start)
                new_lengths.append(cut)
                start, length = start + cut, length - cut
            new_starts.append(start)
            new_lengths.append(length)
    return np.asarray(new_starts, np.int64), np.asarray(new_lengths, np.int64)


def _place_to_cut(window, encoding):
    for separator in (b"\n", b" "):
        place = window.rfind(separator) + 1
        if place > 1:
            return place
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    decoder.decode(window)
    pending = len(decoder.getstate()[0])  # bytes of a character that goes on behind the window
    return len(window) - pending if pending < len(window) else len(window)


def _line_start(text):
    """Offset of the first line that holds more than white space."""
    first = len(text) - len(text.lstrip(_SPACE))
    return text.rfind(b"\n", 0, first) + 1


def _validate(decoder, chunk, path, encoding, position, final=False):
    pending = decoder.getstate()[0]
    if not pending and chunk.isascii() and encoding in ("utf-8", "ascii", "latin-1", "iso8859-1"):
        return
    try:
        decoder.decode(chunk, final)
    except UnicodeDecodeError as error:
        offset = position - len(pending) + error.start
        raise encoding_error(path, encoding, offset, chunk if position == 0 else b"") from error
