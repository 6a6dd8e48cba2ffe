"""The rules of BERT's tokenizer in plain Python, one text at a time, for comparison.

Written from the description of google-research/bert `tokenization.py`: clean, spaces around CJK,
split at white space, lower-case and strip accents, split at punctuation, greedy longest match.
"""

import unicodedata

CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def clean(text):
    """Control characters go, all kinds of spaces become one kind, CJK gets spaces around it."""
    cleaned = []
    for character in text:
        code = ord(character)
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            cleaned.append(" ")
        elif code in (0, 0xFFFD) or category in ("Cc", "Cf"):
            continue
        elif any(first <= code <= last for first, last in CJK):
            cleaned.append(f" {character} ")
        else:
            cleaned.append(character)
    return "".join(cleaned)


def is_punctuation(character):
    code = ord(character)
    ascii_symbol = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_symbol or unicodedata.category(character).startswith("P")


def words(text, lowercase=True, strip_accents=True):
    """Words after normalisation."""
    for token in clean(text).split():
        if lowercase:
            token = token.lower()
        if strip_accents:
            token = unicodedata.normalize("NFD", token)
            token = "".join(x for x in token if unicodedata.category(x) != "Mn")
        word = ""
        for character in token:
            if is_punctuation(character):
                if word:
                    yield word
                yield character
                word = ""
            else:
                word += character
        if word:
            yield word


def pieces(word, vocabulary, max_word_chars=200):
    """Greedy longest match from the left."""
    if len(word) > max_word_chars:
        return ["[UNK]"]
    found, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        found.append(piece)
        start = end
    return found


def tokenize(text, vocabulary, lowercase=True, strip_accents=None, max_word_chars=200):
    """Text to tokens."""
    strip_accents = lowercase if strip_accents is None else strip_accents
    return [
        piece
        for word in words(text, lowercase, strip_accents)
        for piece in pieces(word, vocabulary, max_word_chars)
    ]
