"""Vectors: lookup, similarity, analogies by hand; words outside the table; storage."""

import json

import numpy as np
import pytest

from kctx import Vectors
from kctx.vectors import Subwords
from kctx.words import to_text

pytestmark = pytest.mark.once

# Two directions, "royal" and "male", and a word that is in neither.
WORDS = ["king", "queen", "man", "woman", "apple", "zero"]
TABLE = np.array([[2, 2, 0], [2, -2, 0], [0, 3, 0], [0, -1, 0], [0.1, 0, 5], [0, 0, 0]], "float32")


@pytest.fixture
def vectors():
    return Vectors(WORDS, TABLE, counts=[6, 5, 4, 3, 2, 1])


@pytest.fixture
def with_subwords():
    subwords = Subwords(3, 4, 10)
    rows = np.random.default_rng(0).normal(size=(10, 3)).astype("float32")
    return Vectors(WORDS, TABLE, subwords, rows)


def test_lookup(vectors):
    assert len(vectors) == 6 and vectors.dim == 3 and "king" in vectors and "x" not in vectors
    assert vectors["man"].tolist() == [0, 3, 0] and vectors["man"].dtype == np.float32
    assert vectors[["man", "king"]].tolist() == [[0, 3, 0], [2, 2, 0]]
    assert vectors.index("apple") == 4
    vectors["man"][:] = 7  # a copy
    assert vectors["man"].tolist() == [0, 3, 0]
    assert repr(vectors) == "Vectors(6 words, dim 3, float32)"


def test_similarity(vectors):
    assert vectors.similarity("king", "queen") == pytest.approx(0)
    assert vectors.similarity("king", "man") == pytest.approx(0.5**0.5)
    assert vectors.similarity([0, 1, 0], "woman") == pytest.approx(-1)
    assert vectors.similarity("zero", "king") == 0


def test_neighbours(vectors):
    found = vectors.neighbours("man", top=3)
    assert [word for word, _ in found] == ["king", "apple", "zero"]
    np.testing.assert_allclose([score for _, score in found], [0.5**0.5, 0, 0], atol=1e-6)
    assert vectors.neighbours(np.array([0, 3, 0]), 1) == [("man", 1.0)]  # a vector bans nothing
    assert [word for word, _ in vectors.neighbours("man", restrict=2)] == ["king", "queen"]
    assert len(vectors.neighbours("man", top=100)) == 5
    assert vectors.neighbours("zero", 1) == [("king", 0.0)]


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_analogy(vectors, method):
    assert vectors.analogy("man", "king", "woman", top=1, method=method)[0][0] == "queen"


def test_scores_of_both_methods(vectors):
    a, b, c = (vectors[w] / np.linalg.norm(vectors[w]) for w in ("man", "king", "woman"))
    d = vectors["queen"] / np.linalg.norm(vectors["queen"])
    query = b - a + c
    added = vectors.analogy("man", "king", "woman", 1)[0][1]
    assert added == pytest.approx(query @ d / np.linalg.norm(query), abs=1e-6)
    multiplied = vectors.analogy("man", "king", "woman", 1, method="3cosmul")[0][1]
    shifted = [(1 + x @ d) / 2 for x in (b, c, a)]
    assert multiplied == pytest.approx(shifted[0] * shifted[1] / (shifted[2] + 0.001), rel=1e-5)


def test_words_asked_about_are_no_answers(vectors):
    found = vectors.most_similar(["king", "queen"], ["apple"], top=6)
    assert {word for word, _ in found} == {"man", "woman", "zero"}


def test_many_words_are_searched_as_few():
    """Chunks, and the shortcut for the largest scores, against all scores sorted."""
    table = np.random.default_rng(0).normal(size=(40_000, 8)).astype("float32")
    vectors = Vectors([f"w{i}" for i in range(len(table))], table)
    cosines = table @ table[7] / np.linalg.norm(table, axis=1) / np.linalg.norm(table[7])
    expected = [i for i in np.argsort(-cosines) if i != 7][:25]
    for some in (vectors, vectors.stored_as("float16"), vectors.stored_as("int8")):
        found = some.neighbours("w7", 25)
        if some is vectors:
            assert [word for word, _ in found] == [f"w{i}" for i in expected]
        np.testing.assert_allclose([x for _, x in found], cosines[expected], atol=0.02)


def test_rows_that_are_not_finite_are_similar_to_nothing():
    table = np.array([[1, 0], [np.nan, 1], [np.inf, 0], [1e30, 1e30], [1e-30, 0]], "float32")
    vectors = Vectors(list("abcde"), table)
    found = dict(vectors.neighbours("a"))
    assert found["b"] == found["c"] == 0
    assert found["d"] == pytest.approx(0.5**0.5, rel=1e-5) and found["e"] == pytest.approx(1)
    assert vectors.similarity("b", "a") == 0


