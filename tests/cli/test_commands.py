"""The commands as a user runs them, from raw files to answers."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tyro

from kctx import presets, vectors
from kctx_cli.main import COMMANDS, main
from tests.tasks.toys import assert_alike, bert_parts, lively, make

pytestmark = pytest.mark.once

TEXTS = ["anna saw the film in paris.", "", "the bad film , " * 12, "\U0001f600 é 中文"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folder of presets, one for each task, and the models in them."""
    folder = tmp_path_factory.mktemp("presets")
    made = {}
    for task in ("classification", "tagging", "span", "multiple_choice", "similarity"):
        made[task] = make(task)
        made[task].save(folder / task)
    return folder, made


def run(*arguments):
    main([str(argument) for argument in arguments])


def lines_of(text):
    return [json.loads(line) for line in text.splitlines()]


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def test_predict_lines(saved, tmp_path, capsys):
    folder, made = saved
    path = write(tmp_path / "texts.txt", "\n".join(TEXTS) + "\n")
    run("predict", folder / "classification", path)
    answers = lines_of(capsys.readouterr().out)
    assert_alike(answers, made["classification"].predict(TEXTS))
    run("predict", folder / "tagging", path, "--output", tmp_path / "a" / "tags.jsonl")
    assert capsys.readouterr().out == ""
    answers = lines_of((tmp_path / "a" / "tags.jsonl").read_text("utf-8"))
    assert_alike(answers, made["tagging"].predict(TEXTS))


def test_predict_rows_and_objects(saved, tmp_path, capsys):
    folder, made = saved

    def asked(task, name, content, *options):
        run("predict", folder / task, write(tmp_path / name, content), *options)
        return lines_of(capsys.readouterr().out)

    pairs = asked("classification", "a.csv", 'text,text_pair\n"a, b",c\n')
    assert_alike(pairs, made["classification"].predict(["a, b"], ["c"]))
    found = asked("similarity", "b.tsv", "a\tb\nfilm\tfilm\n")
    assert_alike(found, made["similarity"].predict(["a", "film"], ["b", "film"]))
    found = asked("multiple_choice", "c.tsv", "who\tanna\tfilm\n")
    assert_alike(found, made["multiple_choice"].predict(["who"], [["anna", "film"]]))
    item = {"id": 7, "question": "who", "context": TEXTS[0]}
    content = json.dumps(item) + "\n"
    options = ("--option", "no_answer_threshold=null", "--with-input")
    (answer,) = asked("span", "d.jsonl", content, *options)
    (expected,) = made["span"].predict("who", TEXTS[0], no_answer_threshold=None)
    assert_alike(answer, {**item, **expected})
    words = json.dumps({"words": ["anna", "x y"]}) + "\n"
    assert asked("tagging", "e.jsonl", words)[0]["words"] == ["anna", "x y"]
    tokens = json.dumps({"tokens": ["anna", "x y"]}) + "\n"
    assert asked("tagging", "f.jsonl", tokens, "--columns", "tokens")[0]["words"][1] == "x y"


def test_from_stdin_in_a_process_of_its_own(saved):
    folder, made = saved
    command = [sys.executable, "-m", "kctx_cli.main", "predict", folder / "classification"]
    result = subprocess.run(
        command,
        input="anna\nfilm é\n".encode(),
        capture_output=True,
        cwd=Path(__file__).parent.parent.parent,
        env={**os.environ, "PYTHONUTF8": "0", "LC_ALL": "C", "PYTHONIOENCODING": "utf-8"},
    )
    assert result.returncode == 0, result.stderr.decode()
    answers = lines_of(result.stdout.decode("utf-8"))
    assert_alike(answers, made["classification"].predict(["anna", "film é"]))


