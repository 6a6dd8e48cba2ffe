"""The recipes as a user runs them, at a tiny size: text to a preset that answers."""

import csv
import json
import os
import signal
import subprocess
import time

import pytest

from kctx import presets
from tests.recipes.scripts import command, refused, run

pytestmark = pytest.mark.once

TINY = ("--num-layers", "1", "--hidden-dim", "16", "--num-heads", "2", "--intermediate-dim", "32")
SETTINGS = (
    *("--size", "tiny", *TINY, "--vocabulary-size", "200", "--batch-size", "4"),
    *("--sequence-length", "32", "--max-predictions", "5", "--steps", "24", "--save-every", "4"),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    words = "the a small large cat dog bird sees hears likes no every house garden".split()
    sentences = [
        " ".join(words[(i * j + j * j) % len(words)] for j in range(3, 9)) + "." for i in range(240)
    ]
    blocks = ["\n".join(sentences[start : start + 8]) for start in range(0, 240, 8)]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pretrained(corpus, tmp_path_factory):
    """A run that nothing broke."""
    folder = tmp_path_factory.mktemp("run") / "bert"
    out = run(
        "pretrain_bert", "--corpus", corpus, "--output", folder, *SETTINGS, "--held-out", corpus
    )
    assert "held_out_unigram_entropy" in out
    return folder


def losses(folder):
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in rows]