def test_word_outside_the_table_needs_subwords(vectors):
    with pytest.raises(KeyError, match="'xyz'.*no subwords.*A .vec .*words only; fastText's .bin"):
        vectors["xyz"]
    with pytest.raises(KeyError, match="'xyz'"):
        vectors[["king", "xyz"]]
    with pytest.raises(KeyError, match="'xyz' is not among the 6 words"):
        vectors.index("xyz")


def test_word_outside_the_table_by_its_subwords(with_subwords):
    vectors, subwords = with_subwords, with_subwords.subwords
    expected = vectors.subword_table.array[subwords.ids("kings")].mean(axis=0)
    np.testing.assert_allclose(vectors["kings"], expected, rtol=1e-6)
    np.testing.assert_allclose(vectors[["king", "kings"]], [TABLE[0], expected], rtol=1e-6)
    assert "kings" not in vectors
    assert vectors["</s>"].tolist() == [0, 0, 0]
    assert vectors.neighbours("kings", 3)


def test_sentence(vectors, with_subwords):
    expected = (np.array([1, 1, 0]) / 2**0.5 + [0, -1, 0]) / 2
    np.testing.assert_allclose(vectors.sentence(" king\twoman zero unknown\n"), expected, atol=1e-6)
    assert vectors.sentence("").tolist() == vectors.sentence("unknown").tolist() == [0, 0, 0]
    assert with_subwords.sentence("unknown").any()


def test_parts_of_a_table(vectors, with_subwords):
    first = vectors.first(2)
    assert first.words == ["king", "queen"] and first.counts.tolist() == [6, 5]
    some = vectors.only(["woman", "king", "unknown"])
    assert some.words == ["king", "woman"] and some.counts.tolist() == [6, 3]
    assert some["woman"].tolist() == [0, -1, 0]
    for part in (with_subwords.first(2), with_subwords.only(["king"])):
        np.testing.assert_array_equal(part["kings"], with_subwords["kings"])


@pytest.mark.parametrize(("storage", "atol"), [("float32", 0), ("float16", 2e-3), ("int8", 0.02)])
def test_storage(with_subwords, tmp_path, storage, atol):
    small = with_subwords.stored_as(storage)
    assert small.table.storage == small.subword_table.storage == storage
    small.save(tmp_path / "v")
    for memory_map in (True, False):
        loaded = Vectors.load(tmp_path / "v", memory_map)
        assert loaded.words == WORDS and loaded.table.storage == storage
        for word in [*WORDS, "kings"]:
            np.testing.assert_array_equal(loaded[word], small[word])
            np.testing.assert_allclose(loaded[word], with_subwords[word], atol=atol)
        assert loaded.subwords == with_subwords.subwords
    again = small.stored_as("float32")
    np.testing.assert_array_equal(again["king"], small["king"])
    assert small.first(1)["king"].tolist() == small.only(["king"])["king"].tolist()


def test_int8_keeps_what_it_can():
    table = np.array([[1, -127, 3], [0, 0, 0], [np.nan, 1, 2], [1e-30, 0, 0]], "float32")
    small = Vectors(list("abcd"), table).stored_as("int8")
    assert small["a"].tolist() == [1, -127, 3] and small["b"].tolist() == [0, 0, 0]
    assert np.isnan(small["c"]).all() and small["d"][0] == pytest.approx(1e-30)


def test_float16_says_what_it_cannot_hold():
    with pytest.raises(ValueError, match="float16 holds numbers up to 65504.*70000 in row 1"):
        Vectors(["a", "b"], np.array([[1.0], [70000.0]])).stored_as("float16")


def test_native_format_keeps_any_words(tmp_path):
    words = [
        "",
        " ",
        "a\nb",
        "a\\nb",
        "\\",
        "\\\\n",
        to_text(b"\xff\x80"),
        "日本",
        "a b",
        "\r",
        "\0",
    ]
    vectors = Vectors(words, np.eye(len(words)), labels=["x\ny", "z"], counts=range(len(words)))
    vectors.save(tmp_path / "v")
    loaded = Vectors.load(tmp_path / "v")
    assert loaded.words == words and loaded.labels == ["x\ny", "z"]
    assert loaded.counts.tolist() == list(range(len(words)))
    vectors.first(1).save(tmp_path / "v")  # takes the place of what was there
    assert Vectors.load(tmp_path / "v").words == [""]


