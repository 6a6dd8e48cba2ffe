"""The Word2Vec recipe as a user runs it: text to vectors, broken off and resumed."""

import csv
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from kctx import convert, training
from kctx.vectors import Vectors

pytestmark = pytest.mark.once

RECIPE = Path(__file__).resolve().parent.parent.parent / "recipes" / "pretrain_word2vec.py"
# Of so few words each is frequent: nothing is left out.
SETTINGS = {"dim": 8, "epochs": 3, "min_count": 2, "sample": 0.0, "learning_rate": 0.1}


@pytest.fixture(scope="module")
def recipe():
    """The recipe as a module: starting Python anew for each run would take most of the time."""
    spec = importlib.util.spec_from_file_location("pretrain_word2vec", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    rng = np.random.default_rng(0)
    topics = ["cat dog mouse purrs barks fur".split(), "car truck wheel drives brakes fuel".split()]
    lines = []
    for _ in range(500):
        words = [*topics[rng.integers(2)], "new york", "the"]
        lines.append(" ".join(rng.choice(words, rng.integers(4, 12))))
    path.write_text("\n".join([*lines, "once"]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tests_of_words(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tests")
    (folder / "pairs.tsv").write_text("cat\tdog\t9\ncar\ttruck\t9\ncat\tcar\t1\ndog\tfuel\t1\n")
    (folder / "questions.txt").write_text(": gram\ncat dog car truck\nmouse once car truck\n")
    return {"word_pairs": folder / "pairs.tsv", "analogies": folder / "questions.txt"}


def run(recipe, corpus, folder, **options):
    recipe.main(recipe.Config((str(corpus),), folder, **{**SETTINGS, **options}))


@pytest.fixture(scope="module")
def whole(recipe, corpus, tests_of_words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "word2vec"
    run(recipe, corpus, folder, **tests_of_words)
    return folder


def losses(folder):
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        return [(row["step"], row["loss"]) for row in csv.DictReader(file)]


def test_all_that_it_writes(whole):
    found = {path.name for path in whole.iterdir()}
    expected = "vocab.txt ids.bin vectors vectors.bin checkpoints log.csv tensorboard metrics.json"
    assert {*expected.split(), "learning_curves.png"} <= found
    vectors = Vectors.load(whole / "vectors")
    other, _ = convert.load_vectors(whole / "vectors.bin")
    assert vectors.words == other.words and "once" not in vectors and vectors.dim == 8
    np.testing.assert_array_equal(vectors["cat"], other["cat"])
    metrics = json.loads((whole / "metrics.json").read_text())
    assert metrics["vocabulary"] == 15 and metrics["parameters"] == 2 * 15 * 8
    assert metrics["words_per_second"] > 0
    assert metrics["word_pairs_used"] == 4 and metrics["word_pairs_spearman"] > 0.8
    assert metrics["analogies_used"] == 1 and metrics["analogies_total"] in (0, 1)
    curve = [float(loss) for _, loss in losses(whole)]
    assert len(curve) > 8 and curve[-1] < 0.9 * curve[0]


def test_broken_and_resumed(recipe, corpus, whole, tests_of_words, tmp_path, monkeypatch):
    class Died(Exception):
        pass

    def on_step(self, logs):
        if self.step == self._total * 2 // 3 - 2:
            raise Died
        shown(self, logs)

    shown, folder = training.WordProgress.on_step, tmp_path / "run"
    monkeypatch.setattr(training.WordProgress, "on_step", on_step)
    with pytest.raises(Died):
        run(recipe, corpus, folder, **tests_of_words)
    monkeypatch.undo()
    assert not (folder / "vectors").exists()
    with pytest.raises(ValueError, match="already holds checkpoints"):
        run(recipe, corpus, folder)
    for options, message in (
        ({"window": 3}, "data/window: saved 5, now 3"),
        ({"min_count": 3}, "run/min_count: saved 2, now 3"),
        ({"max_size": 9}, "run/max_size: saved None, now 9"),
        ({"phrase_thresholds": (3.0,)}, "run/phrase_thresholds/0: saved 'nothing', now 3.0"),
    ):
        with pytest.raises(ValueError, match=message):
            run(recipe, corpus, folder, resume=True, **options)
    other = tmp_path / "text.txt"
    other.write_text(corpus.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"run/corpus/0/1: saved \d+, now \d+"):
        run(recipe, other, folder, resume=True)
    run(recipe, corpus, folder, resume=True, **tests_of_words)
    assert losses(folder) == losses(whole)
    assert (folder / "vectors.bin").read_bytes() == (whole / "vectors.bin").read_bytes()


def test_resumed_before_the_first_checkpoint(recipe, corpus, whole, tmp_path, monkeypatch):
    """What an earlier try made of the text is not taken for that of other options."""
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(recipe.training, "fit_stream", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(recipe, corpus, folder, min_count=300)
    assert len(recipe.data.WordVocabulary.load(folder / "vocab.txt")) == 3
    run(recipe, corpus, folder, resume=True)
    assert (folder / "vectors.bin").read_bytes() == (whole / "vectors.bin").read_bytes()


def test_phrases_and_the_tree(recipe, corpus, tmp_path, capsys):
    run(
        recipe,
        corpus,
        tmp_path / "run",
        phrase_thresholds=(3.0,),
        architecture="cbow",
        objective="hierarchical_softmax",
        epochs=1,
    )
    vectors = Vectors.load(tmp_path / "run" / "vectors")
    assert "new_york" in vectors and "new" not in vectors
    assert "1 phrases, new_york" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "given", "expected"),
    [(3000, None, 4), (10**5, None, 31), (10**7, None, 128), (10**7, 3, 3)],
)
def test_steps_of_a_small_corpus_are_small(recipe, words, given, expected):
    vocabulary = recipe.data.WordVocabulary(["a"], [words])
    assert recipe.step_blocks(recipe.Config(("",), step_blocks=given), vocabulary) == expected


def test_errors_before_any_training(recipe, corpus, tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.tsv"):
        run(recipe, corpus, tmp_path / "run", word_pairs=tmp_path / "absent.tsv")
    with pytest.raises(ValueError, match="No word of the corpus occurs min_count=99999 times"):
        run(recipe, corpus, tmp_path / "run", min_count=99999)
    for option, value in (
        ("learning_rate", 0.0),
        ("step_blocks", 0),
        ("block_words", 0),
    ):  # not the default instead
        with pytest.raises(ValueError, match=f"`{option}` must be .* Received: {option}={value}"):
            run(recipe, corpus, tmp_path / "run", **{option: value})


def test_any_bytes(recipe, tmp_path):
    """CRLF, invalid UTF-8, zero bytes, a huge word, `</s>`: all words come back."""
    words = [b"caf\xe9", b"\xff\xfe", b"nul\0", b"</s>", "日本".encode(), b"x" * 100_000, b"the"]
    text = tmp_path / "text.txt"
    text.write_bytes(b"".join(b" ".join(words) + b"\r\n" for _ in range(9)))
    run(recipe, text, tmp_path / "run", epochs=1)
    expected = {word.decode("utf-8", "surrogateescape") for word in words}
    assert set(convert.load_vectors(tmp_path / "run" / "vectors.bin")[0].words) == expected
    assert set(Vectors.load(tmp_path / "run" / "vectors").words) == expected


def test_help(recipe, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["pretrain_word2vec.py", "--help"])
    with pytest.raises(SystemExit) as end:
        recipe.command_line.run(recipe.main, recipe.Config, recipe.__doc__)
    assert end.value.code == 0
    shown = capsys.readouterr().out
    for option in ("--phrase-thresholds", "--architecture", "--shared-negatives", "--word-pairs"):
        assert option in shown
