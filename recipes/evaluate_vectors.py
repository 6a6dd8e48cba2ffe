"""Evaluates word vectors: similarity, analogies, neighbours, and a map as a picture.

Papers: Finkelstein et al., 2002 (WordSim-353); Mikolov et al., 2013 (analogies, semantic and
syntactic); Levy and Goldberg, 2014 (3CosMul); Pennington et al., 2014, section 4.

    python recipes/evaluate_vectors.py --vectors glove.6B.50d.txt \\
        --similarity wordsim353.tsv --analogies questions-words.txt --output runs/glove

Vectors are a file of any format that `kctx.convert.load_vectors` knows, or a folder that
`Vectors.save` wrote. With --save-native they are also written as such a folder, which loads without
being read. The output folder holds report.json, and map.png if matplotlib is there.
"""

import dataclasses
import time
from pathlib import Path
from typing import Literal

import rich.console
import rich.table

from kctx import command_line, convert, evaluation, files


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of the evaluation of word vectors."""

    vectors: Path
    """file of vectors, or native folder"""
    format: Literal[(*convert.VECTOR_FORMATS, "auto")] = "auto"
    """of the file; auto: by its content"""
    vocabulary: Path | None = None
    """GloVe's vocab.txt, for glove_binary"""
    similarity: tuple[Path, ...] = ()
    """files of word pairs with a score by people: word, word, score by tabs"""
    analogies: tuple[Path, ...] = ()
    """files of questions with `: section` lines, or folders of such sections"""
    method: Literal["3cosadd", "3cosmul"] = "3cosadd"
    """how analogies are answered"""
    restrict: int | None = None
    """only the first so many words are asked about and are answers; default: all"""
    match_case: bool = False
    """"Paris" and "paris" are different words"""
    subwords: bool = True
    """similarity of words outside the table by their n-grams, where the vectors have any"""
    rare: int | None = None
    """score also the pairs with a word behind the first so many of the table, or outside of it"""
    neighbours: tuple[str, ...] = ()
    """words whose neighbours are shown"""
    top: int = 10
    """neighbours of each"""
    map_words: tuple[str, ...] = ()
    """words of the map; default: the first --map-size of the table that have letters"""
    map_size: int = 150
    """words of the map if none are named; 0: no map"""
    map_method: Literal["pca", "tsne"] = "pca"
    """how the plane is found"""
    first: int | None = None
    """load only the first so many words"""
    save_native: Path | None = None
    """folder to write the vectors to, in the native format"""
    output: Path = Path("runs/vectors")
    """folder of the report"""
    seed: int = 0
    """of t-SNE"""


def percent(share):
    """A share for a table."""
    return "-" if share is None else f"{100 * share:.2f}"


def shown(word):
    """A word that can be printed: bytes that are not UTF-8 as escapes."""
    return word.encode("utf-8", "backslashreplace").decode("utf-8")


def report_entry(report):
    """What was found in the file, with no more than some words of each kind."""
    lists = ("duplicates", "nan_rows", "invalid_utf8", "with_spaces")
    entry = dataclasses.asdict(report)
    for name in lists:
        words = entry[name]
        entry[name] = {"count": len(words), "some": [shown(word) for word in words[:100]]}
    return entry


def similarity_table(results):
    """The table of all files of word pairs."""
    table = rich.table.Table(title="Word similarity")
    for column in ("file", "Spearman", "Pearson", "pairs", "used", "words missing"):
        table.add_column(column, justify="left" if column == "file" else "right")
    for name, result in results.items():
        figures = [
            "-" if result[k] is None else f"{result[k]:.4f}" for k in ("spearman", "pearson")
        ]
        counts = (result["pairs"], result["used"], len(result["missing"]))
        table.add_row(name, *figures, *map(str, counts))
    return table


def analogy_table(name, result):
    """The table of one file of questions."""
    table = rich.table.Table(title=f"Analogies: {name}")
    for column in ("section", "accuracy %", "correct", "used", "missing"):
        table.add_column(column, justify="left" if column == "section" else "right")
    rows = list(result["sections"].items())
    totals = [(kind, result[kind]) for kind in ("semantic", "syntactic", "total")]
    for index, (section, row) in enumerate(rows + totals):
        counts = (str(row[k]) for k in ("correct", "used", "missing"))
        last = index == len(rows) - 1
        table.add_row(section, percent(row["accuracy"]), *counts, end_section=last)
    return table


def neighbour_table(vectors, words, top):
    """The neighbours of some words, and the table of them."""
    table, found = rich.table.Table(title="Neighbours"), {}
    table.add_column("word")
    table.add_column("neighbours and cosines")
    for word in words:
        try:
            near = vectors.neighbours(word, top)
        except KeyError as error:
            table.add_row(word, str(error.args[0]))
            continue
        found[word] = [(shown(other), score) for other, score in near]
        table.add_row(word, ", ".join(f"{other} {score:.3f}" for other, score in found[word]))
    return found, table


def draw_map(config, vectors):
    """The map of words, if there is anything to draw."""
    words = config.map_words
    if not words:
        letters = (word for word in vectors.words[:20_000] if word.isalpha() and len(word) > 2)
        words = [word for word, _ in zip(letters, range(config.map_size), strict=False)]
    if len(words) < 3:
        return
    path = config.output / "map.png"
    evaluation.draw(evaluation.word_map, vectors, words, path, config.map_method, config.seed)
    if path.is_file():
        print(f"Map: {path}")


def main(config):
    console = rich.console.Console()
    began = time.perf_counter()
    vectors, report = convert.load_vectors(
        config.vectors,
        None if config.format == "auto" else config.format,
        first=config.first,
        vocabulary=config.vocabulary,
    )
    console.print(report)
    result = {"vectors": report_entry(report), "seconds": {}}
    result["seconds"]["load"] = time.perf_counter() - began
    if config.save_native:
        vectors.save(config.save_native)
        print(f"Native folder: {config.save_native}")
    fold_case = not config.match_case
    if config.similarity:
        pairs = {str(path): evaluation.read_word_pairs(path) for path in config.similarity}
        if config.rare is not None:
            pairs |= {
                f"{name}, rare": evaluation.rare_word_pairs(vectors, found, config.rare, fold_case)
                for name, found in pairs.items()
            }
        result["similarity"] = {
            name: evaluation.word_similarity(vectors, found, fold_case, config.subwords)
            for name, found in pairs.items()
        }
        console.print(similarity_table(result["similarity"]))
    for path in config.analogies:
        began = time.perf_counter()
        answers = evaluation.analogies(vectors, path, config.method, config.restrict, fold_case)
        result.setdefault("analogies", {})[str(path)] = {"method": config.method, **answers}
        result["seconds"][str(path)] = time.perf_counter() - began
        console.print(analogy_table(path, answers))
    if config.neighbours:
        result["neighbours"], table = neighbour_table(vectors, config.neighbours, config.top)
        console.print(table)
    draw_map(config, vectors)
    files.write_json(config.output / "report.json", result)
    print(f"Report: {config.output / 'report.json'}")


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
