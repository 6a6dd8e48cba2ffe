"""A file of words that gives back every byte of them."""

from pathlib import Path

from kctx.files import whole_file
from kctx.words import to_bytes, to_text

_ESCAPES = ((b"\\", b"\\\\"), (b"\n", b"\\n"), (b"\r", b"\\r"))


def write_words(words, path):
    r"""Writes a word a line; a backslash is written `\\`, and line ends within words `\n`, `\r`.

    Args:
        words: list of str. Bytes that are not UTF-8 are held by lone surrogates.
        path: the file, written whole or not at all.
    """
    with whole_file(path) as file:
        for word in words:
            data = to_bytes(word)
            for plain, escaped in _ESCAPES:
                data = data.replace(plain, escaped)
            file.write(data + b"\n")


def read_words(path):
    """The list of words that `write_words` wrote.

    Raises:
        FileNotFoundError: no such file.
        ValueError: the file does not end with a line end, or holds a backslash that escapes
            nothing; names the file and the line.
    """
    path = Path(path)
    data = path.read_bytes()
    if data and not data.endswith(b"\n"):
        raise ValueError(f"{path} is cut off: its last line does not end.")
    lines = data.split(b"\n")[:-1]
    if b"\\" in data:
        lines = [_unescaped(line, path, number) for number, line in enumerate(lines, 1)]
    return [to_text(line) for line in lines]


def _unescaped(line, path, number):
    parts = line.split(b"\\")
    found, index = [parts[0]], 1
    while index < len(parts):
        part = parts[index]
        if not part and index + 1 < len(parts):  # two in a row
            found += [b"\\", parts[index + 1]]
            index += 2
        elif part[:1] in (b"n", b"r"):
            found += [b"\n" if part[:1] == b"n" else b"\r", part[1:]]
            index += 1
        else:
            raise ValueError(f"{path}, line {number}: a backslash that escapes nothing: {line!r}")
    return b"".join(found)
