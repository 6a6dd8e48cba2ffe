"""One door for all formats of word vectors."""

import numpy as np
import pytest

from kctx import Vectors
from kctx.convert import load_vectors, save_vectors

pytestmark = pytest.mark.once

FORMATS = ("word2vec", "word2vec_text", "vec", "glove", "fasttext", "native")


@pytest.fixture
def vectors():
    return Vectors(["the", "日本", "x"], np.arange(12, dtype="float32").reshape(3, 4) / 8)


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_was_written_reads_back(vectors, tmp_path, format):
    save_vectors(vectors, tmp_path / "v", format)
    for asked in (None, format):
        loaded, report = load_vectors(tmp_path / "v", asked)
        assert loaded.words == vectors.words and (report.words, report.dim) == (3, 4)
        np.testing.assert_array_equal(loaded.get(vectors.words), vectors.get(vectors.words))
        assert str(report).startswith(f"3 words of dim 4 from {report.file_format}")


@pytest.mark.parametrize("format", FORMATS)
def test_parts_and_storage(vectors, tmp_path, format):
    save_vectors(vectors, tmp_path / "v", format)
    loaded, report = load_vectors(tmp_path / "v", first=2, storage="float16")
    assert loaded.words == ["the", "日本"] and loaded.table.storage == "float16"
    assert report.words == 2
    loaded, _ = load_vectors(tmp_path / "v", only=["x", "y"], storage="int8")
    assert loaded.words == ["x"]
    np.testing.assert_allclose(loaded["x"], vectors["x"], atol=0.02)
    with pytest.raises(ValueError, match="none of the words that were asked for"):
        load_vectors(tmp_path / "v", only=["y"])
    with pytest.raises(KeyError, match="no subwords"):
        loaded["outside"]


def test_short_files_are_told_apart(tmp_path):
    """Numbers whose bytes look like text, and rows whose numbers look like a header."""
    (tmp_path / "x").write_bytes(b"2 1\na AB@@b CD@@")
    vectors, report = load_vectors(tmp_path / "x")
    assert report.file_format == "word2vec" and vectors.words == ["a", "b"]
    (tmp_path / "x").write_bytes(b"2 1\na 1.5\nb 2.5\n")
    vectors, report = load_vectors(tmp_path / "x")
    assert report.file_format == "word2vec_text" and vectors["b"].tolist() == [2.5]
    (tmp_path / "x").write_bytes(b"2 1\na 1 2 3\nb 4 5 6\nc 7 8 9\n")
    with pytest.raises(ValueError, match="line 1 does not hold a word and 3 numbers.*'2 1'"):
        load_vectors(tmp_path / "x")


def test_glove_parameters(tmp_path):
    (tmp_path / "vocab.txt").write_bytes(b"a 3\nb 3\r\n")
    values = np.arange(12, dtype="<f8").reshape(2, 2, 3)
    (tmp_path / "vectors.bin").write_bytes(values.tobytes())
    vectors, _ = load_vectors(
        tmp_path / "vectors.bin", "glove_binary", vocabulary=tmp_path / "vocab.txt"
    )
    assert vectors.words == ["a", "b"]
    assert vectors["a"].tolist() == [0 + 6, 1 + 7] and vectors["b"].tolist() == [3 + 9, 4 + 10]
    (tmp_path / "vectors.bin").write_bytes(values.tobytes()[:-1])
    with pytest.raises(ValueError, match="has 95 bytes, which is not 2 float64 rows.*2 words"):
        load_vectors(tmp_path / "vectors.bin", "glove_binary", vocabulary=tmp_path / "vocab.txt")
    (tmp_path / "vocab.txt").write_bytes(b"a 3\nb\n")
    with pytest.raises(ValueError, match="vocab.txt: line 2 is no word with its count"):
        load_vectors(tmp_path / "vectors.bin", "glove_binary", vocabulary=tmp_path / "vocab.txt")
    with pytest.raises(ValueError, match="needs `vocabulary`"):
        load_vectors(tmp_path / "vectors.bin", "glove_binary")


def test_broken_gzip_files_are_named(vectors, tmp_path):
    save_vectors(vectors, tmp_path / "v.gz", "word2vec_text")
    data = (tmp_path / "v.gz").read_bytes()
    assert load_vectors(tmp_path / "v.gz")[0].words == vectors.words
    for broken in (data[:-9], data[:3], data[:10] + b"\xff" * 50):
        (tmp_path / "v.gz").write_bytes(broken)
        for asked in (None, "word2vec_text", "glove", "word2vec"):
            with pytest.raises(ValueError, match="v.gz is a broken gzip file"):
                load_vectors(tmp_path / "v.gz", asked)


def test_wrong_arguments(vectors, tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        load_vectors(tmp_path / "none")
    with pytest.raises(ValueError, match="`format` must be one of.*'csv'"):
        load_vectors(tmp_path, "csv")
    with pytest.raises(ValueError, match="`format` must be one of.*'csv'"):
        save_vectors(vectors, tmp_path / "x", "csv")
    with pytest.raises(ValueError, match="`storage` must be one of"):
        load_vectors(tmp_path, storage="int4")
    with pytest.raises(ValueError, match="`first` must be"):
        load_vectors(tmp_path, first=0)
    with pytest.raises(ValueError, match="`only` must be a collection"):
        load_vectors(tmp_path, only="word")
    with pytest.raises(ValueError, match=r"holds no vectors.json"):
        load_vectors(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "bin"}, "`format` must be one of"),
        ({"format": "vec", "digits": 0}, "`digits` must be an integer of at least 1.*digits=0"),
        ({"format": "vec", "digits": -3}, "`digits` must be"),
        ({"vectors": {"a": [1.0]}}, "`vectors` must be Vectors. Received: dict"),
        ({"vectors": Vectors([], np.zeros((0, 3)))}, "`vectors` must hold a word. Received: none"),
        (
            {"vectors": Vectors([], np.zeros((0, 3))), "format": "glove"},
            "`vectors` must hold a word",
        ),
    ],
)
def test_what_cannot_be_written(vectors, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        save_vectors(**{"vectors": vectors, "path": tmp_path / "v", **options})
    assert not list(tmp_path.iterdir())


def test_no_words(tmp_path):
    (tmp_path / "v").write_bytes(b"0 3\n")
    with pytest.raises(ValueError, match="v holds no words"):
        load_vectors(tmp_path / "v", "vec")
    with pytest.raises(ValueError, match="`only` must be a collection of words. Received: 5"):
        load_vectors(tmp_path / "v", only=5)
