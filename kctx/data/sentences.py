"""Sentence splitting for English, Chinese and other scripts: one pure function, no model.

A run of terminators with the quotes and brackets that close after it ends a sentence. Terminators
of scripts written without spaces do so at once; `.`, `!` and `?` only before white space and
anything but a lower-case letter, and a `.` not after an abbreviation, an initial or a number sign.
"""

import re

# Terminators that end a sentence without white space after them.
_FULL_STOPS = "。！？；｡।॥؟۔።։။។‼⁇⁈⁉"
_CLOSERS = "\"'”’»›)]}」』）】》〉〕］｝〗"
_OPENERS = "\"'“‘«‹([{「『（【《〈〔［｛〖"
_END = re.compile(f"[.!?…{_FULL_STOPS}]+[{re.escape(_CLOSERS)}]*")
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*$")

# Abbreviations that stand before the thing they belong to.
_BEFORE_NAME = """
adm al brig capt cf cmdr col dr drs esp ex fig figs gen gov hon lt maj messrs mlle mme mr mrs ms
msgr mt nos op pp prof rep reps rev sec sen sens sgt sr st vol vols vs viz approx
"""
# Abbreviations that end a sentence as often as not: the next word decides.
_ANYWHERE = """
a.m p.m u.s u.k u.n e.u d.c ph.d b.c a.d jr inc ltd co corp etc i.e e.g bros dept est jan feb mar
apr jun jul aug sep sept oct nov dec
"""
_STARTERS = """
A After All Although An And As At Both But By During Each Even For From He Her His However I If In
It Its Many Most No Not On One Our She Since So Some Such That The Their Then There These They This
Those Though Thus Under Until We What When Where While Who Why With You Your
"""
_BEFORE_NAME, _ANYWHERE, _STARTERS = (
    frozenset(words.split()) for words in (_BEFORE_NAME, _ANYWHERE, _STARTERS)
)
_NUMBER_SIGNS = frozenset(("no", "nos", "p", "pp", "fig", "figs", "vol", "art", "sec", "ch"))


def split_sentences(text):
    """Split a paragraph into sentences.

    Args:
        text: str; line breaks count as white space.

    Returns:
        List of str without white space at their ends. Together they hold every other character of
        `text`, in order; a text of white space gives an empty list.
    """
    sentences, begin = [], 0
    for match in _END.finditer(text):
        if _ends_sentence(text, begin, match):
            sentence = text[begin : match.end()].strip()
            if sentence:
                sentences.append(sentence)
            begin = match.end()
    rest = text[begin:].strip()
    if rest:
        sentences.append(rest)
    return sentences


def _ends_sentence(text, begin, match):
    mark, end = match.group(), match.end()
    if end == len(text):
        return True
    if any(character in _FULL_STOPS for character in mark):
        return True
    after = text[end]
    if "…" in mark and _is_ideograph(after):
        return True
    if not after.isspace():
        return False
    # The first characters of what may be the next sentence.
    following = text[end : end + 40].lstrip()
    following_bare = following.lstrip(_OPENERS)
    if not following_bare:
        return bool(following)
    if following_bare[0].islower():
        return False
    if mark[0] == "." and mark.count(".") == 1:
        return not _is_abbreviation(text, begin, match.start(), following_bare)
    return True


def _is_abbreviation(text, begin, stop, following):
    found = _LAST_WORD.search(text, max(begin, stop - 24), stop)
    if not found:
        return False
    word = found.group()
    lowered = word.lower()
    if lowered in _NUMBER_SIGNS and following[0].isdigit():
        return True
    if lowered in _BEFORE_NAME:
        return True
    if lowered in _ANYWHERE or "." in word:
        starter = re.match(r"\w+", following)
        return not (starter and starter.group() in _STARTERS)
    # One capital is an initial, unless it is the pronoun at the end of a sentence.
    return len(word) == 1 and word.isupper() and word != "I" and not _is_ideograph(word)


def _is_ideograph(character):
    return "\u3400" <= character <= "\u9fff" or "\u3040" <= character <= "\u30ff"
