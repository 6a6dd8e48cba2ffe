"""Vocabulary files: one token a line, the line's number is its id."""

from pathlib import Path

from kctx.files import read_text, write_text


def read_vocabulary(path):
    """Reads a vocab.txt.

    LF and CRLF line ends are understood; nothing else is stripped, so tokens such as U+00A0 or
    U+2028 stay whole.

    Returns:
        list of str

    Raises:
        FileNotFoundError: no such file.
        ValueError: not UTF-8 (file and byte offset are named).
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"No vocabulary file at `vocabulary`. Received: {path}")
    lines = read_text(path).split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def write_vocabulary(vocabulary, path):
    """Writes a vocab.txt, UTF-8 with LF line ends.

    Raises:
        ValueError: a token holds a line end, so the file could not be read back.
    """
    for index, token in enumerate(vocabulary):
        if "\n" in token or token.endswith("\r"):
            raise ValueError(
                f"A token with a line end cannot be stored. Received: {token!r} at {index}"
            )
    write_text(path, "".join(f"{token}\n" for token in vocabulary))
