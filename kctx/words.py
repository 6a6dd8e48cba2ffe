"""Words that may hold any bytes: as `str`, what is not UTF-8 stands as lone surrogates."""

from collections.abc import Iterable


def to_bytes(word):
    """The bytes of a word or text.

    Raises:
        ValueError: it is neither str nor bytes, or holds a surrogate that stands for no byte.
    """
    if isinstance(word, bytes):
        return word
    if not isinstance(word, str):
        raise ValueError(f"A text must be str or bytes. Received: {word!r}")
    try:
        return word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"A text holds a surrogate that stands for no byte, at position {error.start}. "
            f"Received: {word[:80]!r}"
        ) from error


def to_text(word):
    """Bytes as `str`, from which `to_bytes` makes the same bytes again."""
    return word.decode("utf-8", "surrogateescape")


def word_list(words, *also):
    """Words as a list.

    Raises:
        ValueError: one word, or something that is no str nor of the types `also`.
    """
    if isinstance(words, (str, bytes)) or not isinstance(words, Iterable):
        raise ValueError(f"`words` must be a list of str. Received: {words!r}")
    words = list(words)
    if set(map(type, words)) - {str}:  # far faster than a look at each, and nearly always empty
        for word in words:
            if not isinstance(word, (str, *also)):
                raise ValueError(f"`words` must be a list of str. Received in it: {word!r}")
    return words
