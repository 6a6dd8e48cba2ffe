"""The whole path in a few minutes on a CPU: raw text, BERT, a served classifier.

    make demo        or        python recipes/demo.py

The corpus is real English that every CPython carries: the language reference in
`pydoc_data.topics`, about 65,000 words in 79 documents. The demo runs the other recipes just as you
would on your own text, prints each command, and then one table:

1. trains a WordPiece vocabulary and pretrains a small BERT (`pretrain_bert.py`),
2. fine-tunes a classifier of passages by chapter, with and without the pretrained weights
   (`finetune_classification.py`),
3. exports it (`export.py`), loads the result in a process that knows neither keras nor kctx, and
   answers raw text,
4. fills a [MASK].
"""

import dataclasses
import json
import re
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


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of the demo."""

    folder: Path = Path("runs/demo")
    """where text, runs and plots go"""
    saved_models: Path = Path("saved_models")
    """where the served model goes: <saved_models>/demo/1"""
    steps: int = 1500
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
    """Writes the corpus (one document a topic) and the labelled passages; returns their files.

    Topics repeat each other ("if" is a part of "compound"), so what stands in a held-out document
    is removed from all others: nothing that is evaluated was trained on.
    """
    held_out = {line for name in HELD_OUT for line in paragraphs(topics.get(name, ""))}
    documents = {"train": [], "held_out": []}
    passages = {"train": [], "held_out": []}
    chapter_of = {topic: chapter for chapter, names in CHAPTERS.items() for topic in names.split()}
    seen = set()
    for topic, text in sorted(topics.items()):
        part = "held_out" if topic in HELD_OUT else "train"
        lines = [x for x in paragraphs(text) if part == "held_out" or x not in held_out]
        documents[part].append("\n".join(lines))
        words = " ".join(lines).split()
        for start in range(0, len(words), PASSAGE_WORDS):
            passage = " ".join(words[start : start + PASSAGE_WORDS])
            if topic in chapter_of and len(passage.split()) > 10 and passage not in seen:
                seen.add(passage)
                passages[part].append(f"{passage}\t{chapter_of[topic]}")
    files = {}
    for part in ("train", "held_out"):
        files[part] = folder / f"{part}.txt"
        files[part].write_text("\n\n".join(documents[part]) + "\n", encoding="utf-8")
        files[f"{part}_passages"] = folder / f"{part}_passages.tsv"
        rows = "\n".join(["text\tlabel", *passages[part]])
        files[f"{part}_passages"].write_text(rows + "\n", encoding="utf-8")
    return files


def run(recipe, *arguments):
    """Runs another recipe as a user would, and shows the command."""
    command = [f"recipes/{recipe}.py", *map(str, arguments)]
    print("\n$ python " + " ".join(command), flush=True)
    subprocess.run([sys.executable, RECIPES / f"{recipe}.py", *command[1:]], check=True)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))
