"""Do vectors answer "a is to b as c is to d"?

Mikolov et al., 2013a, section 4.1 (semantic and syntactic questions); Levy and Goldberg, 2014
(3CosMul). The three words of a question are no answers.
"""

from pathlib import Path

import numpy as np
from rich.progress import Progress

from kctx.arguments import check_count
from kctx.evaluation.word_lookup import WordLookup
from kctx.files import read_text
from kctx.vectors.neighbours import METHODS, answer_analogies

_SYNTACTIC = "gram"  # sections whose names begin so


def read_analogies(path):
    """Questions of a file with sections, or of a folder with a file for each section.

    Args:
        path: a file in which lines `: name` begin sections (questions-words.txt), or a folder of
            text files (GloVe's question-data). Other lines are four words.

    Returns:
        dict of section name to list of (a, b, c, d).

    Raises:
        ValueError: a line that is not four words (file and line are named), no questions, or not
            UTF-8.
    """
    path, sections = Path(path), {}
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    for file in files:
        section = sections.setdefault(file.stem, []) if path.is_dir() else None
        for number, line in enumerate(read_text(file).split("\n"), start=1):
            words = line.split()
            if not words:
                continue
            if words[0].startswith(":"):
                section = sections.setdefault(line.strip().removeprefix(":").strip(), [])
                continue
            if len(words) != 4:
                raise ValueError(f"{file}: line {number} is not four words: {line[:80]!r}")
            if section is None:
                section = sections.setdefault(file.stem, [])
            section.append(tuple(words))
    if not any(sections.values()):
        raise ValueError(f"{path} holds no questions.")
    return sections


def analogies(vectors, questions, method="3cosadd", restrict=None, fold_case=True, progress=True):
    """The share of analogies that are answered correctly.

    Args:
        vectors: `kctx.vectors.Vectors`.
        questions: path for `read_analogies`, or what it returns.
        method: "3cosadd" or "3cosmul", as `Vectors.most_similar`. Default "3cosadd".
        restrict: int, only the first so many words of the table are known, and are answers. The
            reference tools take 30,000 or 300,000. Default: all.
        fold_case: bool, whether case is of no account: of the spellings of a word the first in the
            table is asked about, none of those asked about is an answer, and any of the expected
            word is right. Default True.
        progress: bool, whether to show a progress bar. Default True.

    Returns:
        dict: "total", "semantic", "syntactic" (sections whose names begin with "gram"), and
        "sections", a dict by name. Each has "correct", "used", "missing" (int; questions with a
        word that the table lacks are missing and not used) and "accuracy" (float in [0, 1], None
        without questions).
    """
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS}. Received: {method!r}")
    if restrict is not None:
        check_count("restrict", restrict)
    sections = questions if isinstance(questions, dict) else read_analogies(questions)
    words = {word for section in sections.values() for line in section for word in line}
    lookup = WordLookup(vectors, words, restrict, fold_case)
    rows, expected, names = [], [], []
    for name, section in sections.items():
        for line in section:
            found = [lookup.row(word) for word in line]
            if None not in found:
                rows.append(found[:3])
                expected.append(lookup.folded(line[3]))
                names.append(name)
    rows = np.array(rows, np.int64).reshape(-1, 3)
    with Progress(disable=not progress) as bar:
        task = bar.add_task("Analogies", total=1.0)
        answers = answer_analogies(
            vectors.table,
            vectors.scales,
            rows,
            method,
            restrict,
            lookup.variants,
            lambda share: bar.advance(task, share),
        )
    table = {name: [0, 0, len(section)] for name, section in sections.items()}
    for name, answer, word in zip(names, answers.tolist(), expected, strict=True):
        table[name][0] += answer >= 0 and lookup.folded(vectors.words[answer]) == word
        table[name][1] += 1
    kinds = {
        "total": list(table),
        "semantic": [name for name in table if not name.startswith(_SYNTACTIC)],
        "syntactic": [name for name in table if name.startswith(_SYNTACTIC)],
    }
    result = {kind: _summed([table[name] for name in members]) for kind, members in kinds.items()}
    result["sections"] = {name: _summed([row]) for name, row in table.items()}
    return result


def _summed(rows):
    """One entry of the result from rows of (correct, used, asked)."""
    correct, used, asked = (sum(column) for column in zip(*rows, strict=True)) if rows else (0,) * 3
    return {
        "correct": correct,
        "used": used,
        "missing": asked - used,
        "accuracy": correct / used if used else None,
    }
