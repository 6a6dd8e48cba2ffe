"""What BERT's basic tokenizer asks of each code point, as arrays that a graph can look up.

The rules are those of the reference implementation (google-research/bert, tokenization.py), worked
out once for all 1,114,112 code points from Python's own `unicodedata`.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

NUM_CODE_POINTS = 0x110000
PAGE_BITS = 8  # code points share pages of 256; most pages are alike and stored once

# Kinds of code points. A separate code point is a word of its own.
KEEP, DROP, SPACE, SEPARATE = range(4)

_CJK_RANGES = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def is_cjk(code_point):
    """Whether the reference sets spaces around it: ideographs, but neither kana nor hangul."""
    return any(first <= code_point <= last for first, last in _CJK_RANGES)


def is_punctuation(character):
    """All of ASCII that is no letter, digit or space ("$" too), and Unicode's categories P*."""
    code = ord(character)
    if 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126:
        return True
    return unicodedata.category(character).startswith("P")


def kind_of(character, split_cjk=True):
    """KEEP, DROP, SPACE or SEPARATE (CJK only), before any normalisation."""
    if character in " \t\n\r":
        return SPACE
    code, category = ord(character), unicodedata.category(character)
    if code in (0, 0xFFFD) or category in ("Cc", "Cf", "Cs"):
        return DROP
    if category == "Zs" or character.isspace():  # isspace: U+2028 and U+2029, cut by str.split
        return SPACE
    return SEPARATE if split_cjk and is_cjk(code) else KEEP


def normalize(text, lowercase, strip_accents):
    """Lower-cases and takes nonspacing marks away, as asked."""
    if lowercase:
        text = text.lower()
    if strip_accents:
        decomposed = unicodedata.normalize("NFD", text)
        text = "".join(x for x in decomposed if unicodedata.category(x) != "Mn")
    return text


class UnicodeTables(NamedTuple):
    """A two-level table: what is known of code point c is `entries[pages[c >> 8] << 8 | c & 255]`.

    An entry packs five fields, so that one look-up brings all: see `pack` and `FIELDS`.
    """

    pages: np.ndarray  # int32 (4352,)
    entries: np.ndarray  # int32 (pages in use · 256,)
    expansions: np.ndarray  # int32 (E,): normalised code points of those that change


# Field of an entry -> its first bit and its mask.
FIELDS = {
    "kind": (0, 3),  # KEEP, DROP, SPACE or SEPARATE
    "punctuation": (2, 1),  # 1 where the normalised code point is punctuation
    "length": (3, 7),  # code points after normalisation; 0 for DROP and SPACE
    "casing": (6, 3),  # 1 cased, 2 case-ignorable (cased or not), 0 neither: for final sigmas
    "start": (8, (1 << 18) - 1),  # place in `expansions`; 0: the code point stays itself
}


def pack(**fields):
    """An entry from its fields."""
    return sum(value << FIELDS[name][0] for name, value in fields.items())


# What a code point of a special token is: itself, and part of a word whatever it is.
VERBATIM = pack(kind=KEEP, length=1)


@functools.cache
def unicode_tables(lowercase, strip_accents, split_cjk=True):
    """The tables for one setting. Takes about a second; made once per process and setting."""
    entries = np.full(NUM_CODE_POINTS, VERBATIM, np.int32)
    casing = _casing() if lowercase else np.zeros(NUM_CODE_POINTS, np.int32)
    starts = {}  # normalised text -> where it begins in `expansions`
    expansions = [0]  # so that no place is 0, which means: unchanged
    for code in range(NUM_CODE_POINTS):
        character = chr(code)
        if unicodedata.category(character) in ("Cn", "Co") and not is_cjk(code):
            continue  # unassigned or private: nine of ten
        kind = kind_of(character, split_cjk)
        if kind in (DROP, SPACE):
            entries[code] = pack(kind=kind)
            continue
        normalized = normalize(character, lowercase, strip_accents)
        start = 0
        if normalized != character:
            start = starts.setdefault(normalized, len(expansions))
            if start == len(expansions):
                expansions.extend(map(ord, normalized))
        # No expansion into several code points holds punctuation (a test goes through them all).
        punctuation = len(normalized) == 1 and is_punctuation(normalized)
        entries[code] = pack(
            kind=kind,
            punctuation=int(punctuation),
            length=len(normalized),
            casing=int(casing[code]),
            start=start,
        )
    unique, pages = np.unique(entries.reshape(-1, 1 << PAGE_BITS), axis=0, return_inverse=True)
    return UnicodeTables(
        pages.astype(np.int32).ravel(), unique.ravel(), np.array(expansions, np.int32)
    )


@functools.cache
def _casing():
    """1: cased, 2: case-ignorable (cased or not), as `str.lower` sees them around a capital sigma.

    Python gives no access to the two properties, but tells them by what it makes of Σ, which
    becomes ς after a cased letter at a word's end; case-ignorable code points are looked through.
    """
    casing = np.zeros(NUM_CODE_POINTS, np.int32)
    for code in range(NUM_CODE_POINTS):
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Co", "Cs") or (category == "Lo" and code >= 0x3000):
            continue  # neither cased nor ignorable; the great blocks of ideographs and Hangul
        if ("a" + character + "Σ").lower().endswith("ς"):
            casing[code] = 1 if (" " + character + "Σ").lower().endswith("ς") else 2
    return casing
