"""fastText files, vectors and predictions against those stored of the reference implementation."""

from pathlib import Path

import numpy as np
import pytest

from kctx.convert import FastTextFile, load_vectors, save_vectors
from kctx.vectors import FastTextPredictor
from kctx.words import to_text
from tests.parity.fasttext_texts import OUTSIDE, RAW, TEXTS

pytestmark = pytest.mark.once

UNSUPERVISED = ("skipgram", "cbow")
SUPERVISED = ("softmax", "hs", "ns", "ova", "softmax_quantized", "hs_quantized")


@pytest.fixture(scope="module")
def stored():
    with np.load(Path(__file__).with_name("fasttext.npz")) as file:
        return dict(file)


@pytest.fixture
def model_path(stored, tmp_path):
    def write(name):
        path = tmp_path / f"{name}.bin"
        path.write_bytes(stored[f"{name}/file"].tobytes())
        return path

    return write


@pytest.mark.parametrize("memory_map", [True, False])
@pytest.mark.parametrize("name", [*UNSUPERVISED, *SUPERVISED])
def test_a_file_read_and_written_is_the_same(model_path, tmp_path, name, memory_map):
    path = model_path(name)
    FastTextFile.read(path, memory_map=memory_map).write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_vectors(stored, model_path, name):
    vectors, report = load_vectors(model_path(name))
    assert report.file_format == "fasttext" and report.duplicates == []
    expected = stored[f"{name}/vectors"]
    words = vectors.words + OUTSIDE
    np.testing.assert_allclose(vectors.get(words), expected, atol=1e-6)
    for word, row in zip(words, expected, strict=True):
        np.testing.assert_allclose(vectors[word], row, atol=1e-6)
    sentences = [vectors.sentence(text) for text in TEXTS]
    np.testing.assert_allclose(sentences, stored[f"{name}/sentences"], atol=1e-6)


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_buckets_of_bytes_that_are_not_utf8(stored, model_path, name):
    file = FastTextFile.read(model_path(name))
    rows, _ = file.subword_rows.of_words([to_text(word) for word in RAW])
    assert rows.tolist() == stored[f"{name}/raw_ids"].tolist()


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_neighbours_and_analogies(stored, model_path, name):
    vectors, _ = load_vectors(model_path(name))
    found = vectors.neighbours("red", 5)
    assert [word for word, _ in found] == stored[f"{name}/neighbours"].tolist()
    np.testing.assert_allclose([x for _, x in found], stored[f"{name}/similarities"], atol=1e-5)
    answers = vectors.analogy("blue", "red", "green", 3)
    assert [word for word, _ in answers] == stored[f"{name}/analogy"].tolist()


@pytest.mark.parametrize("name", SUPERVISED)
def test_predictions(stored, model_path, name):
    file = FastTextFile.read(model_path(name))
    predictor = FastTextPredictor(file)
    expected = stored[f"{name}/probabilities"]
    many = predictor.predict(TEXTS, k=-1)
    for text, answers, row in zip(TEXTS, many, expected, strict=True):
        probabilities = dict(answers)
        got = [probabilities.get(label, 0.0) for label in file.labels]
        np.testing.assert_allclose(got, row, atol=1e-5)
        assert sorted(probabilities.values(), reverse=True) == [x for _, x in answers]
        np.testing.assert_allclose(
            [x for _, x in predictor.predict(text, k=2)], [x for _, x in answers[:2]], atol=1e-6
        )
    np.testing.assert_allclose(predictor.sentence(TEXTS), stored[f"{name}/sentences"], atol=1e-5)


@pytest.mark.parametrize("name", SUPERVISED)
def test_threshold(stored, model_path, name):
    file = FastTextFile.read(model_path(name))
    answers = FastTextPredictor(file).predict(TEXTS, k=-1, threshold=0.25)
    expected = stored[f"{name}/probabilities"]
    for some, row in zip(answers, expected, strict=True):
        assert {label for label, _ in some} == {
            label for label, x in zip(file.labels, row, strict=True) if x >= 0.25 + 1e-5
        }


@pytest.mark.parametrize("name", UNSUPERVISED)
def test_vec_file_is_the_reference_tool_s(model_path, tmp_path, name):
    vectors, _ = load_vectors(model_path(name))
    save_vectors(vectors, tmp_path / "x.vec", "vec")
    lines = (tmp_path / "x.vec").read_bytes().split(b"\n")
    assert lines[0] == b"%d %d" % (len(vectors), vectors.dim)
    word, *numbers = lines[1].split(b" ")
    assert word.decode("utf-8") == vectors.words[0] and numbers[-1] == b""
    assert numbers[0] == b"%.5g" % vectors[vectors.words[0]][0]


def test_the_reference_reads_what_we_write(model_path, tmp_path):
    """With the wheel at hand only: a quantised model of ours, and vectors written as `.bin`."""
    fasttext = pytest.importorskip("fasttext")
    quantized = FastTextFile.read(model_path("ns")).quantize(cutoff=280, norms=True)
    quantized.write(tmp_path / "x.ftz")
    theirs, ours = fasttext.load_model(str(tmp_path / "x.ftz")), FastTextPredictor(quantized)
    for text in TEXTS:
        expected = {y: x for x, y in theirs.f.predict(text + "\n", -1, 0.0, "strict")}
        got = dict(ours.predict(text, -1))
        assert got == pytest.approx(expected, abs=1e-5)
    vectors, _ = load_vectors(model_path("skipgram"))
    save_vectors(vectors, tmp_path / "x.bin", "fasttext")
    theirs = fasttext.load_model(str(tmp_path / "x.bin"))
    for word in [*vectors.words, *OUTSIDE]:
        np.testing.assert_allclose(theirs.get_word_vector(word), vectors[word], atol=1e-5)


def test_gensim_reads_what_we_write(model_path, tmp_path):
    """With gensim at hand only."""
    models = pytest.importorskip("gensim.models")
    fasttext = pytest.importorskip("gensim.models.fasttext")
    vectors, _ = load_vectors(model_path("skipgram"))
    FastTextFile.read(model_path("skipgram")).write(tmp_path / "x.bin")
    save_vectors(vectors, tmp_path / "y.bin", "fasttext")
    for name in ("x.bin", "y.bin"):
        theirs = fasttext.load_facebook_vectors(str(tmp_path / name))
        for word in vectors.words + OUTSIDE:
            if word == "</s>":
                continue  # gensim gives it n-grams, which fastText does not
            np.testing.assert_allclose(theirs[word], vectors[word], atol=1e-5)
    for name, binary in (("word2vec", True), ("word2vec_text", False), ("vec", False)):
        save_vectors(vectors, tmp_path / name, name)
        theirs = models.KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=binary)
        assert theirs.index_to_key == vectors.words
        atol = 1e-5 if name == "vec" else 0
        np.testing.assert_allclose(theirs.vectors, vectors.get(vectors.words), atol=atol)
