"""Tagged sentences in CoNLL's columns: a word a line, a blank line between sentences."""

import re
import warnings
from collections import Counter
from dataclasses import dataclass, field

from kctx.arguments import check_choice
from kctx.data.example_files import check_column, check_names, lines_of, read_text
from kctx.data.held_out import check_every
from kctx.tag_schemes import OUTSIDE, SCHEMES, all_tags, convert_tags, is_tag_of, tag_spans

DOCUMENT = "-DOCSTART-"
# Not what Unicode calls white space: a column may hold a no-break or an ideographic space.
_SPACES = re.compile("[ \t]+")


@dataclass(frozen=True)
class TaggedSentences:
    """Sentences of words with a tag each.

    Attributes:
        words: list of lists of str.
        tags: list of lists of str, of the same lengths; or None when no tag column was asked for.
        tag_names: list of str, the tag of each id; None without tags.
        scheme: "BIO", "BIOES", "BMES", "BILOU", or None: the tags mark no entities.
        lines: list of int, the line (from 1) where each sentence begins.
        report: dict of what was changed or found missing: "repaired" int, sentences whose tags
            broke their scheme; "unknown_tags" dict of tag to number.
        predicates: list of int, the place of the word that each sentence's tags are roles of; None
            where they are no roles.
    """

    words: list
    tags: list | None
    tag_names: list | None
    scheme: str | None = None
    lines: list | None = None
    report: dict = field(default_factory=dict)
    predicates: list | None = None

    def __len__(self):
        return len(self.words)

    @property
    def tag_ids(self):
        """list of lists of int; -1 for a tag that is not among `tag_names`."""
        number_of = {name: number for number, name in enumerate(self.tag_names)}
        return [[number_of.get(tag, -1) for tag in sentence] for sentence in self.tags]

    def take(self, indices):
        """The sentences at these places, in this order."""

        def chosen(column):
            return None if column is None else [column[index] for index in indices]

        columns = (self.words, self.tags, self.lines, self.predicates)
        words, tags, lines, predicates = map(chosen, columns)
        return TaggedSentences(
            words, tags, self.tag_names, self.scheme, lines, self.report, predicates
        )

    def split(self, every):
        """(the others, every so-manieth sentence), for a dev set where none is given.

        A sentence that is there once for each of its predicates counts once and stays together.

        Raises:
            ValueError: there are fewer sentences than `every`, so none would be held out.
        """
        once = self.predicates is None or self.lines is None
        starts = range(len(self)) if once else self.lines
        numbers = {start: number for number, start in enumerate(dict.fromkeys(starts))}
        check_every(every, len(numbers), "sentences")
        held_out = [numbers[start] % every == every - 1 for start in starts]
        return tuple(
            self.take([row for row, held in enumerate(held_out) if held == wanted])
            for wanted in (False, True)
        )


def read_conll(
    path,
    word_column=0,
    tag_column=-1,
    scheme=None,
    *,
    convert_to=None,
    tag_names=None,
    unknown_tags="refuse",
    separator="auto",
    encoding="utf-8",
):
    """Reads words and tags in columns; lines of `-DOCSTART-` are left out.

    Args:
        path: file name.
        word_column: int, column of the words; negative numbers count from the end. Default 0.
        tag_column: int, column of the tags, or None for words to be tagged. Default: the last.
        scheme: how the tags of the file mark entities: "BIO1" (B only between two entities of one
            kind), "BIO" (BIO2: B at every start), "BIOES", "BMES" or "BILOU". Default None: they do
            not, as parts of speech, and are taken as they are.
        convert_to: scheme of the tags that are given back. Default: that of the file, "BIO" for
            BIO1.
        tag_names: known tags in the order of their ids, for a second file. Default: those of the
            file; with a scheme all tags of its labels, "O" first.
        unknown_tags: what to do with tags that are not in `tag_names`: "refuse", or "count": they
            stay, for the metrics to count as missed, and are reported.
        separator: "tab", "space" (one or more, or tabs), or "auto": tab where every line has one.
        encoding: default "utf-8"; a byte order mark is dropped.

    Returns:
        `TaggedSentences`. Entities whose tags break their scheme are read as seqeval reads them,
        and written legally; `report["repaired"]` counts the sentences, with a warning.

    Raises:
        ValueError: names the file and the line: a line of another number of columns than the first
            of its sentence, a missing column, an empty cell, a tag that is not of the scheme, an
            unknown tag; or there are no sentences.
    """
    check_choice("scheme", scheme, (None, *SCHEMES))
    check_choice("convert_to", convert_to, (None, *SCHEMES[1:]))
    check_choice("unknown_tags", unknown_tags, ("refuse", "count"))
    check_choice("separator", separator, ("auto", "tab", "space"))
    check_column("word_column", word_column)
    if tag_column is not None:
        check_column("tag_column", tag_column)
    check_names("tag_names", tag_names)
    if convert_to is not None and scheme is None:
        raise ValueError(
            f"`convert_to` needs the `scheme` of the file. Received: convert_to={convert_to!r}"
        )
    words, tags, lines = [], [], []
    for block in file_blocks(path, separator, encoding):
        cells = [_cells(row, line, path, word_column, tag_column) for line, row in block]
        sentence, sentence_tags = zip(*cells, strict=True)
        for (line, _), tag in zip(block, sentence_tags, strict=True):
            if scheme is not None and tag_column is not None and not is_tag_of(tag, scheme):
                raise ValueError(
                    f"{path}, line {line}: {tag!r} is not a tag of the scheme {scheme}."
                )
        words.append(list(sentence))
        tags.append(list(sentence_tags))
        lines.append(block[0][0])
    if not words:
        raise ValueError(f"{path} holds no sentence.")
    if tag_column is None:
        return TaggedSentences(words, None, None, None, lines)
    report = {"repaired": 0}
    if scheme is not None:
        report["repaired"] = sum(convert_tags(row, scheme) != row for row in tags)
        if report["repaired"]:
            warnings.warn(
                f"{path}: the tags of {report['repaired']} of {len(tags)} sentences break the "
                f"scheme {scheme}; their entities are read as seqeval does.",
                stacklevel=2,
            )
        scheme = convert_to or ("BIO" if scheme == "BIO1" else scheme)
        tags = [convert_tags(row, scheme) for row in tags]
    if tag_names is None:
        tag_names = names_of_tags(tags, scheme)
    report["unknown_tags"] = unknown_counts(tags, lines, tag_names, path, unknown_tags == "refuse")
    return TaggedSentences(words, tags, list(tag_names), scheme, lines, report)


