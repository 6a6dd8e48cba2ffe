import gzip

import numpy as np
import pytest

from kctx.ngrams import count_ngrams, count_words
from kctx.ngrams.text import Ids, WordIds, blocks_of
from kctx.words import to_bytes, to_text

pytestmark = pytest.mark.once


def words_of(path, **options):
    ids = WordIds()
    arrays = list(Ids(ids, **options).of(blocks_of([path], None)))
    return [to_text(ids.words[index]) for array in arrays for index in array]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"a b\nc\n", "a b </s> c </s>"),
        (b"a b\r\nc", "a b </s> c </s>"),
        (b" a\t\tb  \n", "a b </s>"),
        (b"a\n\n\nb\n", "a </s> </s> </s> b </s>"),
        (b"a b", "a b </s>"),
        (b"a b ", "a b </s>"),
        (b"\n", "</s>"),
    ],
)
def test_lines_and_separators(tmp_path, data, words):
    (tmp_path / "text").write_bytes(data)
    assert words_of(tmp_path / "text") == words.split(" ")


def test_only_space_tab_cr_and_lf_separate(tmp_path):
    text = "a\x0bb\x0cc d\u00a0e f\u3000g h\x85i j\u2028k\n"
    (tmp_path / "text").write_text(text, encoding="utf-8", newline="")
    assert words_of(tmp_path / "text") == [*text[:-1].split(" "), "</s>"]


def test_bytes_that_are_not_utf8_pass_through(tmp_path):
    (tmp_path / "text").write_bytes(b"\xff\xfe caf\xe9 caf\xc3\xa9\n")
    words = words_of(tmp_path / "text")
    assert words == ["\udcff\udcfe", "caf\udce9", "café", "</s>"]
    assert to_bytes(words[1]) == b"caf\xe9"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_blocks_cut_no_word(tmp_path, size):
    data = b"the cat\nsat on a\n\nvery" + b"y" * 50 + b" mat\nend"
    (tmp_path / "text").write_bytes(data)
    ids = WordIds()
    blocks = blocks_of([tmp_path / "text"], None, size=size)
    found = np.concatenate(list(Ids(ids).of(blocks)))
    words = b" ".join(ids.words[index] for index in found)
    assert words == data.replace(b"\n", b" </s> ").replace(b"  ", b" ") + b" </s>"


def test_empty_lines_can_be_left_out(tmp_path):
    (tmp_path / "text").write_bytes(b"\n\na\n \nb\n\n")
    assert words_of(tmp_path / "text", empty_lines=False) == ["a", "</s>", "b", "</s>"]
    lines = ["", "", "a", " ", "b", ""]
    few = count_ngrams(lines=lines, order=2, empty_lines=False, progress=False)
    assert few.count("<s>", "a") == 1 and few.count("<s>", "</s>") == 0


@pytest.mark.parametrize("word", ["<s>", "</s>", "<unk>"])
def test_special_words_in_text(word):
    lines = ["a b", f"a {word} b"]
    with pytest.raises(ValueError, match=f"`lines` line 2 holds the word {word}"):
        count_ngrams(lines=lines, progress=False)
    skipped = count_ngrams(lines=lines, special_words="skip", progress=False)
    assert skipped.count("a", "b") == 2 and skipped.count("<unk>") == 0
    unknown = count_ngrams(lines=lines, special_words="unknown", progress=False)
    assert unknown.count("a", "<unk>", "b") == 1
    inside = count_ngrams(lines=["x<s> </s>y <unk>."], progress=False)
    assert inside.count("x<s>", "</s>y", "<unk>.") == 1


def test_special_words_name_file_and_line(tmp_path):
    (tmp_path / "text").write_bytes(b"a\n" * 200_000 + b"b <s>\n")
    with pytest.raises(ValueError, match=r"text line 200001 holds the word <s>"):
        count_ngrams(tmp_path / "text", memory_limit=1, progress=False)


def test_lines_as_items():
    counts = count_ngrams(lines=["a b\n", b"a b", "a\nb"], order=2, progress=False)
    assert counts.count("a", "b") == 3 and counts.count("<s>", "a") == 3


def test_packed_files(tmp_path):
    with gzip.open(tmp_path / "text.gz", "wb") as file:
        file.write(b"a b\na\n")
    assert words_of(tmp_path / "text.gz") == "a b </s> a </s>".split()
    data = (tmp_path / "text.gz").read_bytes()
    for broken in (data[:-9], data[:3], data[:10] + b"\xff" * 50):
        (tmp_path / "cut.gz").write_bytes(broken)
        with pytest.raises(ValueError, match="cut.gz is a broken gzip file"):
            words_of(tmp_path / "cut.gz")


def test_count_words():
    counts = count_words(lines=["b a b", "c a b"], progress=False)
    assert list(counts.items()) == [("b", 3), ("a", 2), ("c", 1)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either `files` or `lines`"),
        ({"files": ["a"], "lines": ["a"]}, "either `files` or `lines`"),
        ({"lines": "a text"}, "`lines` must be several texts"),
        ({"lines": []}, "at least one word. Received none in `lines`"),
        ({"lines": ["", " "]}, "at least one word"),
        ({"lines": ["a"], "order": 7}, "`order` must be from 1 to 6. Received: order=7"),
        ({"lines": ["a"], "order": 0}, "`order` must be an integer of at least 1"),
        ({"lines": ["a"], "order": 2.0}, "`order` must be an integer"),
        ({"lines": ["a"], "special_words": "text"}, "`special_words` must be one of"),
        ({"lines": ["a"], "vocabulary": []}, "`vocabulary` must hold at least one word"),
        ({"lines": ["a"], "vocabulary": ["a", "b", "a"]}, "`vocabulary` holds 'a' twice"),
        ({"lines": ["a"], "vocabulary": ["a b"]}, "must not be empty nor hold a space"),
        ({"lines": ["a"], "memory_limit": 0}, "`memory_limit` must be an integer"),
        ({"lines": ["a \ud800"]}, "a surrogate that stands for no byte, at position 2"),
        ({"lines": [1]}, "must be str or bytes. Received: 1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        count_ngrams(progress=False, **arguments)


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file in `files`.*nowhere"):
        count_ngrams(tmp_path / "nowhere", progress=False)
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="at least one word. Received none in .*empty"):
        count_ngrams(tmp_path / "empty", progress=False)