def test_native_format_is_checked(vectors, tmp_path):
    with pytest.raises(ValueError, match="holds no vectors.json"):
        Vectors.load(tmp_path)
    vectors.save(tmp_path / "v")
    data = (tmp_path / "v/table.npy").read_bytes()
    (tmp_path / "v/table.npy").write_bytes(data[:-4])
    with pytest.raises(ValueError, match="table.npy is truncated"):
        Vectors.load(tmp_path / "v")
    np.save(tmp_path / "v/table.npy", TABLE[:3])
    with pytest.raises(ValueError, match=r"table.npy has shape \(3, 3\)"):
        Vectors.load(tmp_path / "v")
    (tmp_path / "v/words.txt").write_text("one\ntwo\n")
    with pytest.raises(ValueError, match=r"words.txt holds 2 words, vectors.json says 6"):
        Vectors.load(tmp_path / "v")
    (tmp_path / "v/vectors.json").write_text('{"format": 9}')
    with pytest.raises(ValueError, match="is of format 9"):
        Vectors.load(tmp_path / "v")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"words": None}, "vectors.json must hold 'words', of type int. Received: None"),
        ({"storage": 5}, "vectors.json must hold 'storage', of type str. Received: 5"),
        ({"subwords": {"min_n": 3}}, "'subwords' must hold min_n, max_n and buckets"),
        ({"subwords": {"min_n": 3, "max_n": 4, "buckets": -1}}, "vectors.json: `buckets` must be"),
        (
            {"subwords": {"min_n": 3, "max_n": 4, "buckets": 99}},
            r"subword_table.npy has shape \(10, 3\), vectors.json says at least \(99, 3\)",
        ),
        ({"subword_storage": None}, "unknown storage None"),
        ({"counts.npy": np.zeros((6, 2), int)}, r"counts.npy must hold 6 int64.*\(6, 2\)"),
        ({"prune_map.npy": np.array([[10, 0]], np.int32)}, "prune_map.npy must hold numbers of 10"),
        ({"prune_map.npy": np.array([[9, 10]], np.int32)}, r"says at least \(11, 3\)"),
        ({"prune_map.npy": np.array([9, 1], np.int32)}, r"prune_map.npy must hold .*\(2,\)"),
        ({"subword_table.npy": np.ones((10, 2), "float32")}, r"has shape \(10, 2\)"),
    ],
)
def test_native_parts_that_do_not_fit(with_subwords, tmp_path, changes, message):
    with_subwords.save(tmp_path / "v")
    config = json.loads((tmp_path / "v/vectors.json").read_text())
    for name, value in changes.items():
        if name.endswith(".npy"):
            np.save(tmp_path / "v" / name, value)
        else:
            config[name] = value
    (tmp_path / "v/vectors.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message):
        Vectors.load(tmp_path / "v")


def test_scales_of_int8_are_checked(vectors, tmp_path):
    vectors.stored_as("int8").save(tmp_path / "v")
    np.save(tmp_path / "v/scales.npy", np.array(["x"] * 6))
    with pytest.raises(ValueError, match="scales.npy must hold 6 float32 numbers"):
        Vectors.load(tmp_path / "v")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Vectors(["a"], np.zeros((2, 3))), "same length.*1 words, 2 rows"),
        (lambda: Vectors(["a", "b", "a"], np.zeros((3, 2))), "a word twice.*'a' twice"),
        (lambda: Vectors(["a"], np.zeros(3)), r"must have shape \(V, D\).*\(3,\)"),
        (lambda: Vectors(["a"], np.zeros((1, 2)), counts=[1, 2]), "`counts`.*2 for 1 words"),
        (lambda: Vectors(["a"], np.zeros((1, 2)), Subwords(3, 6, 5)), "need `subword_table`"),
        (
            lambda: Vectors(["a"], np.zeros((1, 2)), Subwords(3, 6, 5), np.zeros((4, 2))),
            r"must have shape \(5, 2\)",
        ),
        (lambda: Vectors("ab", np.zeros((2, 3))), "`words` must be a list of str. Received: 'ab'"),
        (lambda: Vectors(["a", 5], np.zeros((2, 3))), "`words` must be a list.*in it: 5"),
        (lambda: Vectors([b"a"], np.zeros((1, 3))), "`words` must be a list.*in it: b'a'"),
        (lambda: Vectors(["a"], np.zeros((1, 0))), r"one number a word at least.*\(1, 0\)"),
        (lambda: Vectors(["a"], np.zeros((1, 2)), None, np.zeros((4, 2))), "needs `subwords`"),
        (lambda: Vectors(["a"], np.zeros((1, 2))).stored_as("int4"), "`storage` must be.*'int4'"),
    ],
)
def test_wrong_parts(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_wrong_questions(vectors):
    with pytest.raises(ValueError, match="`top` must be"):
        vectors.neighbours("king", 0)
    with pytest.raises(ValueError, match="`method` must be one of.*'best'"):
        vectors.most_similar("king", method="best")
    with pytest.raises(ValueError, match="must not both be empty"):
        vectors.most_similar([])
    with pytest.raises(ValueError, match=r"must have shape \(3,\).*\(2,\)"):
        vectors.neighbours(np.zeros(2))
    with pytest.raises(ValueError, match="`restrict` must be"):
        vectors.neighbours("king", restrict=0)
    for ask in (vectors.get, vectors.only):  # not letter by letter
        with pytest.raises(ValueError, match="`words` must be a list of str. Received: 'king'"):
            ask("king")
    with pytest.raises(ValueError, match="`words` must be a list of str. Received: 5"):
        vectors[5]
    with pytest.raises(ValueError, match="Give words or vectors. Received: 5"):
        vectors.most_similar(5)
