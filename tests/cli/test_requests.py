"""Raw files to requests."""

import gzip
import io

import pytest

from kctx_cli.requests import (
    check_output,
    format_of,
    opened,
    parsed_options,
    read_requests,
    written,
)

pytestmark = pytest.mark.once

PAIR = (["text"], ["text_pair"])
CHOICE = (["context", "choices"], [])


def read(content, format, parts=PAIR, columns=(), many=None):
    file = io.StringIO(content, newline="")
    found = list(read_requests(file, "file", format, *parts, columns, many))
    return [request for request, _ in found]


def test_format_by_name():
    cases = {"a.tsv": "tsv", "a.CSV": "csv", "a.jsonl": "jsonl", "a.json": "jsonl", "a.txt": "txt"}
    for name, expected in {**cases, "a": "txt", "-": "txt"}.items():
        assert format_of(name, "auto") == expected
    assert format_of("a.tsv", "txt") == "txt"


def test_lines():
    found = read("a b\r\n\n c\u2028d \nlast", "txt")
    assert [request["text"] for request in found] == ["a b", "", " c\u2028d ", "last"]
    assert read("", "txt") == []


def test_tsv():
    assert read('a\t"b\nc\td\r\n\n', "tsv", columns=("0", "1")) == [
        {"text": "a", "text_pair": '"b'},
        {"text": "c", "text_pair": "d"},
    ]
    # What is not asked for by name may be a label.
    assert read("a\tb\n", "tsv") == [{"text": "a"}]
    assert read("text\ttext_pair\na\t\n\t\n", "tsv") == [
        {"text": "a", "text_pair": ""},
        {"text": "", "text_pair": ""},
    ]
    assert read("text\na\n\nb\n", "tsv") == [{"text": "a"}, {"text": ""}, {"text": "b"}]
    assert read("text\tlabel\na\t1\nb\t2\n\n", "tsv") == [{"text": "a"}, {"text": "b"}]
    assert read("\n\n", "csv") == []
    assert read('text\na\n""\nb\n\n', "csv") == [{"text": "a"}, {"text": ""}, {"text": "b"}]
    assert read("label\ttext\n1\ta\n", "tsv") == [{"text": "a"}]
    assert read("text_pair\ttext\nb\ta\n", "tsv") == [{"text": "a", "text_pair": "b"}]
    named = read("x\ty\tz\na\tb\tc\n", "tsv", columns=("z", "x"))
    assert named == [{"text": "c", "text_pair": "a"}]
    assert read("a\tb\n", "tsv", columns=("1",)) == [{"text": "b"}]
    assert read("", "tsv") == []


def test_numbers_of_columns_are_no_names():
    """The first row of labels and sentences holds what a header would have to."""
    expected = [{"text": "a"}, {"text": "b"}]
    assert read("1\ta\n0\tb\n", "tsv", columns=("1",)) == expected
    assert read("a\t0\nb\t1\n", "tsv", columns=("0",)) == expected


def test_a_first_row_with_other_names_is_told(capsys):
    rows = read("premise\thypothesis\na\tb\n", "tsv")
    assert rows == [{"text": "premise"}, {"text": "a"}]
    told = capsys.readouterr()
    assert "file: the first row does not name text" in told.err and told.out == ""
    assert "the first column alone is asked" in told.err
    assert "name context and" not in told.err
    read("text\ta\n", "tsv"), read("a\tb\n", "tsv", columns=("0", "1")), read("", "csv")
    assert capsys.readouterr().err == ""


def test_csv_with_quotes_and_lines_in_fields():
    found = read('text,label\r\n"a ""b"",\nc",1\r\n', "csv")
    assert found == [{"text": 'a "b",\nc'}]


def test_json_lines():
    content = '{"text": "a", "other": 3, "id": "x"}\n\n"b"\n{"text_pair": "d", "text": "c\\ud800"}'
    file = io.StringIO(content)
    assert list(read_requests(file, "file", "jsonl", *PAIR)) == [
        ({"text": "a"}, "x"),
        ({"text": "b"}, None),
        ({"text": "c\ufffd", "text_pair": "d"}, None),
    ]
    assert read('{"review": "a"}', "jsonl", columns=("review",)) == [{"text": "a"}]