def test_kill_and_resume_gives_the_same_losses(corpus, pretrained, tmp_path):
    folder = tmp_path / "bert"
    arguments = ("--corpus", corpus, "--output", folder, *SETTINGS)
    child = subprocess.Popen(
        command("pretrain_bert", *arguments), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.time() + 120
    while not list(folder.glob("checkpoints/step-0000000*/manifest.json")):
        assert child.poll() is None and time.time() < deadline
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert not (folder / "preset").exists()
    run("pretrain_bert", *arguments, "--resume")
    assert losses(folder) == losses(pretrained)
    message = refused("pretrain_bert", *arguments, "--resume", "--batch-size", "5")
    assert "data/batch_size: saved 4, now 5" in message


def test_a_forgotten_resume_costs_nothing(pretrained, corpus):
    def content():
        return {path: path.read_bytes() for path in pretrained.rglob("*") if path.is_file()}

    before = content()
    other = (*SETTINGS, "--vocabulary-size", "150")
    message = refused("pretrain_bert", "--corpus", corpus, "--output", pretrained, *other)
    assert "already holds checkpoints" in message
    assert content() == before


def test_a_run_from_another_keeps_its_tokenizer(pretrained, corpus, tmp_path):
    """Also when it is resumed, and with records, which must fit the options."""
    settings = SETTINGS[SETTINGS.index("--vocabulary-size") :]  # its shape comes with it
    options = ("--corpus", corpus, "--output", tmp_path / "second", *settings)
    options += ("--init-from", pretrained)
    records = ("--records", tmp_path / "records")
    run("pretrain_bert", *options, *records)
    for name in ("tokenizer.json", "vocabulary.txt"):
        first, second = (folder / name for folder in (pretrained, tmp_path / "second"))
        assert first.read_bytes() == second.read_bytes()
    assert "All steps are done" in run("pretrain_bert", *options, *records, "--resume")
    third = ("pretrain_bert", *options, *records, "--output", tmp_path / "third")
    assert "were written with sequence_length=32" in refused(*third, "--sequence-length", 64)
    assert "brings its own shape. Received: size, num_layers" in refused(*third, *SETTINGS[:4])
    assert not (tmp_path / "third").exists()
    weights = "pretraining/model.weights.h5"
    second = (tmp_path / "second" / weights).read_bytes()
    assert second != (pretrained / weights).read_bytes()


def test_one_document_without_next_sentences(tmp_path):
    path = tmp_path / "one.txt"
    path.write_text("A cat sees a dog.\nThe dog sees no cat.\n" * 40, encoding="utf-8")
    options = ("--corpus", path, "--output", tmp_path / "run", *SETTINGS)
    message = refused("pretrain_bert", *options)
    assert "\nerror: " in f"\n{message}" and "Traceback" not in message
    assert "next_sentence=False" in message
    out = run("pretrain_bert", *options, "--no-next-sentence", "--held-out", path)
    assert "held_out_masked_lm_loss" in out and "held_out_next_sentence" not in out


def labelled(path, rows):
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_classification_from_pretraining_to_answers(pretrained, tmp_path):
    rows = [
        (f"the {x} cat sees no house", y) for x, y in [("small", "good"), ("large", "bad")] * 20
    ]
    train = labelled(tmp_path / "train.tsv", [("text", "label"), *rows])
    output = tmp_path / "run"
    out = run(
        "finetune_classification",
        *("--encoder", pretrained / "preset", "--train", train, "--text", "text"),
        *("--label", "label", "--epochs", 2, "--batch-size", 8, "--output", output),
    )
    assert "accuracy" in out
    found = {path.name for path in output.iterdir()}
    assert {"preset", "metrics.json", "predictions.jsonl", "confusion.png", "log.csv"} <= found
    answer = presets.load(output / "preset").predict(["the small cat"])[0]
    assert set(answer["scores"]) == {"good", "bad"}


def test_regression_on_pairs(pretrained, tmp_path):
    """Tab-separated under the name of a CSV, without a header, as the STS benchmark comes."""
    rows = [("x", str(i % 5), "a cat sees", "a dog sees" if i % 2 else "a cat") for i in range(30)]
    train = labelled(tmp_path / "train.csv", rows)
    run(
        "finetune_classification",
        *("--encoder", pretrained / "preset", "--train", train, "--format", "tsv"),
        *("--header", "no", "--text", 2, "--pair", 3, "--label", 1, "--task", "regression"),
        *("--epochs", 1, "--output", tmp_path / "run"),
    )
    loaded = presets.load(tmp_path / "run" / "preset")
    assert set(loaded.predict(["a cat"], ["a dog"])[0]) == {"score"}
    row = (tmp_path / "run" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert {"text", "text_pair"} <= set(json.loads(row))  # as `kctx predict` is asked


def test_fill_mask(pretrained):
    out = run("fill_mask", "--preset", pretrained / "pretraining", "--text", "the [MASK] sees")
    assert "guess 5" in out
    assert "[MASK]" in refused("fill_mask", "--preset", pretrained / "pretraining", "--text", "the")


def test_clear_errors_before_any_training(corpus, tmp_path):
    output = ("--output", tmp_path / "run", *SETTINGS)
    absent = ("--corpus", tmp_path / "*.txt")
    process = subprocess.run(
        command("pretrain_bert", *absent, *output), capture_output=True, text=True
    )
    assert process.returncode == 2 and "Traceback" not in process.stderr
    assert "\nerror: No file matches" in f"\n{process.stderr}"
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    message = refused("pretrain_bert", "--corpus", tmp_path / "empty.txt", *output)
    assert "The corpus is empty" in message
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9\n\nb\n")
    message = refused("pretrain_bert", "--corpus", tmp_path / "latin.txt", *output)
    assert "latin.txt is not valid utf-8: the byte at offset 3" in message


def test_held_out_text_is_looked_at_before_any_training(corpus, tmp_path):
    """Two short documents are fewer sequences than the batch holds."""
    (tmp_path / "few.txt").write_text("A cat.\n\nA bird.\n", encoding="utf-8")
    message = refused(
        "pretrain_bert",
        *("--corpus", corpus, "--output", tmp_path / "run", *SETTINGS),
        *("--held-out", tmp_path / "few.txt"),
    )
    assert "fewer than one batch" in message
    assert not (tmp_path / "run" / "checkpoints").exists()