def test_embed(saved, tmp_path, capsys):
    folder, made = saved
    text_model = made["similarity"]
    path = write(tmp_path / "texts.txt", "\n".join(TEXTS) + "\n")
    run("embed", folder / "similarity", path, "--output", tmp_path / "v.npy", "--normalize")
    found = np.load(tmp_path / "v.npy")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, text_model.embed(TEXTS, normalize=True), atol=1e-5)
    run("embed", folder / "similarity", path, "--pooling", "last4_concat", "--batch-size", 1)
    found = [line["embedding"] for line in lines_of(capsys.readouterr().out)]
    np.testing.assert_allclose(found, text_model.embed(TEXTS, "last4_concat"), atol=1e-5)
    run("embed", folder / "similarity", path, "--words")
    for line, (words, expected) in zip(
        lines_of(capsys.readouterr().out), text_model.embed_words(TEXTS), strict=True
    ):
        assert line["words"] == words
        np.testing.assert_allclose(np.reshape(line["vectors"], expected.shape), expected, atol=1e-5)
    options = ("--words", "--pooling", "first", "--normalize")
    run("embed", folder / "similarity", path, *options)
    wanted = text_model.embed_words(TEXTS, "first", normalize=True)
    for line, (_, expected) in zip(lines_of(capsys.readouterr().out), wanted, strict=True):
        np.testing.assert_allclose(np.linalg.norm(expected, axis=-1), 1, atol=1e-5)
        np.testing.assert_allclose(np.reshape(line["vectors"], expected.shape), expected, atol=1e-5)
    run("embed", folder / "span", write(tmp_path / "none.txt", ""), "--output", tmp_path / "0.npy")
    assert np.load(tmp_path / "0.npy").shape == (0, 0)


def test_info(saved, tmp_path, capsys):
    folder, _ = saved
    run("info", folder / "span")
    printed = capsys.readouterr().out
    for part in ("BERT", "task          span", "question", "no_answer_probability", "14 tokens"):
        assert part in printed
    encoder, preprocessor = bert_parts()
    presets.save(tmp_path / "encoder", encoder, preprocessor)
    run("info", tmp_path / "encoder")
    assert "kctx embed works with its encoder" in capsys.readouterr().out
    presets.save(tmp_path / "bare", encoder)
    run("info", tmp_path / "bare")
    assert "it takes no text, only ids" in capsys.readouterr().out


def test_convert(saved, tmp_path, capsys):
    folder, made = saved
    run("convert", folder / "classification", tmp_path / "theirs", "--to", "huggingface")
    run("convert", tmp_path / "theirs", tmp_path / "ours", "--sequence-length", 14)
    printed = capsys.readouterr().out
    assert "matched" in printed and f"Written to {tmp_path / 'ours'}" in printed
    found = presets.load(tmp_path / "ours").predict(TEXTS)
    assert_alike(found, made["classification"].predict(TEXTS))
    run("predict", tmp_path / "theirs", write(tmp_path / "t.txt", "anna\n"))
    assert_alike(lines_of(capsys.readouterr().out), made["classification"].predict(["anna"]))


def test_convert_vectors(tmp_path, capsys):
    path = write(tmp_path / "a.vec", "2 3\nanna 1 2 3\nfilm 4 5 6\n")
    run("convert", path, tmp_path / "preset", "--lowercase", "True")
    found = presets.load(tmp_path / "preset").embed(["ANNA film"])
    assert found.tolist() == [[2.5, 3.5, 4.5]]
    run("convert", path, tmp_path / "b.bin", "--to", "word2vec")
    assert "Written to" in capsys.readouterr().out
    from kctx import convert

    assert isinstance(convert.load_vectors(tmp_path / "b.bin")[0], vectors.Vectors)


def test_help_is_there_at_once():
    """No command loads TensorFlow or Keras before it runs."""
    program = (
        "import sys, kctx_cli.main as cli\n"
        "assert not {'kctx', 'keras', 'tensorflow', 'numpy'} & set(sys.modules)\n"
        "cli.main([])"
    )
    root = Path(__file__).parent.parent.parent
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=True
    )
    for name in COMMANDS:
        assert f"    {name}" in result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(name, capsys):
    with pytest.raises(SystemExit) as end:
        main([name, "--help"])
    assert end.value.code == 0
    assert f"    kctx {name} " in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_examples_are_commands(name):
    lines = [line.strip() for line in COMMANDS[name].__doc__.splitlines()]
    examples = [line.partition("| ")[2] or line for line in lines if f"kctx {name} " in line]
    examples = [line.partition(" > ")[0] for line in examples if line.startswith("kctx ")]
    assert examples
    for example in examples:
        tyro.cli(COMMANDS[name], args=shlex.split(example)[2:])  # else SystemExit


