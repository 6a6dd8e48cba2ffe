"""Raw files to requests, one at a time, and answers to JSON lines."""

import contextlib
import csv
import io
import itertools
import json
import os
import sys

FORMATS = ("auto", "txt", "tsv", "csv", "jsonl", "conll")


def format_of(path, format):
    """The format of a file, told by its name; text, one request a line, where nothing tells."""
    if format != "auto":
        return format
    ending = str(path).lower().removesuffix(".gz").rpartition(".")[2]
    known = {name: name for name in FORMATS[1:]}
    return {**known, "json": "jsonl"}.get(ending, "txt")


@contextlib.contextmanager
def opened(path):
    """A file to read as UTF-8, unpacked if gzip packed it, or stdin for "-".

    What is not UTF-8 becomes U+FFFD.

    Raises:
        ValueError: it begins like UTF-16, of which nothing would be left.
    """
    options = {"encoding": "utf-8-sig", "errors": "replace", "newline": ""}
    with _bytes_of(path) as (buffered, name):
        if buffered.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise ValueError(f"{name} begins like UTF-16: convert it to UTF-8.")
        yield io.TextIOWrapper(buffered, **options)


@contextlib.contextmanager
def _bytes_of(path):
    """(buffered binary file, what to call it)"""
    if str(path) == "-":
        if sys.stdin is None:
            raise ValueError("stdin is closed: there is nothing to read.")
        with open(sys.stdin.fileno(), "rb", closefd=False) as file:
            yield file, "stdin"
        return
    from kctx.files import unpacked

    with unpacked(path) as (packed, _):
        yield io.BufferedReader(packed), path


def check_output(source, target, argument="--output"):
    """Raises a `ValueError` where a file would be written over the one that is read."""
    both = "-" not in (str(source), str(target)) and os.path.exists(source)
    if both and os.path.exists(target) and os.path.samefile(source, target):
        raise ValueError(f"{argument} must not be what is read. Received: {target}")


def read_requests(file, name, format, required, optional=(), columns=(), many=None):
    """The requests in a file.

    Args:
        file: text file.
        name: str, what to call it in messages.
        format: "txt": each line is the only part of a request. "tsv" (without quoting) or "csv":
            a row is one. "jsonl": each line is an object.
        required, optional: names of the parts that the task takes.
        columns: names of columns, numbers of columns from 0, or keys, that hold the parts in the
            order of required and optional ones. Decimal numbers only never name columns of a row,
            and the first row is a request, too. Default: those named like the parts, if the first
            row names the required ones, else the first ones, of the first row too, for the
            required parts alone; stderr is told.
        many: name of the last part, if it is a list. In a row, it is all columns behind the others.

    Yields:
        (dict by part, identity): the identity is the value of "id" in an object, or None.

    Raises:
        ValueError: names the file and the line.
    """
    if format == "conll":
        raise ValueError(f"{name}: columns of words (conll) are for tagging, by `kctx predict`.")
    parts = (*required, *optional)
    too_many = len(columns) > len(parts) and not (many and format in ("tsv", "csv"))
    if too_many or 0 < len(columns) < len(required):
        raise ValueError(
            f"--columns must name {', '.join(required)}"
            + (f", and may name {', '.join(optional)}" if optional else "")
            + f". Received: {', '.join(columns)}"
        )
    if format == "txt":
        if len(required) > 1:
            raise ValueError(
                f"{name}: a request has the parts {', '.join(required)}: give them in a file of "
                "the format tsv, csv or jsonl, told by its ending or by --format."
            )
        for line in file:
            yield {parts[0]: line.rstrip("\r\n")}, None
        return
    if format == "jsonl":
        yield from _objects(file, name, parts, required, columns)
        return
    yield from _rows(file, name, format, parts, len(required), columns, many)


def _objects(file, name, parts, required, columns):
    keys = dict(zip(parts, columns or parts, strict=False))
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}, line {number}: not JSON ({error}).") from error
        if isinstance(item, str) and len(required) == 1:
            yield {parts[0]: _clean(item)}, None
            continue
        if not isinstance(item, dict):
            raise ValueError(f"{name}, line {number}: not an object. Received: {line.strip()!r}")
        found = {part: _clean(item[key]) for part, key in keys.items() if item.get(key) is not None}
        missing = [keys[part] for part in required if part not in found]
        if missing and "words" not in found:  # which stand for a text
            raise ValueError(
                f"{name}, line {number}: no {' and no '.join(missing)}. Its keys: "
                f"{', '.join(item) or 'none'}"
            )
        yield found, item.get("id")


