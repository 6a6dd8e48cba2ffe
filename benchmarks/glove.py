"""GloVe against the C tool: counting and training apart, in turn; quality and memory beside.

Counting: text and vocabulary to `cooccurrence.bin`, ours (ids looked up, pairs counted, file
written; two threads) and `cooccur`, which has one thread. Training: an epoch over the same shuffled
file, ours on each backend and `glove` with as many threads as cores; of the tool's time that of a
run without epochs is taken off. Quality: WordSim-353 and analogies after the same epochs with the
same settings, mean over seeds.

    python benchmarks/glove.py --tools GloVe/build --data FOLDER

`--tools` is the folder of vocab_count, cooccur, shuffle and glove, built with the makefile of
stanfordnlp/GloVe. `FOLDER` holds the sets named in `SETS`, which are put together, lower-cased and
split at punctuation, to one text; `--text` takes any other. `--words` repeats the text until it has
so many. A ratio above 1 means that ours is faster. Peak memory is the highest resident size of the
process; ours has Python, Keras and a backend in it, whose size after the imports stands beside.
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import runner

SETS = (
    "brown/brown_part.txt",
    "enwiki/articles.txt",
    "wiki_paragraphs_en/paragraphs.txt",
    "books/pride_and_prejudice.txt",
)
BACKENDS = ("tensorflow", "jax", "torch")


class Candidate:
    """One way to count, or to train.

    Args:
        way: "ours" or "tool".
        work: "count" or "train".
        folder: where text.txt, vocab.txt and, to train, cooccurrence.shuf.bin lie.
        options: dict of tools, window, dim, x_max, threads.
    """

    def __init__(self, way, work, folder, options):
        self.folder, self.options, self.ours = Path(folder), options, way == "ours"
        self.own = Path(tempfile.mkdtemp(dir=folder))
        self.without = None
        if self.ours:
            from kctx import data, models

            self.data, self.models = data, models
            self.vocabulary = data.WordVocabulary.load(self.folder / "vocab.txt")
        self.before = self._peak()
        self.work = self._count if work == "count" else self._train
        self.seed(0)

    def seed(self, seed):
        """Begins anew."""
        self.number = seed
        if not self.ours or self.work == self._count:
            return
        size = len(self.vocabulary)
        self.model = self.models.GloVe(
            size, self.options["dim"], x_max=self.options["x_max"], seed=seed
        )
        shuffled = self.data.open_cooccurrences(self.folder / "cooccurrence.shuf.bin", size)
        self.stream = self.data.CooccurrenceStream(
            shuffled, size, seed=seed, static_shapes=not self.model.on_cpu
        )

    def time(self, repeats):
        """Seconds of a count, or of an epoch of `repeats`."""
        if self.work == self._train:
            return [self._train(repeats) / repeats]
        return [self._count() for _ in range(repeats)]

    def memory(self):
        """Highest resident megabytes, and those before any work."""
        return [self._peak(), self.before]

    def quality(self, epochs, similarity, analogies):
        """Costs of the epochs, Spearman's correlation, and shares of right analogies."""
        from kctx import convert, evaluation

        path = self.own / "vectors.txt"
        if self.ours:
            self._fit(epochs)
            convert.save_vectors(self.model.vectors(self.vocabulary), path, "glove")
            costs = self.costs
        else:
            costs = self._glove(epochs)
        vectors, _ = convert.load_vectors(path, format="glove")
        answers = evaluation.analogies(vectors, analogies, progress=False)
        return {
            "costs": costs,
            "similarity": evaluation.word_similarity(vectors, similarity)["spearman"],
            "analogies": {
                part: answers[part]["accuracy"] for part in ("semantic", "syntactic", "total")
            },
        }

    def _peak(self):
        who = resource.RUSAGE_SELF if self.ours else resource.RUSAGE_CHILDREN
        return resource.getrusage(who).ru_maxrss / 1024

    def _tool(self, name, *arguments, **streams):
        program = Path(self.options["tools"]) / name
        return subprocess.run([program, *map(str, arguments)], cwd=self.own, check=True, **streams)

    def _count(self):
        text, vocabulary = self.folder / "text.txt", self.folder / "vocab.txt"
        counts, window = self.own / "cooccurrence.bin", self.options["window"]
        began = time.perf_counter()
        if self.ours:
            corpus = self.data.IdCorpus.build(self.vocabulary, text, progress=False)
            self.data.count_cooccurrences(
                corpus, len(self.vocabulary), counts, window, progress=False
            )
        else:
            arguments = ("-vocab-file", vocabulary, "-window-size", window, "-verbose", 0)
            with open(text, "rb") as source, open(counts, "wb") as target:
                self._tool(
                    "cooccur", *arguments, stdin=source, stdout=target, stderr=subprocess.DEVNULL
                )
        return time.perf_counter() - began

    def _train(self, epochs):
        if not self.ours:
            if self.without is None:
                self.without = self._timed(self._glove, 0)
            return self._timed(self._glove, epochs) - self.without
        return self._timed(self._fit, epochs)

    def _timed(self, call, *arguments):
        began = time.perf_counter()
        call(*arguments)
        return time.perf_counter() - began

    def _fit(self, epochs):
        history = self.model.fit(
            self.stream,
            steps_per_epoch=self.stream.steps_per_epoch,
            epochs=epochs,
            shuffle=False,
            verbose=0,
        )
        self.costs = history.history["loss"]

    def _glove(self, epochs):
        settings = {
            "input-file": self.folder / "cooccurrence.shuf.bin",
            "vocab-file": self.folder / "vocab.txt",
            "save-file": self.own / "vectors",
            "vector-size": self.options["dim"],
            "x-max": self.options["x_max"],
            "threads": self.options["threads"],
            "iter": epochs,
            "binary": 0,
            "seed": self.number + 1,
        }
        arguments = [part for name, x in settings.items() for part in (f"-{name}", x)]
        result = self._tool("glove", *arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        return [float(x) for x in re.findall(r"cost: ([0-9.a-z]+)", result.stderr.decode())]


def make_text(options, folder):
    """The text, its vocabulary and shuffled counts in a folder; returns (words, records)."""
    from kctx import data

    if options.text:
        text = Path(options.text).read_text(encoding="utf-8", errors="surrogateescape")
    else:
        parts = [Path(options.data, name).read_text(encoding="utf-8") for name in SETS]
        text = re.sub(r"([^\w\s]|_)", r" \1 ", "\n".join(parts).lower())
    text = text.replace("<unk>", "unk").replace("< unk >", "unk").rstrip("\n") + "\n"
    words = len(text.split())
    repeats = max(1, -(-options.words // words))
    with open(folder / "text.txt", "w", encoding="utf-8", errors="surrogateescape") as file:
        for _ in range(repeats):
            file.write(text)
    minimum = options.min_count * repeats
    vocabulary = data.WordVocabulary.train(
        folder / "text.txt", min_count=minimum, order="bytes", progress=False
    )
    vocabulary.save(folder / "vocab.txt")
    corpus = data.IdCorpus.build(vocabulary, folder / "text.txt", progress=False)
    counts = data.count_cooccurrences(
        corpus, len(vocabulary), folder / "cooccurrence.bin", options.window, progress=False
    )
    data.shuffle_cooccurrences(counts, folder / "cooccurrence.shuf.bin", progress=False)
    return words * repeats, len(counts), len(vocabulary)


def compare(work, ways, amount, unit, folder, options):
    """Rows of the table for counting or training."""
    shared = {
        "tools": str(Path(options.tools).resolve()),
        **{name: getattr(options, name) for name in ("window", "dim", "x_max", "threads")},
    }
    workers = {}
    try:
        for name, (way, backend) in ways.items():
            candidate = {"way": way, "work": work, "folder": str(folder), "options": shared}
            workers[name] = runner.Worker(__file__, candidate, {"KERAS_BACKEND": backend})
        times = runner.in_turn(workers, options.rounds, options.seconds, slice_seconds=2)
        memory = {name: worker.ask("memory") for name, worker in workers.items()}
        rows = [
            [
                work,
                name,
                f"{amount / statistics.median(times[name]):,.0f} {unit}/s",
                runner.ratio(times[name], times["tool"]),
                f"{memory[name][0]:,.0f}",
                f"{memory[name][1]:,.0f}" if name != "tool" else "",
            ]
            for name in workers
        ]
        quality = []
        if work == "train" and options.epochs:
            for name, worker in workers.items():
                quality.append([name, *mean_quality(worker, options)])
        return rows, quality
    finally:
        for worker in workers.values():
            worker.close()


def mean_quality(worker, options):
    """Cells of the table: mean of the seeds."""
    found = []
    for seed in range(options.seeds):
        worker.ask("seed", seed=seed)
        found.append(
            worker.ask(
                "quality",
                epochs=options.epochs,
                similarity=str(Path(options.data, "embeddings/wordsim353.tsv")),
                analogies=str(Path(options.data, "embeddings/questions-words.txt")),
            )
        )

    def mean(get):
        values = [get(entry) for entry in found]
        return "-" if None in values else f"{statistics.mean(values):.4f}"

    return [
        *(mean(lambda entry, i=i: entry["costs"][i]) for i in (0, options.epochs // 2, -1)),
        mean(lambda entry: entry["similarity"]),
        *(
            mean(lambda entry, part=part: entry["analogies"][part])
            for part in ("semantic", "syntactic", "total")
        ),
    ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", nargs="+", default=("count", "train"), choices=("count", "train"))
    parser.add_argument("--tools", required=True, help="folder of the C tools' programs")
    parser.add_argument(
        "--data", default=os.environ.get("KCTX_DATA"), help="folder of data sets; KCTX_DATA"
    )
    parser.add_argument("--text", help="any UTF-8 text instead, words at white space")
    parser.add_argument("--words", type=int, default=0, help="repeat the text to so many words")
    parser.add_argument("--min-count", type=int, default=5, help="of the text before repetition")
    parser.add_argument("--window", type=int, default=15)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--x-max", type=float, default=100.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the tool")
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    parser.add_argument("--epochs", type=int, default=15, help="for quality; 0: none")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="at most so many rounds")
    parser.add_argument("--seconds", type=float, default=120, help="at most so long each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        words, records, size = make_text(options, Path(folder))
        print(f"{words:,} words, {size:,} different ones, {records:,} records\n")
        tool = ("tool", options.backends[0])
        rows, quality = [], []
        if "count" in options.work:
            ways = {"ours": ("ours", options.backends[0]), "tool": tool}
            rows, _ = compare("count", ways, words, "words", Path(folder), options)
        if "train" in options.work:
            ways = {f"ours, {backend}": ("ours", backend) for backend in options.backends}
            ways["tool"] = tool
            more, quality = compare("train", ways, records, "records", Path(folder), options)
            rows += more
    header = ["work", "way", "rate", "ratio", "peak MB", "after imports MB"]
    print(runner.markdown_table(header, rows))
    if quality:
        header = ["way", "cost, epoch 1", "middle", "last", "WordSim-353"]
        print()
        print(runner.markdown_table([*header, "semantic", "syntactic", "analogies"], quality))


if __name__ == "__main__":
    if "--serve" in sys.argv:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        runner.serve(lambda candidate: Candidate(**candidate))
    else:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        main()
