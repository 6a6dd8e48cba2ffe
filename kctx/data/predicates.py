"""Predicates and the roles of their words, in columns as those of CoNLL-2005."""

import re
import warnings

from kctx.arguments import check_choice
from kctx.data.conll import (
    TaggedSentences,
    cell,
    file_blocks,
    names_of_tags,
    unknown_counts,
)
from kctx.data.example_files import check_column, check_names
from kctx.tag_schemes import OUTSIDE, convert_tags, is_tag_of

NO_PREDICATE = ("-", "_", OUTSIDE)
_BRACKETED = re.compile(r"(?:\(([^()*\s]+))?\*(\))?")


def read_predicates(
    path,
    predicate_column,
    word_column=0,
    role_column=None,
    *,
    tag_names=None,
    unknown_tags="refuse",
    separator="auto",
    encoding="utf-8",
):
    """Reads sentences with their predicates and roles, one word a line.

    A line holds a word, a cell that names the predicate if the word is one ("-", "_" or "O" if it
    is none), and a role for each predicate of the sentence, in their order: a column each, and
    none behind them. Roles are BIO tags ("B-A0") or brackets ("(A0*", "*", "*)"), which become BIO.

    Args:
        path: file name.
        predicate_column: int, column of the predicates; negative numbers count from the end.
        word_column: int, column of the words. Default 0.
        role_column: int, column of the first predicate's roles. Default: the one behind
            `predicate_column`.
        tag_names, unknown_tags, separator, encoding: as of `read_conll`.

    Returns:
        `TaggedSentences` in BIO, one for each predicate, with `predicates`. Sentences without a
        predicate are left out; `report["without_predicate"]` counts them.

    Raises:
        ValueError: names the file and the line: a line of another number of columns than the first
            of its sentence, other than one column of roles for each predicate, a missing column, an
            empty word, something that is no role, brackets that do not match, an unknown role; or
            there is no predicate.
    """
    check_choice("unknown_tags", unknown_tags, ("refuse", "count"))
    check_choice("separator", separator, ("auto", "tab", "space"))
    check_column("predicate_column", predicate_column)
    check_column("word_column", word_column)
    if role_column is not None:
        check_column("role_column", role_column)
    check_names("tag_names", tag_names)
    words, tags, lines, predicates = [], [], [], []
    report = {"repaired": 0, "without_predicate": 0}
    for block in file_blocks(path, separator, encoding):
        sentence = [cell(row, word_column, "word", path, line) for line, row in block]
        marks = [cell(row, predicate_column, "predicate", path, line) for line, row in block]
        found = [place for place, mark in enumerate(marks) if mark not in NO_PREDICATE]
        report["without_predicate"] += not found
        width = len(block[0][1])
        first = predicate_column % width + 1 if role_column is None else role_column
        first = first + width if first < 0 else first
        if found and 0 <= first < width - len(found):
            raise ValueError(
                f"{path}, line {block[0][0]}: number of predicates in the sentence: {len(found)}, "
                f"of columns of roles, from column {first} (numbered from 0) on: {width - first}."
            )
        for number, predicate in enumerate(found):
            name = f"roles of predicate {number + 1}"
            roles = [cell(row, first + number, name, path, line) for line, row in block]
            read = _bio(roles, path, block)
            report["repaired"] += convert_tags(read, "BIO") != read
            words.append(sentence)
            tags.append(convert_tags(read, "BIO"))
            lines.append(block[0][0])
            predicates.append(predicate)
    if not words:
        raise ValueError(f"{path} holds no predicate in column {predicate_column}.")
    if report["repaired"]:
        warnings.warn(
            f"{path}: the roles of {report['repaired']} of {len(tags)} predicates break the scheme "
            "BIO; they are read as seqeval does.",
            stacklevel=2,
        )
    if tag_names is None:
        tag_names = names_of_tags(tags, "BIO")
    report["unknown_tags"] = unknown_counts(tags, lines, tag_names, path, unknown_tags == "refuse")
    return TaggedSentences(words, tags, list(tag_names), "BIO", lines, report, predicates)


def _bio(roles, path, block):
    """Roles of one predicate as BIO tags."""
    if not any("*" in role for role in roles):
        for (line, _), role in zip(block, roles, strict=True):
            if not is_tag_of(role, "BIO"):
                raise ValueError(
                    f"{path}, line {line}: {role!r} is no role, neither a tag of the scheme BIO "
                    "nor in brackets."
                )
        return roles
    tags, label = [], None
    for (line, _), role in zip(block, roles, strict=True):
        match = _BRACKETED.fullmatch(role)
        if match is None or (match[1] and label) or (match[2] and not (match[1] or label)):
            raise ValueError(f"{path}, line {line}: the brackets of {role!r} do not match.")
        label = match[1] or label
        tags.append(f"{'B' if match[1] else 'I'}-{label}" if label else OUTSIDE)
        label = None if match[2] else label
    if label:
        raise ValueError(f"{path}, line {block[-1][0]}: the role {label!r} does not end.")
    return tags
