"""Word vectors as text: with and without a header, words with spaces, wrong rows by their lines."""

import gzip

import numpy as np
import pytest

from kctx import Vectors
from kctx.convert import load_vectors, save_vectors
from kctx.convert.byte_source import likely_rows
from kctx.words import to_text

pytestmark = pytest.mark.once

PLAIN = b"the 0.5 -1 2e-3\nof 1 2 3\n\xff\xe6 0 -0.25 nan\n"


@pytest.fixture
def load(tmp_path):
    def load(content, format=None, **arguments):
        (tmp_path / "x.txt").write_bytes(content)
        return load_vectors(tmp_path / "x.txt", format, **arguments)

    return load


def variants(content, header):
    """The same rows with CR LF, a space at the ends, no last line feed, and gzipped."""
    content = header + content
    yield content
    yield content.replace(b"\n", b"\r\n")
    yield content.replace(b"\n", b" \n")
    yield content.replace(b"\n", b" \r\n")
    yield content.removesuffix(b"\n")
    yield content + b"\n\n"
    yield gzip.compress(content)


@pytest.mark.parametrize(("header", "format"), [(b"", "glove"), (b"3 3\n", "word2vec_text")])
def test_all_dialects(load, header, format):
    for content in variants(PLAIN, header):
        for asked in (format, None):
            vectors, report = load(content, asked)
            assert report.file_format == format
            assert vectors.words == ["the", "of", to_text(b"\xff\xe6")]
            np.testing.assert_allclose(vectors["the"], [0.5, -1, 2e-3], rtol=1e-6)
            assert report.nan_rows == report.invalid_utf8 == [vectors.words[2]]


def test_published_files(kctx_data):
    folder = kctx_data / "embeddings"
    for name, size, format in (
        ("glove.6B.50d.top5000.txt", (5000, 50), "glove"),
        ("test_glove.txt", (76, 50), "glove"),
        ("word2vec_pre_kv_c", (1750, 10), "word2vec_text"),
        ("toy-model.vec", (22, 5), "word2vec_text"),
        ("crime-and-punishment.vec", (291, 5), "word2vec_text"),
    ):
        vectors, report = load_vectors(folder / name)
        assert (len(vectors), vectors.dim, report.file_format) == (*size, format)


def test_glove_golden_values(kctx_data):
    vectors, _ = load_vectors(kctx_data / "embeddings/glove.6B.50d.top5000.txt")
    assert vectors.words[:5] == ["the", ",", ".", "of", "to"]
    np.testing.assert_allclose(vectors["the"][:5], [0.418, 0.24968, -0.41242, 0.1217, 0.34527])
    for a, b, cosine in (
        ("king", "queen", 0.783904),
        ("man", "woman", 0.886034),
        ("paris", "france", 0.802533),
        ("cat", "dog", 0.921800),
        ("the", "of", 0.902635),
    ):
        if a in vectors and b in vectors:
            assert vectors.similarity(a, b) == pytest.approx(cosine, abs=1e-6)


def test_words_with_spaces(load):
    content = b". . . 1 2\nnew york 3 4\n a  5 6\n 7 8\nat 9 10\nto 11 12\n"
    for header, format in ((b"6 2\n", "word2vec_text"), (b"", "glove")):
        vectors, report = load(header + content, format)
        assert vectors.words == [". . .", "new york", " a ", "", "at", "to"]
        assert vectors[" a "].tolist() == [5, 6] and vectors[""].tolist() == [7, 8]
        assert report.with_spaces == [". . .", "new york", " a "]


def test_very_long_word(load):
    word = "é" * 50_000
    vectors, _ = load(f"{word} 1 2\nb 3 4\n".encode())
    assert vectors.words == [word, "b"]


def test_tabs_and_several_spaces_between_numbers(load):
    vectors, _ = load(b"a\t1\t2\nb 3  4\n")
    assert vectors.words == ["a", "b"] and vectors["a"].tolist() == [1, 2]


def test_duplicates_and_parts(load):
    vectors, report = load(b"a 1 2\nb 3 4\na 5 6\nc 7 8\n")
    assert vectors.words == ["a", "b", "c"] and vectors["a"].tolist() == [1, 2]
    assert report.duplicates == ["a"]
    assert load(b"a 1 2\nb 3 4\na 5 6\nc 7 8\n", first=2)[0].words == ["a", "b"]
    assert load(b"a 1 2\nb 3 4\nc 7 8\n", only={"c", "a"})[0].words == ["a", "c"]
    assert load(b"a 1 2\nb 3 4\n", storage="int8")[0].table.storage == "int8"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a 1 2\nb 3\nc 4 5\n", "line 2 does not hold a word and 2 numbers.*'b 3'"),
        (b"a 1.0 2.5\nb 3.0 1.5 2.5\nc 4.0 5.5\n", "line 2 does not hold.*, but 3: 'b 3.0 1.5 2.5"),
        (b"a 1 2\nb 3 x\n", "line 2 does not hold a word and 2 numbers"),
        (b"3 2\na 1 2\nb 1 2\n", "header promises 3 rows, and the file ends after 2"),
        (b"1 2\na 1 2\nb 1 2\n", "promises 1 rows, but line 3 is a further one"),
        (b"2 3\na 1 2\nb 1 2\n", "line 2 does not hold a word and 3 numbers"),
        (b"999999999999 2\na 1 2\n", "header is wrong: 999999999999 rows"),
        (b"1 999999999999\na 1 2\n", "header is wrong"),
        (b"2 0\na\nb\n", "vectors of 0 numbers|no known format"),
        (b"a 1 2\n\nb 3 4\n", "line 2 is empty"),
        (b"", "is empty"),
        (b"\x00\x01\x02 binary", "no known format.*begins with"),
        (b"just words\nand words\n", "no known format"),
    ],
)
def test_files_that_lie(load, content, message):
    with pytest.raises(ValueError, match=message):
        load(content)


