"""The whole path in a few minutes on a CPU: raw text, BERT, a served classifier.

    make demo        or        python recipes/demo.py

The corpus is real English that every CPython carries: the language reference in
`pydoc_data.topics`, about 65,000 words in 79 documents. The demo runs the other recipes just as you
would on your own text, prints each command, and then one table:

1. trains a WordPiece vocabulary and pretrains a small BERT (`pretrain_bert.py`),
2. fine-tunes a classifier of passages by chapter, with and without the pretrained weights
   (`finetune_classification.py`),
3. exports it (`kctx export`), loads the result in a process that knows neither keras nor kctx, and
   answers raw text,
4. fills a [MASK].
"""

import dataclasses
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from pydoc_data.topics import topics

import tyro
from rich.console import Console
from rich.table import Table

RECIPES = Path(__file__).resolve().parent

# Chapters of the language reference, and the topics that make each up.
CHAPTERS = {
    "lexical analysis": "atom-identifiers atom-literals floating id-classes identifiers imaginary "
    "integers numbers strings",
    "data model": "attribute-access bltin-code-objects bltin-ellipsis-object bltin-null-object "
    "bltin-type-objects callable-types context-managers customization dynamic-features exceptions "
    "execmodel naming numeric-types objects sequence-types specialnames types",
    "expressions": "attribute-references await binary bitwise booleans calls comparisons "
    "conversions dict exprlists in lambda lists operator-summary power shifting slicings "
    "subscriptions unary",
    "statements": "assert assignment async augassign break class compound continue del else for "
    "function global if import nonlocal pass raise return try while with yield",
    "library": "debugger formatstrings specialattrs string-methods truth typesfunctions "
    "typesmapping typesmethods typesmodules typesseq typesseq-mutable",
}
HELD_OUT = {"identifiers", "attribute-access", "comparisons", "import", "typesmapping"}
PASSAGE_WORDS = 40
RUNS = ("bert", "pretrained", "from-scratch")


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of the demo."""

    folder: Path = Path("runs/demo")
    """where text, runs and plots go"""
    saved_models: Path = Path("saved_models")
    """where the served model goes: <saved_models>/demo/1"""
    steps: int = 1400
    """pretraining steps"""
    seed: int = 0
    """fixes everything"""


def paragraphs(text):
    """Paragraphs of a topic, each on one line, without underlines of headings."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [line.strip() for line in paragraph.splitlines()]
        line = " ".join(line for line in lines if line and not re.fullmatch(r"[*=\-~^]{3,}", line))
        if line:
            yield line


def write_corpus(folder):
    """Writes the corpus (one document a topic) and labelled passages of it; returns their files.

    Topics repeat each other ("if" is a part of "compound"), so what stands in a held-out document
    is removed from all others: nothing that the masked LM is evaluated on was trained on. Every
    fourth passage is labelled; the others, whose raw text was read in pretraining but whose labels
    no one has seen, are what the classifier is evaluated on.
    """
    held_out = {line for name in HELD_OUT for line in paragraphs(topics.get(name, ""))}
    chapter_of = {topic: chapter for chapter, names in CHAPTERS.items() for topic in names.split()}
    documents, passages = {"train": [], "held_out": []}, []
    for topic, text in sorted(topics.items()):
        if topic in HELD_OUT:
            documents["held_out"].append("\n".join(paragraphs(text)))
            continue
        lines = [line for line in paragraphs(text) if line not in held_out]
        documents["train"].append("\n".join(lines))
        words = " ".join(lines).split()
        for start in range(0, len(words) - PASSAGE_WORDS, PASSAGE_WORDS):
            passage = " ".join(words[start : start + PASSAGE_WORDS])
            if topic in chapter_of:
                passages.append(f"{passage}\t{chapter_of[topic]}")
    passages = list(dict.fromkeys(passages))
    texts = {f"{part}.txt": "\n\n".join(lines) for part, lines in documents.items()}
    texts["labelled.tsv"] = "\n".join(["text\tlabel", *passages[::4]])
    texts["unseen.tsv"] = "\n".join(["text\tlabel", *(x for i, x in enumerate(passages) if i % 4)])
    for name, text in texts.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return {name.split(".")[0]: folder / name for name in texts}


def run(recipe, *arguments):
    """Runs another recipe as a user would, and shows the command."""
    command = [f"recipes/{recipe}.py", *map(str, arguments)]
    print("\n$ python " + shlex.join(command), flush=True)
    subprocess.run([sys.executable, RECIPES / f"{recipe}.py", *command[1:]], check=True)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


