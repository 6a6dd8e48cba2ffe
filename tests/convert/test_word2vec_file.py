"""word2vec's binary format: both dialects, and files that are not what they say."""

import gzip

import numpy as np
import pytest

from kctx import Vectors
from kctx.convert import load_vectors, save_vectors, word2vec_file
from kctx.words import to_text

pytestmark = pytest.mark.once

TABLE = np.array([[1, -2, 0.1], [np.pi, 1e-30, 3e30], [0, 0, -0.0]], "<f4")


def data(words=(b"a", b"bb", b"\xff\xc3"), newline=b"\n", header=b"3 3\n"):
    rows = (w + b" " + row.tobytes() + newline for w, row in zip(words, TABLE, strict=True))
    return header + b"".join(rows)


@pytest.fixture
def load(tmp_path):
    def load(content, **arguments):
        (tmp_path / "x.bin").write_bytes(content)
        return load_vectors(tmp_path / "x.bin", **{"format": "word2vec", **arguments})

    return load


@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_with_and_without_line_feeds(load, newline):
    for content in (data(newline=newline), gzip.compress(data(newline=newline))):
        for format in ("word2vec", None):
            vectors, report = load(content, format=format)
            assert vectors.words == ["a", "bb", to_text(b"\xff\xc3")]
            assert vectors.get(vectors.words).tobytes() == TABLE.tobytes()
            assert report.invalid_utf8 == [vectors.words[2]] and report.file_format == "word2vec"


def test_published_file(kctx_data):
    vectors, report = load_vectors(kctx_data / "embeddings/euclidean_vectors.bin")
    assert (len(vectors), vectors.dim, report.file_format) == (2747, 10, "word2vec")
    assert report.duplicates == report.nan_rows == report.invalid_utf8 == []


def test_many_rows_cross_the_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("kctx.convert.word2vec_file.BLOCK", 64)
    monkeypatch.setattr("kctx.convert.byte_source.ByteSource.read.__defaults__", (64,))
    words = [f"w{i}" + "x" * (i % 50) for i in range(300)] + ["y" * 100_000]
    table = np.random.default_rng(0).normal(size=(301, 7)).astype("float32")
    for newline in (True, False):
        from kctx.convert import word2vec_file

        word2vec_file.write(Vectors(words, table), tmp_path / "x", newline)
        vectors, _ = load_vectors(tmp_path / "x", "word2vec")
        assert vectors.words == words
        np.testing.assert_array_equal(vectors.get(words), table)


@pytest.mark.parametrize("newline", [b"", b"\n"])
def test_written_as_the_tool_writes(load, tmp_path, newline):
    from kctx.convert import word2vec_file

    vectors, _ = load(data(newline=newline))
    word2vec_file.write(vectors, tmp_path / "again", newline == b"\n")
    assert (tmp_path / "again").read_bytes() == data(newline=newline)


def test_some_words(load):
    assert load(data(), first=2)[0].words == ["a", "bb"]
    vectors, _ = load(data(), only=["bb", "zz"])
    assert vectors.words == ["bb"] and vectors["bb"].tolist() == TABLE[1].tolist()
    with pytest.raises(ValueError, match="none of the words that were asked for"):
        load(data(), only=["zz"])


def test_duplicates_and_nan_are_reported(load):
    vectors, report = load(data((b"a", b"b", b"a")))
    assert vectors.words == ["a", "b"] and vectors["a"].tolist() == TABLE[0].tolist()
    assert report.duplicates == ["a"] and report.words == 2
    assert "duplicates" in str(report) and "'a'" in str(report)
    content = data().replace(TABLE[1].tobytes(), np.full(3, np.nan, "<f4").tobytes())
    vectors, report = load(content)
    assert report.nan_rows == ["bb"] and np.isnan(vectors["bb"]).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (data(header=b"999999999999 300\n"), "header is wrong: 999999999999 rows.*need at least"),
        (data(header=b"3 99999999999\n"), "header is wrong"),
        (data(header=b"3 0\n"), "vectors of 0 numbers"),
        (data(header=b"2 3\n"), "promises 2 rows, but the file goes on after them, at byte 3"),
        (
            data(header=b"4 3\n"),
            "4 rows of 3 numbers need at least 52 bytes, and the file can hold 51",
        ),
        (data((b"a", b"b" * 20, b"c"), header=b"4 3\n"), "row 4 at byte 68 is not whole"),
        (data()[:-3], "promises 3 rows, and row 3 at byte 35 is not whole"),
        (data(header=b"-3 3\n"), "does not begin with a line of two sizes"),
        (data(header=b"3\n"), "does not begin with a line of two sizes"),
        (b"", "does not begin"),
        (gzip.compress(data() * 9, mtime=0)[:60], "broken gzip file"),
    ],
)
def test_files_that_lie(load, content, message):
    with pytest.raises(ValueError, match=message):
        load(content)


def test_a_word_has_an_end(tmp_path, monkeypatch):
    """A small packed file may hold a word of any length."""
    monkeypatch.setattr(word2vec_file, "_LONGEST_WORD", 1000)
    monkeypatch.setattr(word2vec_file, "BLOCK", 64)
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"1 1\n" + b"w" * 5_000_000))
    with pytest.raises(ValueError, match="the word of row 1 at byte 4 has more than 1000 bytes"):
        load_vectors(tmp_path / "x.gz", "word2vec", progress=False)


@pytest.mark.parametrize("word", ["a b", "a\nb", " ", "\n"])
def test_words_that_it_cannot_hold(tmp_path, word):
    with pytest.raises(ValueError, match="cannot hold a word with a space or a line feed"):
        save_vectors(Vectors(["x", word], TABLE[:2]), tmp_path / "x.bin")
    assert list(tmp_path.iterdir()) == []
