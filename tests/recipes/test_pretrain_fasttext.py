"""The fastText recipe as a user runs it: text to model files, broken off and resumed."""

import csv
import importlib.util
import json
import sys
from pathlib import Path

import pytest

from kctx import training
from kctx.convert import FastTextFile
from kctx.vectors import FastTextPredictor, Vectors
from tests.models.fasttext_data import labelled_lines, toy_lines

pytestmark = pytest.mark.once

RECIPE = Path(__file__).resolve().parent.parent.parent / "recipes" / "pretrain_fasttext.py"
VECTORS = {"dim": 8, "epochs": 3, "min_count": 1, "sample": 0.0, "buckets": 50, "step_size": 4}
CLASSIFIER = {"task": "supervised", "dim": 8, "epochs": 10, "learning_rate": 0.5, "buckets": 300}


@pytest.fixture(scope="module")
def recipe():
    """The recipe as a module: starting Python anew for each run would take most of the time."""
    spec = importlib.util.spec_from_file_location("pretrain_fasttext", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    (folder / "text.txt").write_text("\n".join(toy_lines(300)) + "\n", encoding="utf-8")
    for name, seed in (("train", 0), ("valid", 1)):
        lines = [" ".join([*labels, *words]) for labels, words in labelled_lines(400, seed)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        rows = [f"{' '.join(words)}\t{labels[0]}" for labels, words in labelled_lines(400, seed)]
        table = "\n".join(["text\tlabel", *rows]).replace("__label__", "topic ")
        (folder / f"{name}.tsv").write_text(table + "\n", encoding="utf-8")
    return folder


def run(recipe, source, folder, **options):
    recipe.main(recipe.Config((str(source),), output=folder, **options))
    return json.loads((folder / "metrics.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole(recipe, texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "vectors"
    run(recipe, texts / "text.txt", folder, **VECTORS)
    return folder


def losses(folder):
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        return [(row["step"], row["loss"]) for row in csv.DictReader(file)]


def test_vectors(whole):
    file = FastTextFile.read(whole / "model.bin")
    assert (file.arguments.model, file.arguments.loss, file.arguments.buckets) == (
        *("skipgram", "ns"),
        50,
    )
    lines = toy_lines(300)
    assert file.num_tokens == sum(len(line.split()) + 1 for line in lines)
    assert file.counts[file.words.index("</s>")] == len(lines)
    vectors = Vectors.load(whole / "vectors")
    assert vectors.words == file.words and vectors["unseen"].any()
    first = (whole / "vectors.vec").read_text(encoding="utf-8").split("\n")[0]
    assert first == f"{len(file.words)} 8"
    curve = [float(loss) for _, loss in losses(whole)]
    assert len(curve) > 8 and curve[-1] < curve[0]
    assert (whole / "learning_curves.png").stat().st_size > 1000


def test_broken_and_resumed(recipe, texts, whole, tmp_path, monkeypatch):
    class Died(Exception):
        pass

    def on_step(self, logs):
        if self.step == self._total * 2 // 3 - 2:
            raise Died
        shown(self, logs)

    shown, folder = training.WordProgress.on_step, tmp_path / "run"
    monkeypatch.setattr(training.WordProgress, "on_step", on_step)
    with pytest.raises(Died):
        run(recipe, texts / "text.txt", folder, **VECTORS)
    monkeypatch.undo()
    assert not (folder / "model.bin").exists()
    with pytest.raises(ValueError, match="already holds checkpoints"):
        run(recipe, texts / "text.txt", folder, **VECTORS)
    with pytest.raises(ValueError, match="run/max_n: saved 6, now 5"):
        run(recipe, texts / "text.txt", folder, resume=True, max_n=5, **VECTORS)
    run(recipe, texts / "text.txt", folder, resume=True, **VECTORS)
    assert losses(folder) == losses(whole)
    for name in ("model.bin", "vectors.vec"):
        assert (folder / name).read_bytes() == (whole / name).read_bytes()


def test_classifier(recipe, texts, tmp_path):
    metrics = run(
        *(recipe, texts / "train.txt", tmp_path),
        valid=texts / "valid.txt",
        word_ngrams=2,
        quantize=True,
        cutoff=300,
        top=2,
        **CLASSIFIER,
    )
    assert metrics["accuracy"] > 0.95 and metrics["accuracy_quantized"] > 0.9
    rows = (tmp_path / "predictions.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [json.loads(row) for row in rows]
    assert len(rows) == metrics["lines"] == 400
    hits = sum(len(set(row["gold"]) & set(row["labels"])) for row in rows)
    assert metrics["precision_at_2"] == pytest.approx(hits / 800)
    golds = sum(len(row["gold"]) for row in rows)
    assert metrics["recall_at_2"] == pytest.approx(hits / golds)
    small = FastTextFile.read(tmp_path / "model.ftz")
    assert small.is_quantized and small.inputs.shape[0] == 300
    label, _ = FastTextPredictor(small).predict("w20 w21 w22")[0]
    assert label == "__label__2"


def test_tables(recipe, texts, tmp_path):
    """Labels are what the column holds, with the prefix."""
    metrics = run(
        *(recipe, texts / "train.tsv", tmp_path),
        valid=texts / "valid.tsv",
        text="text",
        label="label",
        loss="hs",
        **CLASSIFIER,
    )
    assert metrics["accuracy"] > 0.9 and (tmp_path / "confusion.png").stat().st_size > 1000
    file = FastTextFile.read(tmp_path / "model.bin")
    assert set(file.labels) == {f"__label__topic {i}" for i in range(3)}
    assert file.arguments.buckets == 0 and file.arguments.loss == "hs"


def test_several_labels(recipe, texts, tmp_path):
    options = {**CLASSIFIER, "loss": "ova", "epochs": 30}
    run(recipe, texts / "train.txt", tmp_path, valid=texts / "valid.txt", **options)
    answers = dict(
        FastTextPredictor(FastTextFile.read(tmp_path / "model.bin")).predict("w10 w11 w12", k=-1)
    )
    assert answers["__label__1"] > 0.8 and max(answers["__label__0"], answers["__label__2"]) < 0.3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "softmax"}, "--loss softmax is for --task supervised only"),
        ({"word_ngrams": 2}, "--word-ngrams is for --task supervised only"),
        ({"quantize": True}, "--quantize is for --task supervised only"),
        ({"min_count": 9999}, "Lower `min_count`"),
        ({"min_n": 5, "max_n": 3}, "`min_n` must not be above `max_n`.*min_n=5, max_n=3"),
        ({"block_words": 0}, "`block_words` must be an integer of at least 1"),
        ({"step_size": 0}, "`step_blocks` must be an integer of at least 1"),
        ({"buckets": 0}, "`buckets` must be an integer of at least 1"),
        ({"task": "supervised"}, "No line has a label.*'__label__'"),
        ({"task": "supervised", "text": "0"}, "give both or none"),
    ],
)
def test_errors_before_any_training(recipe, texts, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(recipe, texts / "text.txt", tmp_path / "run", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"word_ngrams": 2, "buckets": 0}, "N-grams of words need buckets.*word_ngrams=2"),
        ({"min_count": 9999}, "None of .* words occurs min_count=9999 times"),
        ({"min_count_label": 9999}, "None of 3 labels occurs min_count_label=9999 times"),
        ({"label_prefix": "__label__1"}, "at least two labels"),
        ({"quantize": True, "min_count": 3}, "--quantize needs at least 256 rows, of words"),
        ({"top": 0}, "--top must be above 0, or -1 for all. Received: --top 0"),
        ({"cutoff": -1}, "--cutoff must not be below 0. Received: --cutoff -1"),
        ({"learning_rate": 0.0}, "`learning_rate` must be above 0"),
        ({"step_size": 0}, "`step_lines` must be"),
    ],
)
def test_labelled_errors_before_any_training(recipe, texts, tmp_path, options, message):
    options = {"task": "supervised", **options}
    with pytest.raises(ValueError, match=message):
        run(recipe, texts / "train.txt", tmp_path / "run", **options)
    absent = tmp_path / "absent.txt"
    with pytest.raises(FileNotFoundError, match="absent.txt"):
        run(recipe, texts / "train.txt", tmp_path, task="supervised", valid=absent)


def test_a_rate_that_is_too_high_writes_no_vectors(recipe, texts, tmp_path):
    with pytest.raises(FloatingPointError, match="loss is not finite.*lower learning rate"):
        run(recipe, texts / "text.txt", tmp_path, **{**VECTORS, "learning_rate": 1e30})
    assert not (tmp_path / "model.bin").exists() and not (tmp_path / "vectors").exists()
