"""The recipes of fine-tuning on tiny files, from a tiny encoder: options, output, errors."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import tyro

from kctx import models, presets
from kctx.finetuning.run import load_encoder
from kctx.preprocessors import BERTPreprocessor
from kctx.tokenizers import WordPieceTokenizer

pytestmark = pytest.mark.once

ROOT = Path(__file__).resolve().parent.parent.parent
WORDS = "anna paul paris rome met in saw the a cat dog film was good bad who where ? .".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
FAST = ("--batch-size", "4", "--epochs", "2", "--learning-rate", "1e-2", "--sequence-length", "32")


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder") / "preset"
    tokenizer = WordPieceTokenizer(VOCABULARY)
    bert = models.BERT(len(VOCABULARY), 1, 16, 2, 32, max_sequence_length=32)
    presets.save(folder, bert, BERTPreprocessor(tokenizer, sequence_length=32))
    return folder


def recipe(name):
    """A recipe as a module."""
    name = f"finetune_{name}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, ROOT / "recipes" / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def run(name, encoder, train, output, *options):
    """Runs a recipe with the options of its command line; gives its metrics."""
    module = recipe(name)
    arguments = ["--encoder", encoder, "--train", train, "--output", output, *FAST, *options]
    module.main(tyro.cli(module.Config, args=list(map(str, arguments))))
    return json.loads((output / "metrics.json").read_text(encoding="utf-8"))


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def sentences(count=20):
    rows = [
        (f"the {animal} was {word}", word) for animal in ("cat", "dog") for word in ("good", "bad")
    ]
    return "".join("\t".join(rows[i % 4]) + "\n" for i in range(count))


def tagged(count=20):
    people, places = ("anna", "paul"), ("paris", "rome")
    blocks = [
        f"{people[i % 2]} B-PER\nmet O\nthe O\ncat O\nin O\n{places[i // 2 % 2]} B-LOC\n"
        for i in range(count)
    ]
    return "\n".join(blocks)


def squad(count=20, answerable=True):
    paragraphs = []
    for i in range(count):
        place = ("paris", "rome")[i % 2]
        context = f"anna met paul in {place} ."
        answer = {"text": place, "answer_start": context.index(place)}
        item = {"id": str(i), "question": "where was anna ?", "answers": [answer]}
        if not answerable or i % 5 == 4:
            item |= {"answers": [], "is_impossible": True}
        paragraphs.append({"context": context, "qas": [item]})
    return json.dumps({"version": "v2.0", "data": [{"title": "x", "paragraphs": paragraphs}]})


def choices(count=20):
    rows = []
    for i in range(count):
        names = ["paris", "rome", "the dog"][: 2 + i % 2]
        item = {"context": f"anna was in {names[i % 2]}", "choices": names, "label": i % 2}
        rows.append(json.dumps({**item, "question": "where ?"}))
    return "\n".join(rows) + "\n"


def pairs(count=20):
    rows = [("the cat", "the cat", 5), ("the cat", "a dog", 1), ("anna", "paul", 2.5)]
    return "".join("\t".join(map(str, rows[i % 3])) + "\n" for i in range(count))


CASES = {
    "classification": ("train.tsv", sentences, ("--pooling", "mean"), "confusion.png"),
    "tagging": ("train.txt", tagged, (), "reliability.png"),
    "span": ("train.json", squad, ("--stride", "8"), "reliability.png"),
    "multiple_choice": ("train.jsonl", choices, ("--pooling", "mean"), "reliability.png"),
    "similarity": ("train.tsv", pairs, (), "scores.png"),
}
REQUESTS = {
    "classification": {"text"},
    "tagging": {"words"},
    "span": {"question", "context"},
    "multiple_choice": {"context", "choices"},
    "similarity": {"text", "text_b"},
}
DECISIVE = {"tagging": "f1", "span": "f1", "similarity": "spearman"}


@pytest.mark.parametrize("name", CASES)
def test_a_run_leaves_a_preset_a_report_and_predictions(name, encoder, tmp_path, capsys, recwarn):
    file, content, options, picture = CASES[name]
    train = write(tmp_path / file, content())
    output = tmp_path / "run"
    found = run(name, encoder, train, output, "--dev", train, *options)
    # The pooler, which most heads do not look at, is nothing to warn of.
    assert not [w for w in recwarn if "Gradients do not exist" in str(w.message)]
    names = {path.name for path in output.iterdir()}
    assert {"preset", "predictions.jsonl", "log.csv", picture} <= names
    printed = capsys.readouterr().out
    decisive = DECISIVE.get(name, "accuracy")
    assert next(iter(found)) == decisive and found["baseline"]["name"] in printed
    assert f"{found[decisive]:.4f}" in printed
    assert decisive in found["baseline"]
    best = json.loads((output / "best.json").read_text(encoding="utf-8"))
    assert best[decisive] == pytest.approx(found[decisive], abs=1e-6)
    rows = lines(output / "predictions.jsonl")
    assert len(rows) == 20 and all("gold" in row for row in rows)
    assert all(REQUESTS[name] <= set(row) for row in rows)  # so `kctx predict` answers them, too
    assert presets.load(output / "preset").task == name


def test_tags_are_learnt_with_every_option(encoder, tmp_path, capsys):
    """CRF, layer-wise rates, unfreezing, the average and two seeds in one run."""
    train = write(tmp_path / "train.txt", tagged())
    output = tmp_path / "run"
    options = ("--crf", "--head-rate", 10, "--layer-decay", 0.8, "--unfreeze-every", 0.5)
    options += ("--average", "ema", "--seeds", 2, "--seed", 3, "--dev", train)
    found = run("tagging", encoder, train, output, *options)
    assert set(found["seeds"]) == {"3", "4"}
    runs = [
        json.loads((output / f"seed-{seed}" / "metrics.json").read_text(encoding="utf-8"))
        for seed in (3, 4)
    ]
    assert found["f1"] == pytest.approx(np.mean([metrics["f1"] for metrics in runs]))
    assert found["deviation"]["f1"] == pytest.approx(np.std([r["f1"] for r in runs], ddof=1))
    assert "trained_groups" in (output / "seed-3" / "log.csv").read_text(encoding="utf-8")
    answer = presets.load(output / "seed-4" / "preset").predict(["anna met paul in rome"])[0]
    assert answer["words"] == ["anna", "met", "paul", "in", "rome"] and len(answer["tags"]) == 5
    capsys.readouterr()
    again = run("tagging", encoder, train, output, *options, "--resume")
    assert again == found
    assert capsys.readouterr().out.count("All steps are done") == 2


def test_a_stopped_run_goes_on_to_the_same_weights(encoder, tmp_path, monkeypatch):
    train = write(tmp_path / "train.tsv", sentences())
    options = ("--average", "swa", "--class-weights", "balanced", "--layer-decay", 0.9)
    whole = run("classification", encoder, train, tmp_path / "whole", *options)

    class Killed(Exception):
        pass

    module, calls = recipe("classification"), []
    answers = module.Classification.answers

    def killed(self, text_model):
        calls.append(1)
        if len(calls) == 2:
            raise Killed
        return answers(self, text_model)

    monkeypatch.setattr(module.Classification, "answers", killed)
    with pytest.raises(Killed):
        run("classification", encoder, train, tmp_path / "broken", *options)
    monkeypatch.undo()
    assert run("classification", encoder, train, tmp_path / "broken", *options, "--resume") == whole
    weights = [
        presets.load(tmp_path / name / "preset").model.get_weights() for name in ("whole", "broken")
    ]
    for one, other in zip(*weights, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match="already holds checkpoints"):
        run("classification", encoder, train, tmp_path / "broken", *options)
    dev = write(tmp_path / "dev.tsv", sentences(4))
    with pytest.raises(ValueError, match="run/dev"):
        run(
            *("classification", encoder, train, tmp_path / "broken"),
            *(*options, "--dev", dev, "--resume"),
        )
    with pytest.raises(ValueError, match="run/class_weights"):
        run(
            "classification",
            encoder,
            train,
            tmp_path / "broken",
            *options[:2],
            *options[4:],
            "--resume",
        )


def test_patience_ends_a_run(encoder, tmp_path, capsys):
    train = write(tmp_path / "train.tsv", sentences())
    options = ("--patience", 1, "--learning-rate", "1e-9", "--epochs", 6, "--head-rate", 2)
    run("classification", encoder, train, tmp_path / "run", *options)
    assert "Stopped: nothing was better than step 5" in capsys.readouterr().out
    rows = (tmp_path / "run" / "log.csv").read_text(encoding="utf-8").splitlines()
    assert rows[-1].startswith("10,")


def test_class_weights_count_in_the_loss(encoder, tmp_path):
    """With a weight of 0 for all but one tag, that tag alone is learnt."""
    train = write(tmp_path / "train.txt", tagged())
    module = recipe("tagging")
    arguments = ["--encoder", encoder, "--train", train, "--output", tmp_path / "run", *FAST]
    arguments += ["--class-weights", "balanced", "--epochs", 3]
    config = tyro.cli(module.Config, args=list(map(str, arguments)))
    made = module.Tagging(config)
    counts = [[tag for row in made.train.tags for tag in row].count(tag) for tag in made.labels]
    present = [weight * count for weight, count in zip(made.class_weights, counts, strict=True)]
    assert made.labels == ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
    assert present == pytest.approx([36, 36, 0, 36, 0])  # 108 words of 3 tags that occur

    def only_people(config):
        made.class_weights = [0.0, 0.0, 0.0, 1.0, 0.0]
        return made

    module.finetuning.run(config, only_people)
    answer = presets.load(tmp_path / "run" / "preset").predict(["met the cat"])[0]
    assert set(answer["tags"]) == {"B-PER"}


def test_the_versions_of_squad(encoder, tmp_path):
    train = write(tmp_path / "train.json", squad())
    options = ("--dev", train, "--stride", 8)
    found = run("span", encoder, train, tmp_path / "one", *options, "--version", 1)
    assert found["baseline"]["name"] == "sentence" and "f1_unanswerable" not in found
    rows = lines(tmp_path / "one" / "predictions.jsonl")
    assert all(row["gold"] and row["answer"] for row in rows)
    none = write(tmp_path / "none.json", squad(answerable=False))
    with pytest.raises(ValueError, match="must hold a question with an answer"):
        run("span", encoder, none, tmp_path / "two", *options)
    with pytest.raises(ValueError, match="holds no question with an answer"):
        run("span", encoder, none, tmp_path / "two", *options, "--version", 1)
    assert not (tmp_path / "two").exists()


def test_questions_that_no_window_answers_are_told(encoder, tmp_path, capsys):
    made = json.loads(squad())
    context = "anna met paul . " * 10
    item = {"id": "long", "question": "who ?", "is_impossible": False}
    item["answers"] = [{"text": context.strip(), "answer_start": 0}]
    made["data"][0]["paragraphs"].insert(0, {"context": context, "qas": [item]})
    train = write(tmp_path / "train.json", json.dumps(made))
    run("span", encoder, train, tmp_path / "run", "--dev", train, "--stride", 8)
    expected = "Left out, for answers that no window of 32 tokens holds: 1 (long)"
    assert expected in capsys.readouterr().out
    made["data"][0]["paragraphs"] = made["data"][0]["paragraphs"][:1]
    train = write(tmp_path / "long.json", json.dumps(made))
    with pytest.raises(ValueError, match="that some answer fits in. Received: 32; none of 1 does"):
        run("span", encoder, train, tmp_path / "none", "--dev", train, "--stride", 8)
    options = ("--dev", train, "--stride", 8, "--max-answer-length", 0)
    train = write(tmp_path / "train.json", squad())
    with pytest.raises(ValueError, match="`max_answer_length` must be an integer of at least 1"):
        run("span", encoder, train, tmp_path / "none", *options)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("saved", ["float32", "mixed_float16"])
def test_the_encoder_gets_the_dtype_and_the_length_that_are_asked_for(saved, tmp_path, capsys):
    tokenizer = WordPieceTokenizer(VOCABULARY)
    bert = models.BERT(len(VOCABULARY), 1, 16, 2, 32, max_sequence_length=24, dtype=saved)
    presets.save(tmp_path / "preset", bert, BERTPreprocessor(tokenizer, sequence_length=8))
    module = recipe("classification")
    for asked, dtype in ((16, "mixed_bfloat16"), (100, "float32")):
        options = {"sequence_length": asked, "dtype": dtype}
        config = module.Config(
            encoder=tmp_path / "preset", train=tmp_path / "none", output=tmp_path, **options
        )
        found, preprocessor = load_encoder(config)
        assert found.dtype_policy.name == dtype
        assert preprocessor.sequence_length == min(asked, 24)
    assert "at most 24 tokens, all the model takes" in capsys.readouterr().out


ERRORS = {
    "no rows": ("classification", "a.tsv", "\n", (), "holds no example"),
    "one class": ("classification", "a.tsv", "a\t1\nb\t1\n" * 9, (), "at least two classes"),
    "decimal classes": ("classification", "a.tsv", "a\t1.5\nb\t1\n" * 9, (), "regression=True"),
    "weights of numbers": (
        *("classification", "a.tsv", "a\t1\nb\t2\n" * 9),
        *(("--task", "regression", "--class-weights", "balanced"), "belong to classification"),
    ),
    "no sentence": ("tagging", "a.txt", "\n\n", (), "holds no sentence"),
    "one tag": ("tagging", "a.txt", "a O\n\n" * 20, (), "at least two tags"),
    "weights in a CRF": (
        *("tagging", "a.txt", tagged()),
        *(("--crf", "--class-weights", "balanced"), "weigh single tags"),
    ),
    "too few rows": ("tagging", "a.txt", tagged(9), (), "give `dev`"),
    "no JSON": ("span", "a.json", "", (), "not JSON"),
    "no question": ("span", "a.json", '{"data": []}', (), "holds no question"),
    "no choice": ("multiple_choice", "a.jsonl", "\n", (), "holds no example"),
    "equal numbers": ("similarity", "a.tsv", "a\tb\t1\n" * 20, (), "must be below"),
    "no runs": ("similarity", "a.tsv", pairs(), ("--seeds", 0), "`seeds`"),
    "no epochs": ("similarity", "a.tsv", pairs(), ("--epochs", 0), "`epochs`"),
    "no decay": ("similarity", "a.tsv", pairs(), ("--layer-decay", 0), "`layer_decay`"),
    "no unfreezing": ("similarity", "a.tsv", pairs(), ("--unfreeze-every", 0), "`unfreeze_every`"),
    "no share": ("similarity", "a.tsv", pairs(), ("--warmup", "nan"), "`warmup`"),
    "no rate": ("similarity", "a.tsv", pairs(), ("--learning-rate", 0), "`learning_rate`"),
    "no weight": ("similarity", "a.tsv", pairs(), ("--head-rate", -1), "`head_rate`"),
    "endless decay": ("similarity", "a.tsv", pairs(), ("--weight-decay", "inf"), "`weight_decay`"),
    "seeds beyond": (
        *("similarity", "a.tsv", pairs()),
        *(("--seed", 2**32 - 1, "--seeds", 2), "`seeds` adds, must lie in .* seeds=2"),
    ),
    "no patience": ("similarity", "a.tsv", pairs(), ("--patience", 0), "`patience`"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_say_what_is_wrong_before_any_training(case, encoder, tmp_path):
    name, file, content, options, message = ERRORS[case]
    train = write(tmp_path / file, content)
    with pytest.raises(ValueError, match=message):
        run(name, encoder, train, tmp_path / "run", *options)
    assert not (tmp_path / "run").exists()


def test_the_output_must_be_a_folder(encoder, tmp_path):
    train = write(tmp_path / "a.tsv", pairs())
    with pytest.raises(NotADirectoryError, match="`output` must be a folder. Received: .*a.tsv"):
        run("similarity", encoder, train, train)


def test_tags_that_training_does_not_have(encoder, tmp_path, capsys):
    train = write(tmp_path / "train.txt", tagged())
    dev = write(tmp_path / "dev.txt", "anna B-PER\nmet O\n\nfilm B-WORK\n")
    with pytest.raises(ValueError, match="dev.txt, line 4: the tag 'B-WORK' is not among"):
        run("tagging", encoder, train, tmp_path / "run", "--dev", dev)
    options = ("--dev", dev, "--unknown-tags", "count")
    found = run("tagging", encoder, train, tmp_path / "run", *options)
    assert found["recall"] <= 0.5
    assert "counted as missed: {'B-WORK': 1}" in capsys.readouterr().out


def roles(count=20):
    """Who sees and who is seen, for each of two predicates of a sentence."""
    people = ("anna", "paul")
    blocks = []
    for i in range(count):
        who, other = people[i % 2], people[(i + 1) % 2]
        blocks.append(
            f"{who} - (A0*) *\nsaw see (V*) *\n{other} - (A1*) (A0*)\nmet meet * (V*)\n"
            "the - * (A1*\ncat - * *)\n"
        )
    return "\n".join(blocks)


def test_roles_of_given_predicates(encoder, tmp_path, capsys):
    from kctx_cli.main import main

    train = write(tmp_path / "train.txt", roles())
    options = ("--predicate-column", 1, "--epochs", 12, "--dropout", 0)
    found = run("tagging", encoder, train, tmp_path / "run", *options)
    assert "36 training and 4 dev predicates" in capsys.readouterr().out
    assert found["f1"] > 0.9 and found["f1"] > found["baseline"]["f1"]
    rows = lines(tmp_path / "run" / "predictions.jsonl")
    assert [row["predicate"] for row in rows] == [1, 3, 1, 3]
    text_model = presets.load(tmp_path / "run" / "preset")
    one, two = text_model.predict(["paul saw anna met the cat"] * 2, [1, 3])
    assert one["tags"] != two["tags"]  # the same words towards another predicate

    # The same file as it is, by the command line.
    asked = write(tmp_path / "asked.conll", "\n".join(roles(3).split("\n")[:7]))
    main(["predict", str(tmp_path / "run" / "preset"), str(asked), "--no-progress"])
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    expected = text_model.predict(["anna saw paul met the cat"] * 2, [1, 3])
    assert [answer["tags"] for answer in answers] == [answer["tags"] for answer in expected]
    for options in (("--crf",), ("--scheme", "BIOES"), ("--convert-to", "BIOES")):
        with pytest.raises(ValueError, match="goes with the softmax on BIO tags"):
            run("tagging", encoder, train, tmp_path / "no", "--predicate-column", 1, *options)
