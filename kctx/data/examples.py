"""Labelled text for fine-tuning: TSV, CSV and JSONL files to lists."""

from dataclasses import dataclass

from kctx.data.example_files import (
    advice_on_format,
    check_column,
    check_names,
    format_of,
    json_rows,
    read_text,
    table,
)
from kctx.data.held_out import check_every

FLOAT32_MAX = 3.4028235e38


@dataclass(frozen=True)
class Examples:
    """Texts and what is known of them, in the order of the file.

    Attributes:
        texts: list of str.
        pairs: list of str, the second text of each example, or None.
        labels: list of int (classification), float (regression) or None (unlabelled row); or
            None when no label column was asked for.
        label_names: list of str, the name of each int label; None for regression.
        lines: list of int, the line of the file (from 1) where each example begins.
        has_header: whether the first row was taken for names. Default False.
    """

    texts: list
    pairs: list | None
    labels: list | None
    label_names: list | None
    lines: list
    has_header: bool = False

    def __len__(self):
        return len(self.texts)

    def take(self, indices):
        """The examples at these places, in this order."""

        def chosen(column):
            return None if column is None else [column[index] for index in indices]

        return Examples(
            chosen(self.texts),
            chosen(self.pairs),
            chosen(self.labels),
            self.label_names,
            chosen(self.lines),
            self.has_header,
        )

    def split(self, every):
        """(the others, every so-manieth example), for a dev set where none is given.

        Raises:
            ValueError: there are fewer examples than `every`, so none would be held out.
        """
        check_every(every, len(self), "examples")
        held_out = range(every - 1, len(self), every)
        rest = [index for index in range(len(self)) if index not in held_out]
        return self.take(rest), self.take(held_out)


def read_examples(
    path,
    text=0,
    pair=None,
    label=None,
    *,
    format="auto",
    header="auto",
    quoting="auto",
    encoding="utf-8",
    label_names=None,
    regression=False,
    allow_unlabelled=False,
    extra_columns=False,
):
    """Read single sentences or pairs, with or without labels.

    Args:
        path: file name.
        text: column of the text: its name in the header (or JSON key), or its number from 0.
        pair: column of the second text, or None.
        label: column of the label, or None for text to predict.
        format: `"tsv"`, `"csv"` or `"jsonl"`; `"auto"` goes by the file name's end (.tsv and .txt;
            .csv; .jsonl and .json).
        header: whether the first row holds names. `"auto"`: yes if a column is given by name; else
            yes if the first row's label is no number (regression), is not in `label_names`, or, if
            labels are discovered, occurs in no other row while all other labels do repeat. An
            empty cell is a missing label, never a header. For a second file of a kind, give the
            first one's `Examples.has_header`.
        quoting: whether fields may be quoted as in CSV. `"auto"`: for CSV only; quotes in a TSV
            file are text.
        encoding: default `"utf-8"`; a byte order mark is dropped.
        label_names: list of str, known labels in the order of their ids; None discovers them
            (sorted, as numbers if all are integers).
        regression: labels are floats.
        allow_unlabelled: rows with an empty (or, in JSON, null or missing) label get None instead
            of an error.
        extra_columns: accept rows with more columns than the first row.

    Returns:
        `Examples`.

    Raises:
        ValueError: names the file and the line: a missing column, a row of another width, a
            missing or unknown label, a label that is no finite number, decimal numbers as classes,
            a list or an object as a label, broken JSON or quoting, or bytes that do not fit the
            encoding.
    """
    for name, value in (("header", header), ("quoting", quoting)):
        if value not in ("auto", True, False):
            raise ValueError(f'`{name}` must be True, False or "auto". Received: {name}={value!r}')
    for name, column in (("text", text), ("pair", pair), ("label", label)):
        if name == "text" or column is not None:
            check_column(name, column, names=True)
    check_names("label_names", label_names)
    format = format_of(path, format)
    has_header = False
    content = read_text(path, encoding)
    if format == "jsonl":
        rows, lines, columns = json_rows(content, path, (text, pair, label), allow_unlabelled)
    else:
        quoted = format == "csv" if quoting == "auto" else quoting
        cells, lines = table(content, path, "\t" if format == "tsv" else ",", quoted)
        has_header = header
        if header == "auto":
            has_header = _has_header(cells, (text, pair, label), label_names, regression)
        rows, lines, columns = _columns(
            cells, lines, path, (text, pair, label), has_header, extra_columns
        )
    if not rows:
        raise ValueError(f"{path} holds no example.")
    text_column, pair_column, label_column = columns
    labels = names = None
    if label_column is not None:
        raw = [row[label_column] for row in rows]
        labels, names = _labels(raw, lines, path, label_names, regression, allow_unlabelled)
    return Examples(
        [row[text_column] for row in rows],
        None if pair_column is None else [row[pair_column] for row in rows],
        labels,
        names,
        lines,
        has_header,
    )