def test_errors(saved, tmp_path, capsys, monkeypatch):
    folder, _ = saved
    texts = write(tmp_path / "t.txt", "anna\n")

    def fails(message, *arguments):
        with pytest.raises(SystemExit) as end:
            run(*arguments)
        assert end.value.code == 2
        assert message in capsys.readouterr().err

    fails("kctx: no command 'train'", "train")
    fails("must be a preset folder", "predict", tmp_path / "none", texts)
    fails("No such file", "predict", folder / "tagging", tmp_path / "none.txt")
    fails("a request has the parts question, context", "predict", folder / "span", texts)
    option = ("--option", "top=3")
    fails("Options of tagging are: split, stride", "predict", folder / "tagging", texts, *option)
    bad = write(tmp_path / "bad.jsonl", '{"text": "a"}\n{"txt": "b"}\n')
    output = ("--output", tmp_path / "out.jsonl")
    fails("line 2: no text. Its keys: txt", "predict", folder / "classification", bad, *output)
    both = write(tmp_path / "both.jsonl", '{"text": "a", "words": ["b"]}\n')
    fails("one of text and words is embedded", "embed", folder / "span", both, "--words")
    one = write(tmp_path / "one.jsonl", '{"words": "ab"}\n')
    fails("must have a list of words", "predict", folder / "tagging", one)
    fails("the target must not be what is read", "convert", texts, texts, "--to", "vec")
    for name in ("stdin", "stdout"):
        with monkeypatch.context() as context:
            context.setattr(sys, name, None)
            given = texts if name == "stdout" else "-"
            fails(f"{name} is closed", "predict", folder / "classification", given)
    assert not (tmp_path / "out.jsonl").exists()
    fails(
        "--words needs JSON lines", "embed", folder / "span", texts, "--words", "--output", "a.npy"
    )
    for message, *options in (
        ("--layers, --split and --pooling first are for --words", "--layers", "last"),
        ("are for --words. Received: layers=None, split=None, pooling=first", "--pooling", "first"),
        ("--words takes --pooling mean or first. Received: max", "--words", "--pooling", "max"),
    ):
        fails(message, "embed", folder / "span", texts, *options)
    options = ("--weights-dtype", "float16")
    fails("is for --to huggingface", "convert", folder / "span", tmp_path / "x", *options)
    vec = write(tmp_path / "a.vec", "1 2\nanna 1 2\n")
    options = ("--to", "glove", "--lowercase", "True")
    fails("are for --to preset", "convert", vec, tmp_path / "x", *options)
    fails("is for files of word vectors", "convert", folder / "span", tmp_path / "x", "--to", "vec")
    fails("is for models", "convert", texts, tmp_path / "x", "--to", "huggingface")
    encoder, preprocessor = bert_parts()
    presets.save(tmp_path / "encoder", lively(encoder), preprocessor)
    fails("needs a task and a preprocessor", "predict", tmp_path / "encoder", texts)
    monkeypatch.setenv("KCTX_TRACEBACK", "1")
    with pytest.raises(FileNotFoundError):
        run("predict", tmp_path / "none", texts)
    assert keras.backend.backend() == "tensorflow"


@pytest.mark.parametrize("facts", ["[]", "{}", '{"signatures": {"a": {"inputs": {"x": {}}}}}'])
def test_a_broken_export_is_said_in_a_line(facts, tmp_path, capsys):
    folder = tmp_path / "assets.extra"
    folder.mkdir()
    write(folder / "signature.json", facts)
    with pytest.raises(SystemExit):
        run("info", tmp_path)
    assert "signature.json" in capsys.readouterr().err


def test_vectors_for_no_token(tmp_path, capsys):
    source = write(tmp_path / "a.vec", "2 2\na 1 2\nb 3 4\n")
    with pytest.raises(SystemExit):
        run("convert", source, tmp_path / "p", "--sequence-length", "0")
    assert "`sequence_length` must be an integer of at least 1" in capsys.readouterr().err