def test_a_packed_file_takes_no_memory_for_what_its_header_promises(tmp_path):
    plain, packed = tmp_path / "v.txt", tmp_path / "v.txt.gz"
    text = b"".join(b"%d 1.0 2.5\n" % i for i in range(3000))
    for content in (b"2000000 2\n" + text, b"3000 2\n" + text):
        plain.write_bytes(content)
        packed.write_bytes(gzip.compress(content))
        assert likely_rows(plain, 3000, 2) == 3000
        assert likely_rows(packed, 2_000_000, 2) <= packed.stat().st_size
    vectors, _ = load_vectors(packed)  # more rows than memory was taken for at once
    assert len(vectors) == 3000 and vectors["2999"].tolist() == [1, 2.5]
    packed.write_bytes(gzip.compress(b"200000 2\n" + text))  # as gzip could hold, however it packs
    with pytest.raises(ValueError, match="promises 200000 rows, and the file ends after 3000"):
        load_vectors(packed, "vec")


def test_header_is_demanded_where_it_is_named(load):
    with pytest.raises(ValueError, match="does not begin with a line of two sizes: b'a 1 2'"):
        load(b"a 1 2\nb 3 4\n", "word2vec_text")


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("format", ["word2vec_text", "vec", "glove"])
@pytest.mark.parametrize("name", ["x.txt", "x.txt.gz"])
def test_written_files_read_back(tmp_path, format, dim, name):
    words = [
        "12",
        "3",
        "",
        "a",
        "new york",
        to_text(b"\xff"),
        " b ",
        "c\r",
        "d\t",
        "\u00a0",
        "at 3",
    ]
    words += [f"w{i}" for i in range(20)]
    table = np.random.default_rng(0).normal(size=(len(words), dim)).astype("float32")
    table[:2] = 1  # whole numbers: the first line must not look like a header
    save_vectors(Vectors(words, table), tmp_path / name, format)
    asked = "word2vec_text" if format == "vec" else format
    for format_asked in (asked, None):
        vectors, _ = load_vectors(tmp_path / name, format_asked)
        assert vectors.words == words
        rtol = 1e-4 if format == "vec" else 0
        np.testing.assert_allclose(vectors.get(words), table, rtol=rtol)


def test_many_rows_cross_the_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("kctx.convert.byte_source.ByteSource.read.__defaults__", (50,))
    words = [f"w{i}" for i in range(400)]
    table = np.random.default_rng(0).normal(size=(400, 3)).astype("float32")
    save_vectors(Vectors(words, table), tmp_path / "x", "glove")
    vectors, _ = load_vectors(tmp_path / "x", "glove")
    assert vectors.words == words
    np.testing.assert_array_equal(vectors.get(words), table)


def test_vec_is_what_fasttext_writes(kctx_data, tmp_path):
    for name in ("toy-model", "crime-and-punishment"):
        vectors, _ = load_vectors(kctx_data / f"embeddings/{name}.bin")
        save_vectors(vectors, tmp_path / "x.vec", "vec")
        expected = (kctx_data / f"embeddings/{name}.vec").read_bytes()
        assert (tmp_path / "x.vec").read_bytes() == expected


@pytest.mark.parametrize("format", ["word2vec_text", "vec", "glove"])
@pytest.mark.parametrize("word", ["a\nb", "a 0.5", "x 1e 2.5e-3"])
def test_words_that_text_cannot_hold(tmp_path, format, word):
    with pytest.raises(ValueError, match="cannot hold a word with a line feed, or with a decimal"):
        save_vectors(Vectors(["x", word], np.eye(2)), tmp_path / "x", format)
    assert list(tmp_path.iterdir()) == []


def test_words_that_hide_the_width(tmp_path):
    vectors = Vectors(["at 3", "in 4", "x"], np.eye(3))
    with pytest.raises(ValueError, match="hide the width.*at 3"):
        save_vectors(vectors, tmp_path / "x", "glove")
    save_vectors(vectors, tmp_path / "x", "word2vec_text")
    assert load_vectors(tmp_path / "x")[0].words == vectors.words


def test_row_of_the_unknown_word(tmp_path):
    from kctx.convert import text_vectors_file

    vectors = Vectors(["a", "b"], [[1.0, 2.0, 3.0], [3.0, 0.0, 1.0]])
    text_vectors_file.write(vectors, tmp_path / "x", header=False, unknown_row=True)
    loaded, _ = load_vectors(tmp_path / "x")
    assert loaded.words == ["a", "b", "<unk>"] and loaded["<unk>"].tolist() == [2, 1, 2]


def test_byte_order_marks(load):
    """One before a header is an editor's; before a word it may belong to it."""
    mark = "\ufeff".encode()
    vectors, _ = load(mark + b"2 2\nthe 0.1 0.2\nof 0.3 0.4\n")
    assert list(vectors.words) == ["the", "of"]
    with pytest.warns(UserWarning, match="the byte order mark is read as a part of the first word"):
        vectors, _ = load(mark + b"the 0.1 0.2\nof 0.3 0.4\n")
    assert list(vectors.words) == ["\ufeffthe", "of"]
