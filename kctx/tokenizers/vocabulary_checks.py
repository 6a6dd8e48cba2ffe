"""Whether a WordPiece vocabulary can do what it is asked to."""

import warnings

from kctx.tokenizers.unicode_tables import is_punctuation, normalize

SUFFIX_INDICATOR = "##"
MAX_TOKEN_BYTES = 256  # of the trie that TensorFlow Text builds, without the suffix indicator


def check_vocabulary(vocabulary, special_tokens):
    """The id of each token, after checks.

    Args:
        vocabulary: list of str.
        special_tokens: dict of role to token.

    Raises:
        ValueError: it is empty, repeats a token, lacks a special one, or holds one that no trie
            can store.
    """
    if not vocabulary:
        raise ValueError("`vocabulary` must hold at least the special tokens. Received: none")
    ids = {}
    for index, token in enumerate(vocabulary):
        if ids.setdefault(token, index) != index:
            raise ValueError(
                "`vocabulary` must not repeat a token. "
                f"Received: {token!r} at {ids[token]} and at {index}"
            )
    for role, token in special_tokens.items():
        if token not in ids:
            raise ValueError(
                f"`vocabulary` must hold the special tokens. Received: {len(vocabulary)} "
                f"tokens without {role}={token!r}"
            )
    for index, token in enumerate(vocabulary):
        size = len(token.removeprefix(SUFFIX_INDICATOR).encode("utf-8"))
        if size > MAX_TOKEN_BYTES or "\0" in token:
            raise ValueError(
                f"A token must not exceed {MAX_TOKEN_BYTES} bytes nor hold NUL. "
                f"Received: {token!r} at {index}"
            )
    return ids


def check_apart(tokens):
    """Raises ValueError where two tokens, or one with itself, could share characters of a text."""
    for first in tokens:
        for second in tokens:
            contained = first != second and second in first
            sizes = range(1, min(len(first), len(second)))
            if contained or any(first.endswith(second[:size]) for size in sizes):
                raise ValueError(
                    "With `special_tokens_in_text`, special tokens must not overlap. "
                    f"Received: {first!r} and {second!r}"
                )


def warn_of_unreachable(vocabulary, special_tokens, lowercase, strip_accents):
    """Warns of entries that no text can give, since normalisation changes them: a wrong setting.

    Not counted is what no setting would reach, such as [unused1] and other long tokens with
    punctuation.
    """
    unreachable = [
        token
        for token in vocabulary
        if token not in special_tokens.values()
        and (len(token) == 1 or not any(map(is_punctuation, token.removeprefix(SUFFIX_INDICATOR))))
        and normalize(token, lowercase, strip_accents) != token
    ]
    if unreachable:
        warnings.warn(
            f"{len(unreachable)} of {len(vocabulary)} vocabulary entries cannot be reached with "
            f"lowercase={lowercase}, strip_accents={strip_accents}, for instance "
            f"{unreachable[:5]}. Is this a cased vocabulary?",
            stacklevel=4,
        )
