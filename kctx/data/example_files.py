"""TSV, CSV and JSONL files to rows, each with the line it begins on."""

import csv
import io
import json
import os
import re

from kctx import files
from kctx.data.document_index import check_encoding

_LINE_END = re.compile("\r\n|\r|\n")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
FIELD_LIMIT = 1 << 30  # of Python's CSV reader, whose own limit is 128 kB


def format_of(path, format):
    if format == "auto":
        end = os.path.splitext(os.fspath(path))[1].lower()
        endings = {".tsv": "tsv", ".txt": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl"}
        format = endings.get(end)
        if format is None:
            raise ValueError(
                f"The format of {path} is not known from its name: give format='tsv', 'csv' or "
                "'jsonl'."
            )
    if format not in ("tsv", "csv", "jsonl"):
        raise ValueError(f"`format` must be tsv, csv, jsonl or auto. Received: format={format!r}")
    return format


def read_text(path, encoding):
    """The text of a file in an encoding, whose name is checked."""
    return files.read_text(path, check_encoding(encoding))


def lines_of(content):
    """The lines of a text that end in LF, CR LF, or CR alone as on old Macs."""
    return _LINE_END.split(content)


def parsed_json(content, path):
    """What a text in JSON holds, or a `ValueError` that names the file."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:  # of 5,000 digits, of 100,000 brackets
        raise ValueError(f"{path}: not JSON ({error}).") from error


def check_column(argument, value, names=False):
    """Raises a `ValueError` unless a column is given by its number, or with `names` by its name."""
    if isinstance(value, bool) or not isinstance(value, (int, str) if names else int):
        kinds = "the name or the number" if names else "the number"
        raise ValueError(
            f"`{argument}` must be {kinds} of a column. Received: {argument}={value!r}"
        )


def check_names(argument, names):
    """Raises a `ValueError` unless they are None or a list of different strings."""
    listed = isinstance(names, (list, tuple)) and all(isinstance(x, str) for x in names)
    if names is not None and (not listed or len(set(names)) < len(names)):
        raise ValueError(f"`{argument}` must be a list of different names. Received: {names!r}")


def clean(text):
    """Text without halves of surrogate pairs, which JSON can spell and no encoding can write."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def table(content, path, delimiter, quoted):
    """Rows (lists of str) and the line each begins on; blank lines are left out."""
    rows, lines = [], []
    if not quoted:
        for number, line in enumerate(lines_of(content), 1):
            if line.strip():
                rows.append(line.split(delimiter))
                lines.append(number)
        return rows, lines
    limit = csv.field_size_limit(FIELD_LIMIT)
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
    begin = 1
    try:
        for row in reader:
            if row and any(field.strip() for field in row):
                rows.append(row)
                lines.append(begin)
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {begin}: quotes do not match ({error}). If quotes are plain text in "
            "this file, give quoting=False."
        ) from error
    finally:
        csv.field_size_limit(limit)
    return rows, lines


def json_objects(content, path):
    """Yields (line, dict) for each line of JSONL; blank lines are left out."""
    for number, line in enumerate(lines_of(content), 1):
        if not line.strip():
            continue
        item = parsed_json(line, f"{path}, line {number}")
        if not isinstance(item, dict):
            raise ValueError(f"{path}, line {number}: expected a JSON object. Received: {line!r}")
        yield number, item


def json_rows(content, path, wanted, allow_unlabelled):
    rows, lines = [], []
    for number, item in json_objects(content, path):
        for column in wanted:
            missing = column is not None and item.get(column) is None
            if missing and not (column == wanted[2] and allow_unlabelled):
                raise ValueError(
                    f"{path}, line {number}: no value for {column!r}. Its keys: {sorted(item)}"
                )
            if column is not None and column != wanted[2] and not isinstance(item[column], str):
                raise ValueError(
                    f"{path}, line {number}: {column!r} is not a text. Received: {item[column]!r}"
                )
            if isinstance(item.get(column), str):
                item[column] = clean(item[column])
        if wanted[2] is not None:
            value = item.get(wanted[2])
            if isinstance(value, (list, dict)):
                raise ValueError(
                    f"{path}, line {number}: {wanted[2]!r} must be a text, a number, true or "
                    f"false. Received: {value!r}"
                )
            if value is not None and not isinstance(value, str):
                value = json.dumps(value)
            item[wanted[2]] = value or ""
        rows.append(item)
        lines.append(number)
    return rows, lines, wanted


def advice_on_format(row):
    """What to try where a column is missing because the file is of the other format."""
    if any("\t" in cell for cell in row):  # which no cell of TSV holds
        return " There are tabs in it: `format` may have to be tsv (--format tsv)."
    if len(row) == 1 and "," in row[0]:
        return " There are no tabs in it, but commas: `format` may have to be csv (--format csv)."
    return ""
