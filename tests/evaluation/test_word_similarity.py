"""Word similarity by hand, and the map of words."""

import numpy as np
import pytest

from kctx import Vectors
from kctx.evaluation import rare_word_pairs, read_word_pairs, word_map, word_similarity
from kctx.vectors import Subwords

pytestmark = pytest.mark.once

FILE = "# comment\n# another\na\tb\t9\nA\tc\t5.5\r\na\td\t1\n\na\tmissing\t3\n"


@pytest.fixture
def vectors():
    return Vectors(["a", "b", "c", "d"], [[1, 0], [1, 0.1], [1, 1], [0, 1]])


@pytest.fixture
def path(tmp_path):
    (tmp_path / "pairs.tsv").write_text(FILE)
    return tmp_path / "pairs.tsv"


def test_pairs_of_a_file(path):
    expected = [("a", "b", 9.0), ("A", "c", 5.5), ("a", "d", 1.0), ("a", "missing", 3.0)]
    assert read_word_pairs(path) == expected
    path.write_text("word1\tword2\tscore\na\tb\t1\n")
    assert read_word_pairs(path) == [("a", "b", 1.0)]


def test_correlation(vectors, path):
    result = word_similarity(vectors, path)
    assert (result["pairs"], result["used"], result["missing"]) == (4, 3, ["missing"])
    assert result["spearman"] == pytest.approx(1) and 0.9 < result["pearson"] < 1
    result = word_similarity(vectors, path, fold_case=False)
    assert result["used"] == 2 and result["missing"] == ["A", "missing"]
    turned = [("a", "b", 1), ("a", "c", 5), ("a", "d", 9)]
    assert word_similarity(vectors, turned)["spearman"] == pytest.approx(-1)
    assert word_similarity(vectors, turned[:1])["spearman"] is None
    assert word_similarity(vectors, [("x", "y", 1)])["used"] == 0


def test_words_outside_the_table(path):
    rows = np.random.default_rng(0).normal(size=(5, 2)).astype("float32")
    vectors = Vectors(["a", "b", "c", "d"], np.eye(4, 2), Subwords(3, 4, 5), rows)
    assert word_similarity(vectors, path)["used"] == 4
    assert word_similarity(vectors, path, subwords=False)["missing"] == ["missing"]


def test_pairs_of_rare_words(vectors, path):
    pairs = read_word_pairs(path)
    assert rare_word_pairs(vectors, path, 2) == pairs[1:]  # of "c", of "d", of one not in the table
    assert rare_word_pairs(vectors, pairs, 4) == pairs[3:]
    assert rare_word_pairs(vectors, pairs, 4, fold_case=False) == [pairs[1], pairs[3]]
    with pytest.raises(
        ValueError, match="`rank` must be an integer of at least 1. Received: rank=0"
    ):
        rare_word_pairs(vectors, pairs, 0)


def test_published_pairs(kctx_data):
    assert len(read_word_pairs(kctx_data / "embeddings/wordsim353.tsv")) == 353


def test_wrong_files(path):
    path.write_text("a\tb\t1\na\tb\n")
    with pytest.raises(ValueError, match="line 2 is not two words and a score"):
        read_word_pairs(path)
    path.write_text("# nothing\n")
    with pytest.raises(ValueError, match="holds no pairs"):
        read_word_pairs(path)


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_word_map(tmp_path, method):
    pytest.importorskip("matplotlib")
    table = np.random.default_rng(0).normal(size=(12, 5))
    table[1] = table[0] * 2  # the same direction
    vectors = Vectors(list("abcdefghijkl"), table)
    places = word_map(vectors, [*"abcdefghijkl", "missing"], tmp_path / "map.png", method)
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG") and len(places) == 12
    spread = np.ptp(list(places.values()), axis=0).max()
    assert np.linalg.norm(np.subtract(places["a"], places["b"])) < 0.2 * spread
    assert places == word_map(vectors, "abcdefghijkl", tmp_path / "map.png", method)


def test_word_map_needs_words(vectors, tmp_path):
    with pytest.raises(ValueError, match="three words with a vector at least. Received: 2"):
        word_map(vectors, ["a", "b", "x"], tmp_path / "map.png")
    with pytest.raises(ValueError, match="`method` must be 'pca' or 'tsne'.*'umap'"):
        word_map(vectors, ["a", "b", "c"], tmp_path / "map.png", "umap")


def test_scores_and_bytes_that_are_none(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("a\tb\t1\nb\tc\tnan\n")
    with pytest.raises(ValueError, match="pairs.tsv: line 2 is not two words and a score"):
        read_word_pairs(path)
    path.write_bytes("caf\xe9\tb\t1\n".encode("latin-1"))
    with pytest.raises(ValueError, match="pairs.tsv is not valid utf-8: the byte at offset 3"):
        read_word_pairs(path)
