"""Tokens back to readable text."""

import unicodedata

from kctx.tokenizers.unicode_tables import is_cjk, is_punctuation

_NO_SPACE_BEFORE = set(".,!?;:)]}%…’”»")
_NO_SPACE_AFTER = set("([{“‘«")


def join_pieces(tokens, suffix_indicator="##"):
    """Joins word pieces to words and words to text.

    There is no space before or after an ideograph, kana, or full-width punctuation, before closing
    and after opening punctuation. Where a space stood is lost in tokenisation, so this is a guess
    for reading; offsets give the exact original.
    """
    text = ""
    for token in tokens:
        if token.startswith(suffix_indicator) and len(token) > len(suffix_indicator):
            text += token.removeprefix(suffix_indicator)
        elif text and token and _needs_space(text[-1], token):
            text += " " + token
        else:
            text += token
    return text


def _needs_space(before, token):
    after = token[0]
    if _is_wide(before) or _is_wide(after):
        return False
    if len(token) == 1 and after in _NO_SPACE_BEFORE:
        return False
    return before not in _NO_SPACE_AFTER


def _is_wide(character):
    if is_cjk(ord(character)):
        return True
    name = unicodedata.name(character, "")
    if name.startswith(("HIRAGANA", "KATAKANA")):
        return True
    return is_punctuation(character) and unicodedata.east_asian_width(character) in "WF"