def file_blocks(path, separator, encoding):
    """The `column_blocks` of a file, of one separator in all of it."""
    lines = lines_of(read_text(path, encoding))
    if separator == "auto":
        filled = [line for line in lines if line.strip(" \t") and not line.startswith(DOCUMENT)]
        separator = "tab" if all("\t" in line for line in filled) else "space"
    return column_blocks(lines, path, separator)


def column_blocks(lines, path, separator):
    """Runs of lines that are neither blank nor `-DOCSTART-`, one at a time.

    Args:
        lines: iterable of str, without line ends.
        path: what to call them in messages.
        separator: "tab", "space", or "auto": tab where every line of the run has one.

    Yields:
        List of (number of the line, from 1, cells).

    Raises:
        ValueError: lines of a run have different numbers of cells.
    """
    block = []
    for number, line in enumerate(lines, 1):
        if line.strip(" \t") and not line.startswith(DOCUMENT):
            block.append((number, line))
        elif block:
            yield _split(block, path, separator)
            block = []
    if block:
        yield _split(block, path, separator)


def _split(block, path, separator):
    """Numbered lines with their cells, of which all have equally many."""
    if separator == "auto":
        separator = "tab" if all("\t" in line for _, line in block) else "space"
    rows = [
        (number, line.split("\t") if separator == "tab" else _SPACES.split(line.strip(" \t")))
        for number, line in block
    ]
    first, width = rows[0][0], len(rows[0][1])
    for number, row in rows:
        if len(row) != width:
            raise ValueError(
                f"{path}, line {number}: the line has {len(row)} columns, the first of its "
                f"sentence, line {first}, has {width}. Received: {row}"
            )
    return rows


def cell(row, column, name, path, line):
    """A cell of a line, or a `ValueError` that says where none is."""
    if not -len(row) <= column < len(row):
        raise ValueError(
            f"{path}, line {line}: no column {column} for the {name}, the line has {len(row)} "
            f"(numbered from 0): {row}"
        )
    if not row[column].strip(" \t"):
        raise ValueError(f"{path}, line {line}: the {name} is empty.")
    return row[column]


def _cells(row, line, path, word_column, tag_column):
    """(word, tag) of a line; the tag is None without a column for it."""
    cells = []
    for name, column in (("word", word_column), ("tag", tag_column)):
        cells.append(None if column is None else cell(row, column, name, path, line))
    if tag_column is not None and len(row) == 1:
        raise ValueError(f"{path}, line {line}: one column only, so there is no tag: {row}")
    return tuple(cells)


def names_of_tags(tags, scheme):
    if scheme is not None:
        return all_tags({label for row in tags for label, _, _ in tag_spans(row)}, scheme)
    return sorted({tag for row in tags for tag in row}, key=lambda tag: (tag != OUTSIDE, tag))


def unknown_counts(tags, lines, tag_names, path, refuse):
    """How often each tag occurs that is not in `tag_names`, or an error for the first."""
    known, found = set(tag_names), Counter()
    for row, line in zip(tags, lines, strict=True):
        for place, tag in enumerate(row):
            if tag not in known:
                if refuse:
                    raise ValueError(
                        f"{path}, line {line + place}: the tag {tag!r} is not among the known "
                        f"ones: {list(tag_names)}. `unknown_tags='count'` accepts it."
                    )
                found[tag] += 1
    return dict(found)
