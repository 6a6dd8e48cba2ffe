"""Word2Vec against gensim: words a second, memory, and the time to gensim's quality.

Four cells: skip-gram and bag of words, each with negative sampling and hierarchical softmax. Ours
on each backend and gensim with two workers, which reads a file (`corpus_file=`) or lists in memory
(`sentences=`); each in a process of its own, in turn, round after round, one pass over the text in
each round. "whole" is the first pass of a process from the text file to the vectors: vocabulary,
look-up, compilation, training; imports are left out. Peak memory is the highest resident size of
the process, beside that after the imports.

Quality: WordSim-353 (Spearman) and analogies, of the words of the text, after the same number of
epochs over the text without repetition, mean over seeds. Then ours is trained for one epoch, two,
..., each with a schedule of its own, until its mean on WordSim-353 reaches gensim's: the ratio of
the training times is the "time to gensim's quality".

    python benchmarks/word2vec.py --data FOLDER
    python benchmarks/word2vec.py --data FOLDER --cells sg-ns --backends jax --only quality

`FOLDER` holds the sets named in `SETS`, which are put together as lower-cased words, and
embeddings/{wordsim353.tsv,questions-words.txt}. A ratio above 1 means that ours is faster. gensim
must be installed: pip install gensim.
"""

import argparse
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import runner

SETS = (
    "brown/brown_part.txt",
    "enwiki/articles.txt",
    "wikitext2/valid.txt",
    "wiki_paragraphs_en/paragraphs.txt",
    "books/pride_and_prejudice.txt",
)
BACKENDS = ("tensorflow", "jax", "torch")
MODES = ("file", "lists")
# Blocks of as many centres a step as the stream's defaults, larger and fewer.
MIDDLE = {"shared": 8, "block_words": 32, "step_blocks": 64, "steps": 8}
LARGE = {"block_words": 256, "step_blocks": 8, "steps": 8}
# Name -> architecture, objective, our options of the stream, gensim's first rate (its default).
CELLS = {
    "sg-ns": ("skip_gram", "negative_sampling", {"learning_rate": 0.1, "steps": 8}, 0.025),
    "sg-hs": ("skip_gram", "hierarchical_softmax", {"learning_rate": 0.05, **LARGE}, 0.025),
    "cbow-ns": ("cbow", "negative_sampling", {"learning_rate": 0.1, **MIDDLE}, 0.025),
    "cbow-hs": ("cbow", "hierarchical_softmax", {"learning_rate": 0.1, **LARGE}, 0.025),
}