def _has_header(table, wanted, label_names, regression):
    if any(isinstance(column, str) for column in wanted):
        return True
    label = wanted[2]
    if label is None or len(table) < 2 or not -len(table[0]) <= label < len(table[0]):
        return False
    first = table[0][label].strip()
    rest = [row[label].strip() for row in table[1:] if label < len(row)]
    if not first:
        return False
    if regression:
        return not _is_number(first)
    if label_names is not None:
        return first not in label_names
    return first not in rest and len(set(rest)) * 2 <= len(rest)


def _columns(table, lines, path, wanted, has_header, extra_columns):
    """Check the widths and find the columns. Returns rows, lines and the three column numbers."""
    if not table:
        return [], [], wanted
    width = len(table[0])
    advice = advice_on_format(table[0])
    columns = []
    for column in wanted:
        if isinstance(column, str):
            names = [name.strip() for name in table[0]]
            if not has_header or column not in names:
                known = "The file has no header: number the columns from 0."
                if has_header:
                    known = (
                        f"The first row is {names}. Without a header, number the columns from 0."
                    )
                raise ValueError(f"{path}, line {lines[0]}: no column {column!r}. {known}{advice}")
            if names.count(column) > 1:
                raise ValueError(
                    f"{path}, line {lines[0]}: {names.count(column)} columns are called "
                    f"{column!r}: give its number, from 0."
                )
            column = names.index(column)
        elif column is not None and not 0 <= column < width:
            raise ValueError(
                f"{path}, line {lines[0]}: no column {column}, the row has {width} (numbered from "
                f"0).{advice}"
            )
        columns.append(column)
    for row, line in zip(table, lines, strict=True):
        if len(row) < width or (len(row) > width and not extra_columns):
            more = " `extra_columns=True` (--extra-columns) accepts it." * (len(row) > width)
            raise ValueError(
                f"{path}, line {line}: the row has {len(row)} columns, the first has {width}.{more}"
            )
    skip = 1 if has_header else 0
    return table[skip:], lines[skip:], columns


def _labels(raw, lines, path, label_names, regression, allow_unlabelled):
    raw = [value.strip() for value in raw]
    for value, line in zip(raw, lines, strict=True):
        if not value and not allow_unlabelled:
            raise ValueError(f"{path}, line {line}: the label is missing.")
        if regression and value and not _is_number(value):
            raise ValueError(
                f"{path}, line {line}: the label of a regression must be a finite number. "
                f"Received: {value!r}"
            )
    if regression:
        return [float(value) if value else None for value in raw], None
    names = label_names
    if names is None:
        names = _sorted_labels({value for value in raw if value})
        if all(map(_is_number, names)) and not all(map(_is_integer, names)):
            decimal = next(value for value in raw if value and not _is_integer(value))
            raise ValueError(
                f"{path}, line {lines[raw.index(decimal)]}: the labels are numbers, not all whole: "
                f"{decimal!r}. To predict numbers give `regression=True`; to take them for names "
                "of classes give `label_names`."
            )
    number_of = {name: number for number, name in enumerate(names)}
    for value, line in zip(raw, lines, strict=True):
        if value and value not in number_of:
            raise ValueError(
                f"{path}, line {line}: unknown label {value!r}. Known labels: {list(names)}"
            )
    return [number_of[value] if value else None for value in raw], list(names)


def _sorted_labels(values):
    try:
        return sorted(values, key=lambda value: (int(value), value))
    except ValueError:
        return sorted(values)


def _is_integer(value):
    try:
        int(value)
    except ValueError:
        return False
    return True


def _is_number(value):
    try:
        # Python reads "1_000" as a thousand. The comparison is false for NaN, too.
        return "_" not in value and abs(float(value)) <= FLOAT32_MAX
    except ValueError:
        return False
