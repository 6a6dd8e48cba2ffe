"""Words in columns to requests."""

import io

import pytest

from kctx_cli.columns import sentences
from kctx_cli.requests import format_of, read_requests

pytestmark = pytest.mark.once
TAGS, ROLES = dict.fromkeys(["text", "words"]), dict.fromkeys(["text", "words", "predicate"])


def read(content, fields=TAGS, columns=()):
    file = io.StringIO(content, newline="")
    return [request for request, _ in sentences(file, "file", fields, columns)]


def test_sentences():
    content = "-DOCSTART- O\r\n\r\nEU NNP\r\nsaid VBD\r\n \r\n\r\nNew York\tNNP\r\nx\tNN"
    assert read(content) == [{"words": ["EU", "said"]}, {"words": ["New York", "x"]}]
    assert read("1 a\n2 b\n", columns=("-1",)) == [{"words": ["a", "b"]}]
    assert read("") == read("\n\n") == []
    assert format_of("a.conll", "auto") == "conll"


def test_sentences_are_read_one_at_a_time():
    file = iter(["a\n", "\n", "b\n"])
    assert next(sentences(file, "file", TAGS)) == ({"words": ["a"]}, None)
    assert list(file) == ["b\n"]


def test_predicates():
    content = "She -\nran run\nand _\nsang sing\n\nNobody -\n"
    words = ["She", "ran", "and", "sang"]
    expected = [{"words": words, "predicate": 1}, {"words": words, "predicate": 3}]
    assert read(content, ROLES) == expected
    swapped = "".join(" ".join(line.split()[::-1]) + "\n" for line in content.split("\n"))
    assert read(swapped, ROLES, ("1", "0")) == expected


@pytest.mark.parametrize(
    ("content", "fields", "columns", "message"),
    [
        ("a\n\nb\n", TAGS, ("1",), "file, line 1: no column 1, the line has 1"),
        ("a -\n\nb\n", ROLES, (), "file, line 3: no column 0 or 1, the line has 1"),
        ("a\t-\n\t-\n", ROLES, (), r"file, line 2: a cell is empty: \['', '-'\]"),
        ("a -\nb\n", ROLES, (), "file, line 2: the line has 1 columns, the first .* has 2"),
        ("a\n", TAGS, ("word",), "must be the numbers, from 0, of the columns of words. Received"),
        ("a\n", TAGS, ("0", "1"), "of the columns of words. Received: 0 1"),
        ("a\n", ROLES, ("0",), "of the columns of words and predicate. Received: 0"),
        ("a\n", dict.fromkeys(["text"]), (), "are for tagging. The task takes: text"),
        ("a\n", dict.fromkeys(["text", "words", "mentions"]), (), "are for tagging"),
    ],
)
def test_errors(content, fields, columns, message):
    with pytest.raises(ValueError, match=message):
        read(content, fields, columns)
    with pytest.raises(ValueError, match="are for tagging, by `kctx predict`"):
        list(read_requests(io.StringIO(content), "file", "conll", ["text"]))
