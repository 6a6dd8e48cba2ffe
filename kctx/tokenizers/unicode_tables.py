"""What BERT's basic tokenizer asks of each code point, as arrays that a graph can look up.

The rules are those of the reference implementation (google-research/bert, tokenization.py), worked
out once for all 1,114,112 code points from Python's own `unicodedata`.
"""

import functools
import unicodedata
from typing import NamedTuple

import numpy as np

NUM_CODE_POINTS = 0x110000
# Nothing but unassigned and private code points lies outside: planes 4 to 13, 15 and 16.
ASSIGNED = (*range(0x40000), *range(0xE0000, 0xF0000))
PAGE_BITS = 8  # code points share pages of 256; most pages are alike and stored once

# Kinds of code points. A separate code point is a word of its own.
KEEP, DROP, SPACE, SEPARATE = range(4)

# An entry is an int32 made so that `entry + code point` brings all that is needed at once:
#   bits 0-20   the normalised code point, or its place in `expansions` if it becomes several
#   bit 21      takes the carry of that sum
#   bit 22, 23  whether a word ends before it, after it
#   bits 24-26  how many code points it becomes; 0 for what is dropped and for white space
#   bit 27      whether it is a mark that Unicode reorders and accent stripping leaves
#   bit 28      whether it is the capital sigma, which is lower-cased in two ways
# so that the greatest entry of a batch tells what the batch needs.
VALUE = (1 << 21) - 1
CUT_BEFORE, CUT_AFTER = 1 << 22, 1 << 23
LENGTH_BIT, LENGTH_MASK = 24, 7
SINGLE = 1 << LENGTH_BIT  # the entry of a code point that stays as it is
SEVERAL = 2 << LENGTH_BIT  # entries of those that become several are as great or greater
REORDERED, SIGMA = 1 << 27, 1 << 28
CAPITAL_SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2

# A context, looked up only where it is needed, says how a code point acts on those around it.
# In bits 0-1, its part in the rule of the final sigma:
UNCASED, CASED, CASE_IGNORABLE = range(3)
# In bits 2-5, its canonical ordering: 0 other marks do not pass it, 1-14 the rank among the marks
# that stay, and for what goes, which others pass:
CASING_MASK, ORDER_BIT = 3, 2
PASSED = 15

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
    """Two-level tables: that of code point c is `entries[pages[c >> 8] + (c & 255)]`."""

    pages: np.ndarray  # int32 (4352,): where each page begins
    entries: np.ndarray  # int32 (pages in use · 256,)
    contexts: np.ndarray  # int32 (pages in use · 256,)
    expansions: np.ndarray  # int32 (E,): normalised code points of those that become several


@functools.cache
def unicode_tables(lowercase, strip_accents, split_cjk=True):
    """The tables for one setting. Takes about a second; made once per process and setting."""
    entries = np.full(NUM_CODE_POINTS, SINGLE, np.int32)
    expansions = []
    for code in ASSIGNED:
        character = chr(code)
        if unicodedata.category(character) in ("Cn", "Co") and not is_cjk(code):
            continue
        kind = kind_of(character, split_cjk)
        if kind in (DROP, SPACE):
            entries[code] = (kind == SPACE) * CUT_AFTER
            continue
        normalized = normalize(character, lowercase, strip_accents)
        value = code
        if len(normalized) == 1:
            value = ord(normalized)
        elif normalized:
            value = len(expansions)
            expansions.extend(map(ord, normalized))
        # No expansion into several code points holds punctuation (a test goes through them all).
        alone = kind == SEPARATE or (len(normalized) == 1 and is_punctuation(normalized))
        entries[code] = (
            (value - code & VALUE)
            + alone * (CUT_BEFORE + CUT_AFTER)
            + (len(normalized) << LENGTH_BIT)
            + (strip_accents and is_reordered(character)) * REORDERED
            + (lowercase and code == CAPITAL_SIGMA) * SIGMA
        )
    columns = np.stack([entries, _contexts()]).reshape(2, -1, 1 << PAGE_BITS).swapaxes(0, 1)
    unique, pages = np.unique(columns, axis=0, return_inverse=True)
    return UnicodeTables(
        pages.astype(np.int32).ravel() << PAGE_BITS,
        unique[:, 0].ravel(),
        unique[:, 1].ravel(),
        np.array([*expansions, 0], np.int32),  # never empty
    )


def is_reordered(character):
    """A mark that may change places with its neighbours, and is not taken away as an accent."""
    return unicodedata.combining(character) > 0 and unicodedata.category(character) != "Mn"


@functools.cache
def _contexts():
    """int32 (1114112,): `CASING_MASK` and `ORDER_BIT` say how to read it."""
    contexts = np.zeros(NUM_CODE_POINTS, np.int32)
    marks = [code for code in ASSIGNED if is_reordered(chr(code))]
    classes = sorted({unicodedata.combining(chr(code)) for code in marks})
    for code in ASSIGNED:
        character = chr(code)
        category = unicodedata.category(character)
        if category in ("Cn", "Co") or (category == "Lo" and code >= 0x3000):
            continue  # no case and no marks; the great blocks of ideographs and Hangul are "Lo"
        casing, order = _casing(character), 0
        if kind_of(character) == DROP:
            casing, order = CASE_IGNORABLE, PASSED  # as if it were not there
        elif unicodedata.combining(character):
            order = PASSED
            if category != "Mn":
                order = 1 + classes.index(unicodedata.combining(character))
        contexts[code] = casing + (order << ORDER_BIT)
    return contexts


def _casing(character):
    """UNCASED, CASED or CASE_IGNORABLE, as `str.lower` sees it beside a capital sigma.

    Python gives no access to the two properties, but tells them by what it makes of Σ, which
    becomes ς after a cased letter at a word's end; case-ignorable code points are looked through.
    """
    if ("a" + character + "Σ").lower()[-1] != "ς":
        return UNCASED
    return CASED if (" " + character + "Σ").lower()[-1] == "ς" else CASE_IGNORABLE