def _rows(file, name, format, parts, needed, columns, many):
    if format == "csv":
        from kctx.data.example_files import FIELD_LIMIT

        csv.field_size_limit(FIELD_LIMIT)
        reader = csv.reader(file, strict=True)
    else:
        reader = (line.rstrip("\r\n").split("\t") for line in file)
    numbered = enumerate(_checked(reader, name), 1)
    first = next(numbered, None)
    blank = False
    while first is not None and not first[1]:  # of CSV, a line without anything
        first, blank = next(numbered, None), True
    if first is None:
        return
    _refuse_blank(blank, name, *first)
    row = first[1]
    width = len(row)
    names = list(columns) or [part for part in parts if part != many]
    by_number = bool(columns) and all(column.isdecimal() for column in columns)
    if not by_number and all(column in row for column in names[: len(columns) or needed]):
        places = [row.index(column) for column in names if column in row]
    elif columns and not by_number:
        raise ValueError(f"{name}: no columns {', '.join(columns)}. The first row: {row}")
    else:
        places = [int(x) for x in columns] or list(range(min(len(names[:needed]), len(row))))
        if not columns:
            # A header with other names would be answered as if it were a request.
            named = " and ".join(names[:needed])
            asked = "columns are" if len(names[:needed]) > 1 else "column alone is"
            print(
                f"{name}: the first row does not name {named}, so it is a request, too, and the "
                f"first {asked} asked. --columns names others.",
                file=sys.stderr,
            )
        numbered = itertools.chain([first], numbered)
    single = len(parts) - bool(many)
    wanted = max([needed, *(place + 1 for place in places)])
    for number, row in numbered:
        if len(row) < max(wanted, width) and not any(row):  # right at the end of a file alone
            blank = True
            continue
        _refuse_blank(blank, name, number, row)
        if len(places) < min(needed, single) or len(row) < wanted:
            raise ValueError(f"{name}, row {number}: {wanted} columns are needed. Received: {row}")
        found = {part: row[place] for part, place in zip(parts, places[:single], strict=False)}
        if many:
            others = places[single:] or range(max(places) + 1, len(row))
            found[many] = _filled([row[place] for place in others])
        yield found, None


def _refuse_blank(blank, name, number, row):
    """Raises a `ValueError` where blank rows stand before another: answers would be shifted."""
    if blank:
        raise ValueError(f"{name}: there are blank rows before row {number}: {row}")


def _filled(cells):
    """Cells without the empty ones at the end."""
    size = max((place for place, cell in enumerate(cells, 1) if cell), default=0)
    return cells[:size]


def _checked(reader, name):
    try:
        yield from reader
    except csv.Error as error:
        line = reader.line_num
        raise ValueError(f"{name}, line {line}: quotes do not match ({error}).") from error


def _clean(value):
    """A value of JSON, of whose texts all, in lists too, are `clean`."""
    from kctx.data.example_files import clean

    if isinstance(value, list):
        return [_clean(item) for item in value]
    return clean(value) if isinstance(value, str) else value


@contextlib.contextmanager
def written(path):
    """A function that writes one JSON line, to a file that is whole or not there, or to stdout."""
    if str(path) == "-":
        if sys.stdout is None:
            raise ValueError("stdout is closed: give --output.")
        yield lambda value: sys.stdout.write(_line(value))
        return
    from kctx.files import whole_file

    with whole_file(path) as file:
        yield lambda value: file.write(_line(value).encode("utf-8"))


def _line(value):
    return json.dumps(value, ensure_ascii=False) + "\n"


def parsed_options(options):
    """ "name=value" strings as a dict; values are JSON, or else text.

    Raises:
        ValueError: no equals sign.
    """
    found = {}
    for option in options:
        name, sign, value = option.partition("=")
        if not sign or not name:
            raise ValueError(f"--option must be name=value. Received: {option!r}")
        try:
            found[name.replace("-", "_")] = json.loads(value)
        except ValueError:
            found[name.replace("-", "_")] = value
    return found