# Runs in a process of its own: what a server would do, with TensorFlow alone.
BARE_SERVER = """
import importlib.util, json, pathlib, sys
sys.modules.update(dict.fromkeys(("keras", "keras_hub", "kctx")))  # not even TensorFlow finds them
import tensorflow as tf
text_ops = pathlib.Path(importlib.util.find_spec("tensorflow_text").origin).parent / "python/ops"
for library in text_ops.glob("_*.so"):
    tf.load_op_library(str(library))
model = tf.saved_model.load(sys.argv[1])
answers = model.signatures["serving_default"](text=tf.constant(json.loads(sys.argv[2])))
print(json.dumps([label.decode() for label in answers["label"].numpy().tolist()]))
"""

QUESTIONS = [
    "The del statement recursively removes each target from the local namespace.",
    "Called by built-in function hash() and for operations on members of hashed collections.",
]
CLOZE = "The [MASK] statement is used to define a new [MASK]."


def ask_bare_server(folder, texts):
    """Labels that the SavedModel gives to texts."""
    command = [sys.executable, "-c", BARE_SERVER, str(folder), json.dumps(texts)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(result.stdout.strip().splitlines()[-1])


def main(config):
    start = time.time()
    config.folder.mkdir(parents=True, exist_ok=True)
    for name in RUNS:  # the demo begins anew each time; these folders are its own
        shutil.rmtree(config.folder / name, ignore_errors=True)
    files = write_corpus(config.folder)
    pretrained = config.folder / "bert"
    run(
        "pretrain_bert",
        *("--corpus", files["train"], "--held-out", files["held_out"], "--output", pretrained),
        *("--vocabulary-size", 4000, "--size", "L2_H256", "--bias-correction"),
        *("--steps", config.steps, "--save-every", config.steps // 5, "--batch-size", 32),
        *("--sequence-length", 64, "--max-predictions", 10, "--learning-rate", "1e-3"),
        *("--warmup", 0.1, "--seed", config.seed),
    )
    reports = {}
    for name, extra in (("pretrained", []), ("from-scratch", ["--random-weights"])):
        output = config.folder / name
        run(
            "finetune_classification",
            *("--encoder", pretrained / "preset", "--output", output, *extra),
            *("--train", files["labelled"], "--dev", files["unseen"]),
            *("--text", "text", "--label", "label", "--sequence-length", 80),
            *("--epochs", 8, "--batch-size", 16, "--learning-rate", "3e-4"),
            *("--seed", config.seed),
        )
        reports[name] = read(output / "metrics.json")
    preset = config.folder / "pretrained" / "preset"
    command = ["export", str(preset), "--name", "demo"]
    command += ["--saved-models", str(config.saved_models)]
    print("\n$ kctx " + shlex.join(command), flush=True)
    subprocess.run([sys.executable, "-m", "kctx_cli.main", *command], check=True)
    run("fill_mask", "--preset", pretrained / "pretraining", "--text", CLOZE)
    served = max(
        (path for path in (config.saved_models / "demo").iterdir() if path.name.isdecimal()),
        key=lambda path: int(path.name),
    )
    answers = ask_bare_server(served, QUESTIONS)

    metrics = read(pretrained / "metrics.json")
    table = Table(title=f"BERT on the Python language reference, {time.time() - start:.0f} s")
    for column in ("on what was held out", "pretrained", "baseline", "what the baseline is"):
        table.add_column(column)
    loss, entropy = metrics["held_out_masked_lm_loss"], metrics["held_out_unigram_entropy"]
    accuracy = metrics["held_out_masked_lm_accuracy"]
    most_frequent = metrics["held_out_most_frequent_accuracy"]
    table.add_row("masked-LM loss, nats", f"{loss:.3f}", f"{entropy:.3f}", "unigram entropy")
    table.add_row("masked-LM accuracy", f"{accuracy:.3f}", f"{most_frequent:.3f}", "most frequent")
    for name in ("accuracy", "macro_f1"):
        row = [reports[run_name][name] for run_name in ("pretrained", "from-scratch")]
        table.add_row(f"chapter of a passage, {name}", *(f"{x:.3f}" for x in row), "from scratch")
    console = Console()
    console.print(table)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        console.print(f"served: {question!r} -> {answer!r}")
    console.print(
        f"The model is in {served}; {served / 'assets.extra' / 'README.md'} says how to serve and "
        f"to ask it. Learning curves: {pretrained / 'learning_curves.png'}"
    )
    if loss >= entropy:
        raise SystemExit("The masked-LM loss is not below the unigram entropy.")


if __name__ == "__main__":
    main(tyro.cli(Config, description=__doc__))