def test_choices_are_the_columns_behind():
    expected = [{"context": "a", "choices": ["b", "c"]}, {"context": "d", "choices": ["e"]}]
    assert read("a\tb\tc\nd\te\t\n", "tsv", CHOICE, many="choices") == expected
    headed = "id\tcontext\tone\ttwo\n1\ta\tb\tc\n2\td\te\t\n"
    assert read(headed, "tsv", CHOICE, many="choices") == expected
    gap = read("a\tb\t\tc\t\t\n", "tsv", CHOICE, many="choices")
    assert gap == [{"context": "a", "choices": ["b", "", "c"]}]
    named = read("x\ty\tz\nb\ta\tc\n", "tsv", CHOICE, ("y", "z", "x"), many="choices")
    assert named == [{"context": "a", "choices": ["c", "b"]}]


def test_files(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfa\xff\r\n")
    with opened(path) as file:
        assert list(file) == ["a\ufffd\r\n"]
    with written(tmp_path / "b" / "c.jsonl") as write:
        write({"a": "é\n"})
        assert not (tmp_path / "b" / "c.jsonl").exists()
    assert (tmp_path / "b" / "c.jsonl").read_text("utf-8") == '{"a": "é\\n"}\n'


def test_options():
    found = parsed_options(["stride=3", "no-answer-threshold=null", "split=characters", "a=[1]"])
    assert found == {"stride": 3, "no_answer_threshold": None, "split": "characters", "a": [1]}
    with pytest.raises(ValueError, match="--option must be name=value. Received: 'stride'"):
        parsed_options(["stride"])


@pytest.mark.parametrize(
    ("content", "format", "options", "message"),
    [
        ("a", "txt", {"parts": CHOICE}, "file: a request has the parts context, choices: give"),
        ("{", "jsonl", {}, "file, line 1: not JSON"),
        ('{"text": "a"}\n[1]', "jsonl", {}, r"file, line 2: not an object. Received: '\[1\]'"),
        ("a\tb", "tsv", {"columns": ("c",)}, r"file: no columns c. The first row: \['a', 'b'\]"),
        (
            "a\tb\nc",
            "tsv",
            {"columns": ("0", "1")},
            r"file, row 2: 2 columns are needed. Received: \['c'\]",
        ),
        ("a", "tsv", {"columns": ("3",)}, "file, row 1: 4 columns are needed"),
        ("a", "tsv", {"columns": ("0", "1", "2")}, "--columns must name text, and may name text_p"),
        ('a\n"b', "csv", {}, "file, line 2: quotes do not match"),
        ("text\n\na\n", "csv", {}, r"file: there are blank rows before row 3: \['a'\]"),
        ("\n\ntext\na\n", "csv", {}, r"file: there are blank rows before row 3: \['text'\]"),
        ("text\tlabel\na\t1\n\nb\t2\n", "tsv", {}, "file: there are blank rows before row 4"),
        ("a\tb\n\nc\td\n", "tsv", {"columns": ("1",)}, "file: there are blank rows before row 3"),
        ('\n{"txt": "a"}\n', "jsonl", {}, "file, line 2: no text. Its keys: txt"),
        ("{}", "jsonl", {"parts": CHOICE}, "line 1: no context and no choices. Its keys: none"),
    ],
)
def test_errors(content, format, options, message):
    with pytest.raises(ValueError, match=message):
        read(content, format, **options)


def test_packed_files_and_files_that_are_no_text(tmp_path):
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress("\ufeffé\nb\n".encode()))
    with opened(path) as file:
        assert list(file) == ["é\n", "b\n"]
    path.write_bytes("a\n".encode("utf-16"))
    with pytest.raises(ValueError, match="a.txt.gz begins like UTF-16"), opened(path):
        pass


def test_the_input_is_not_written_over(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match="--output must not be what is read"):
        check_output(path, path)
    check_output(path, tmp_path / "new.jsonl")
    check_output("-", "-")
