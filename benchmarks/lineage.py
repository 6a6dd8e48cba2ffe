"""The lineage's word vectors on equal terms: one text, one size, each model by its recipe.

Bojanowski et al., 2017, sections 5.1 and 5.2, find fastText above Word2Vec on syntactic analogies
and on rare words, and a little below on semantic analogies. This asks the same of the vectors that
the recipes train: mean over seeds, with the backend of KERAS_BACKEND.

    python benchmarks/lineage.py --data FOLDER

`FOLDER` is as of word2vec.py. "rare" are the pairs of WordSim-353 with a word behind the first
--rare of the table, where both words stand in the table, the same pairs for all models; "rare, all"
counts those with a word outside too, whose vectors only fastText can make. Beside each
score stands how many pairs or questions it is of.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import runner
from word2vec import make_text

from kctx import evaluation
from kctx.vectors import Vectors

RECIPES = Path(__file__).resolve().parent.parent / "recipes"
SAME = ("--window", "5", "--epochs", "{epochs}", "--seed", "{seed}", "--min-count", "5")
SAMPLED = (*SAME, "--sample", "1e-3", "--negatives", "5")
# Name -> recipe, its option that names the text, more options.
MODELS = {
    "Word2Vec, CBOW": ("pretrain_word2vec", "--corpus", (*SAMPLED, "--architecture", "cbow")),
    "Word2Vec, skip-gram": ("pretrain_word2vec", "--corpus", SAMPLED),
    "GloVe": ("pretrain_glove", "--corpus", SAME),
    "fastText, CBOW": ("pretrain_fasttext", "--input", (*SAMPLED, "--task", "cbow")),
    "fastText, skip-gram": ("pretrain_fasttext", "--input", SAMPLED),
}
SCORES = ("WordSim-353", "rare", "rare, all", "semantic", "syntactic", "analogies")


def train(name, text, seed, options, folder):
    """The vectors that a recipe makes of a text."""
    recipe, corpus, more = MODELS[name]
    epochs = options.glove_epochs if name == "GloVe" else options.epochs
    arguments = [part.format(epochs=epochs, seed=seed) for part in more]
    output = Path(folder, f"{name}-{seed}")
    command = [sys.executable, RECIPES / f"{recipe}.py", corpus, text, "--output", output]
    command += ["--dim", str(options.dim), *arguments]
    environment = {key: value for key, value in os.environ.items() if key != "KCTX_DATA"}
    result = subprocess.run(
        command, env=environment, capture_output=True, encoding="utf-8", errors="replace"
    )
    if result.returncode:
        raise RuntimeError(f"{recipe} failed:\n{result.stderr[-2000:]}")
    return Vectors.load(output / "vectors")


def scores(vectors, folder, rare):
    """dict of name in `SCORES` to (score, number of pairs or questions)."""
    pairs = evaluation.read_word_pairs(Path(folder, "wordsim353.tsv"))
    rare_pairs = evaluation.rare_word_pairs(vectors, pairs, rare)
    found = {
        "WordSim-353": evaluation.word_similarity(vectors, pairs, subwords=False),
        "rare": evaluation.word_similarity(vectors, rare_pairs, subwords=False),
        "rare, all": evaluation.word_similarity(vectors, rare_pairs),
    }
    found = {name: (result["spearman"], result["used"]) for name, result in found.items()}
    answers = evaluation.analogies(vectors, Path(folder, "questions-words.txt"))
    for name, kind in (("semantic",) * 2, ("syntactic",) * 2, ("analogies", "total")):
        found[name] = (answers[kind]["accuracy"], answers[kind]["used"])
    return found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default=os.environ.get("KCTX_DATA"), help="folder of data sets; KCTX_DATA"
    )
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=5, help="over the text")
    parser.add_argument("--glove-epochs", type=int, default=25, help="over the counts")
    parser.add_argument("--rare", type=int, default=5000, help="rank behind which a word is rare")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    if not options.data:
        parser.error("--data or KCTX_DATA must name the folder of data sets")
    options.words = 1  # of the text: once
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        text, *_, words = make_text(options, Path(folder))
        print(f"{words:,} words, mean of {options.seeds} seeds", flush=True)
        for name in options.models:
            runs = []
            for seed in range(options.seeds):
                vectors = train(name, text, seed, options, folder)
                runs.append(scores(vectors, Path(options.data, "embeddings"), options.rare))
                print(f"{name}, seed {seed}: {runs[-1]}", file=sys.stderr, flush=True)
            row = [name]
            for score in SCORES:
                values, count = zip(*(run[score] for run in runs), strict=True)
                row.append(f"{statistics.mean(values):.4f} ({count[0]:,})")
            rows.append(row)
    print(runner.markdown_table(["model", *SCORES], rows))


if __name__ == "__main__":
    main()