def peak():
    """Highest resident megabytes of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Ours:
    """Our model on the backend of the environment.

    Args:
        cell: one of `CELLS`.
        text: path.
        min_count, dim, window, sample, negatives: as `kctx.models.Word2Vec` and its stream.
        shared: int, negatives of a block.
        stream: dict, more options of `kctx.data.WindowStream`; they replace those of the cell.
        progress: ignored.
    """

    def __init__(self, cell, text, settings):
        import keras

        from kctx import data, models, training

        training.setup()  # as the recipes do
        self.keras, self.data, self.models = keras, data, models
        self.architecture, self.objective, options, _ = CELLS[cell]
        self.text, self.settings = text, settings
        self.options = {"shared": settings["shared"], **options, **settings["stream"]}
        self.shared = self.options.pop("shared")
        self.model = None
        self.before = peak()

    def load(self):
        """Vocabulary and ids; returns the number of words in the text that have a vector."""
        self.vocabulary = self.data.WordVocabulary.train(
            self.text, min_count=self.settings["min_count"], progress=False
        )
        self.corpus = self.data.IdCorpus.build(self.vocabulary, self.text, progress=False)
        counts = self.vocabulary.counts
        if self.objective == "negative_sampling":
            self.targets = self.data.NegativeSampling(counts, self.shared)
        else:
            self.targets = self.data.HierarchicalSoftmax(counts)
        return int(counts.sum())

    def _stream(self, epochs, seed):
        return self.data.WindowStream(
            self.corpus,
            self.vocabulary.counts,
            self.targets,
            sample=self.settings["sample"],
            window=self.settings["window"],
            epochs=epochs,
            seed=seed,
            **self.options,
        )

    def _new(self, seed):
        return self.models.Word2Vec(
            len(self.vocabulary),
            self.settings["dim"],
            self.architecture,
            self.objective,
            self.settings["negatives"],
            seed=seed,
        )

    def train(self, epochs, seed):
        """Trains from the start; returns the seconds of training alone.

        The model is kept, with new values in it, so that only the first training compiles.
        """
        if self.model is None:
            self.model = self._new(seed)
        else:
            self.model.set_weights(self._new(seed).get_weights())
        stream = self._stream(epochs, seed)
        began = time.perf_counter()
        self.model.fit(stream, verbose=0)
        self.keras.ops.convert_to_numpy(self.model.input_table)  # waits for the device
        return time.perf_counter() - began

    def vectors(self):
        from kctx.vectors import Vectors

        table = self.keras.ops.convert_to_numpy(self.model.input_table)
        return Vectors(self.vocabulary.words, table)


class Gensim:
    """gensim with two workers.

    Args:
        mode: "file" or "lists".
        others: as `Ours`.
    """

    def __init__(self, cell, text, settings, mode):
        from gensim.models import word2vec

        self.gensim, self.text, self.settings, self.mode = word2vec, text, settings, mode
        self.architecture, self.objective, _, self.rate = CELLS[cell]
        self.rate = settings["gensim_rate"] or self.rate
        self.before = peak()

    def _source(self):
        if self.mode == "file":
            return {"corpus_file": self.text}
        return {"corpus_iterable": self.lists}

    def load(self):
        """Words and counts, kept for all models."""
        if self.mode == "lists":
            with open(self.text, encoding="utf-8") as file:
                self.lists = [line.split() for line in file]
        self.model = self._new(0)
        return int(
            sum(self.model.wv.get_vecattr(word, "count") for word in self.model.wv.key_to_index)
        )

    def _new(self, seed):
        tree = self.objective == "hierarchical_softmax"
        model = self.gensim.Word2Vec(
            vector_size=self.settings["dim"],
            window=self.settings["window"],
            sample=self.settings["sample"],
            min_count=self.settings["min_count"],
            sg=int(self.architecture == "skip_gram"),
            hs=int(tree),
            negative=0 if tree else self.settings["negatives"],
            alpha=self.rate,
            workers=2,
            seed=seed + 1,
        )
        model.build_vocab(**self._source())
        return model

    def train(self, epochs, seed):
        if seed:
            self.model = self._new(seed)
        else:
            self.model.init_weights()
        began = time.perf_counter()
        self.model.train(
            **self._source(),
            total_examples=self.model.corpus_count,
            total_words=self.model.corpus_total_words,
            epochs=epochs,
        )
        return time.perf_counter() - began

    def vectors(self):
        from kctx.vectors import Vectors

        return Vectors(self.model.wv.index_to_key, self.model.wv.vectors)


class Candidate:
    """What the parent asks: one way to train one cell on one text.

    Args:
        way: "ours" or "gensim".
        mode: of gensim.
        cell, text, settings: as `Ours`.
    """

    def __init__(self, way, cell, text, settings, mode=None):
        if way == "ours":
            self.way = Ours(cell, text, settings)
        else:
            self.way = Gensim(cell, text, settings, mode)

    def whole(self):
        """Words of the text, and the seconds of the first pass, all included."""
        began = time.perf_counter()
        words = self.way.load()
        self.way.train(1, 0)
        return {"words": words, "seconds": time.perf_counter() - began}

    def time(self, repeats):
        """Seconds of a pass, training alone."""
        return [self.way.train(1, 0) for _ in range(repeats)]

    def memory(self):
        """Highest resident megabytes, and those after the imports."""
        return [peak(), self.way.before]

    def quality(self, epochs, seed, folder):
        """Scores after a training of its own, and its seconds."""
        from kctx import evaluation

        seconds = self.way.train(epochs, seed)
        vectors, folder = self.way.vectors(), Path(folder)
        answers = evaluation.analogies(vectors, folder / "questions-words.txt", progress=False)
        return {
            "seconds": seconds,
            "similarity": evaluation.word_similarity(vectors, folder / "wordsim353.tsv")[
                "spearman"
            ],
            "analogies": answers["total"]["accuracy"],
            "semantic": answers["semantic"]["accuracy"],
            "syntactic": answers["syntactic"]["accuracy"],
        }


def make_text(options, folder):
    """The text once and repeated, as lower-cased words.

    Returns:
        (path of the text, path of the repeated one, how often it is repeated, words in it).
    """
    lines, words = [], 0
    for name in SETS:
        for line in Path(options.data, name).read_text(encoding="utf-8").split("\n"):
            found = re.findall(r"[^\W\d_]+", line.replace("<unk>", " ").lower())
            if found:
                lines.append(" ".join(found))
                words += len(found)
    repeats = max(1, -(-options.words // words))
    text = "\n".join(lines) + "\n"
    once, often = Path(folder, "once.txt"), Path(folder, "often.txt")
    once.write_text(text, encoding="utf-8")
    with open(often, "w", encoding="utf-8") as file:
        for _ in range(repeats):
            file.write(text)
    return once, often, repeats, words


def workers_of(cell, text, min_count, options, backends, modes):
    """dict of name to Worker."""
    names = ("dim", "window", "sample", "negatives", "shared", "gensim_rate")
    settings = {
        "min_count": min_count,
        "stream": json.loads(options.stream),
        **{name: getattr(options, name) for name in names},
    }
    shared = {"cell": cell, "text": str(text), "settings": settings}
    made = {}
    for backend in backends:
        environment = {"KERAS_BACKEND": backend}
        made[f"ours, {backend}"] = runner.Worker(__file__, {"way": "ours", **shared}, environment)
    for mode in modes:
        made[f"gensim, {mode}"] = runner.Worker(__file__, {"way": "gensim", "mode": mode, **shared})
    return made


def speed(cell, text, min_count, options):
    """Rows of the table of one cell, as dicts."""
    workers = workers_of(cell, text, min_count, options, options.backends, options.modes)
    try:
        whole = {name: worker.ask("whole") for name, worker in workers.items()}
        times = runner.in_turn(workers, options.rounds, options.seconds, slice_seconds=0)
        memory = {name: worker.ask("memory") for name, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.close()
    peers = [name for name in workers if name.startswith("gensim")]
    # Of gensim's ways the faster one counts.
    best = min(peers, key=lambda name: statistics.median(times[name])) if peers else None
    quickest = min((whole[name]["seconds"] for name in peers), default=None)
    rows = []
    for name in workers:
        words = whole[name]["words"]
        rows.append(
            {
                "cell": cell,
                "way": name,
                "words_per_second": words / statistics.median(times[name]),
                "fastest": words / min(times[name]),
                "ratio": runner.ratio(times[name], times[best]) if best else None,
                "whole_words_per_second": words / whole[name]["seconds"],
                "whole_ratio": quickest / whole[name]["seconds"] if best else None,
                "peak_mb": memory[name][0],
                "after_imports_mb": memory[name][1],
                "words": words,
                "times": times[name],
            }
        )
    return rows


def quality(cell, text, options):
    """Rows of scores of one cell, as dicts."""
    folder = str(Path(options.data, "embeddings"))
    rows = []
    workers = workers_of(
        cell, text, options.min_count, options, options.quality_backends, ("file",)
    )
    try:
        for worker in workers.values():
            worker.ask("whole")  # vocabulary and compilation

        def scores(name, epochs):
            found = [
                workers[name].ask("quality", epochs=epochs, seed=seed, folder=folder)
                for seed in range(options.seeds)
            ]
            means = {key: statistics.mean(x[key] or 0.0 for x in found) for key in found[0]}
            of_seeds = [x["similarity"] for x in found]
            row = {"cell": cell, "way": name, "epochs": epochs, **means, "of_seeds": of_seeds}
            print(f"{cell}, {name}, {epochs} epochs: {means}", file=sys.stderr, flush=True)
            return row

        peer = scores("gensim, file", options.epochs)
        rows.append({**peer, "ratio_of_time": None, "reaches": None})
        for name in workers:
            if name == "gensim, file":
                continue
            for epochs in range(1, options.most_epochs + 1):
                row = scores(name, epochs)
                reaches = row["similarity"] >= peer["similarity"]
                ratio = peer["seconds"] / row["seconds"]
                rows.append({**row, "ratio_of_time": ratio, "reaches": reaches})
                if reaches:
                    break
            if rows[-1]["epochs"] < options.epochs:
                row = scores(name, options.epochs)  # the same number of epochs as gensim
                ratio = peer["seconds"] / row["seconds"]
                reaches = row["similarity"] >= peer["similarity"]
                rows.append({**row, "ratio_of_time": ratio, "reaches": reaches})
    finally:
        for worker in workers.values():
            worker.close()
    return rows


def table(rows, columns):
    """A table of dicts; numbers of words without digits behind the point."""

    def cell(value, form):
        if value is None:
            return ""
        return format(value, form) if isinstance(value, float) else str(value)

    lines = [[cell(row[name], form) for name, _, form in columns] for row in rows]
    return runner.markdown_table([title for _, title, _ in columns], lines)


SPEED = (
    ("cell", "cell", ""),
    ("way", "way", ""),
    ("words_per_second", "words/s", ",.0f"),
    ("fastest", "fastest", ",.0f"),
    ("ratio", "ratio", ".2f"),
    ("whole_words_per_second", "whole, words/s", ",.0f"),
    ("whole_ratio", "ratio", ".2f"),
    ("peak_mb", "peak MB", ",.0f"),
    ("after_imports_mb", "after imports MB", ",.0f"),
)
QUALITY = (
    ("cell", "cell", ""),
    ("way", "way", ""),
    ("epochs", "epochs", ""),
    ("similarity", "WordSim-353", ".4f"),
    ("semantic", "semantic", ".4f"),
    ("syntactic", "syntactic", ".4f"),
    ("analogies", "analogies", ".4f"),
    ("seconds", "seconds", ".1f"),
    ("reaches", "as good", ""),
    ("ratio_of_time", "ratio of times", ".2f"),
)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default=os.environ.get("KCTX_DATA"), help="folder of data sets; KCTX_DATA"
    )
    parser.add_argument("--cells", nargs="+", default=list(CELLS), choices=CELLS)
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES, help="of gensim")
    parser.add_argument("--only", choices=("speed", "quality"), help="default: both")
    parser.add_argument(
        "--quality-backends", nargs="+", default=("jax",), choices=BACKENDS, help="default: jax"
    )
    parser.add_argument("--words", type=int, default=4_000_000, help="repeat the text to so many")
    parser.add_argument("--min-count", type=int, default=5, help="of the text before repetition")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--window", type=int, default=5)
    parser.add_argument("--sample", type=float, default=1e-3)
    parser.add_argument("--negatives", type=int, default=5)
    parser.add_argument("--shared", type=int, default=16, help="our negatives of a block")
    parser.add_argument("--stream", default="{}", help="JSON: more options of our WindowStream")
    parser.add_argument("--gensim-rate", type=float, help="gensim's first rate; default: its own")
    parser.add_argument("--epochs", type=int, default=5, help="of gensim, for quality")
    parser.add_argument(
        "--most-epochs", type=int, default=10, help="of ours, in search of gensim's quality"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="at most so many rounds a cell")
    parser.add_argument("--seconds", type=float, default=240, help="at most so long a cell")
    parser.add_argument("--json", help="file to write all figures to")
    options = parser.parse_args()
    if not options.data:
        parser.error("--data or KCTX_DATA must name the folder of data sets")
    figures = {"options": vars(options), "speed": [], "quality": []}
    with tempfile.TemporaryDirectory() as folder:
        once, often, repeats, words = make_text(options, folder)
        print(f"{words:,} words, for speed {repeats} times: {words * repeats:,}\n", flush=True)
        if options.only != "quality":
            for cell in options.cells:
                print(f"{cell} ...", file=sys.stderr, flush=True)
                figures["speed"] += speed(cell, often, options.min_count * repeats, options)
            print(table(figures["speed"], SPEED), flush=True)
        if options.only != "speed":
            for cell in options.cells:
                figures["quality"] += quality(cell, once, options)
            print(f"\n{table(figures['quality'], QUALITY)}", flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--serve" in sys.argv:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        runner.serve(lambda candidate: Candidate(**candidate))
    else:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        main()
