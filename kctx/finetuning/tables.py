"""Options of tables of texts and labels, and how they are read."""

import dataclasses
from typing import Literal

from kctx import data

_CHOICES = {"auto": "auto", "yes": True, "no": False}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of TSV, CSV and JSONL files. The fields of `Options` are there beside them."""

    text: str = "0"
    """column of the text, by name or number from 0"""
    pair: str | None = None
    """column of the second text, if there are pairs"""
    label: str = "1"
    """column of the label"""
    format: Literal["auto", "tsv", "csv", "jsonl"] = "auto"
    """of the files; auto: by the ends of their names"""
    header: Literal["auto", "yes", "no"] = "auto"
    """whether the first row names the columns"""
    quoting: Literal["auto", "yes", "no"] = "auto"
    """whether fields are quoted as in CSV; auto: in .csv files"""
    extra_columns: bool = False
    """allow rows with more columns than the first"""


def read_tables(options, regression):
    """(training examples, dev examples); the dev file is laid out as the training file is.

    Args:
        options: with the fields of `TableOptions` and `Options`.
        regression: bool, whether labels are numbers.
    """

    def read(path, header, label_names=None):
        return data.read_examples(
            path,
            _column(options.text),
            _column(options.pair),
            _column(options.label),
            format=options.format,
            header=header,
            quoting=_CHOICES[options.quoting],
            encoding=options.encoding,
            label_names=label_names,
            regression=regression,
            extra_columns=options.extra_columns,
        )

    train = read(options.train, _CHOICES[options.header])
    if options.dev is None:
        return split(train)
    return train, read(options.dev, train.has_header, train.label_names)


def split(examples):
    """(the others, every tenth), where no dev file is given.

    Args:
        examples: of `kctx.data`, with a method `split`.
    """
    try:
        return examples.split(every=10)
    except ValueError as error:
        raise ValueError(
            f"The training file is too small for a tenth to be held out: give `dev`. ({error})"
        ) from error


def _column(name):
    return int(name) if name is not None and name.isdecimal() else name
