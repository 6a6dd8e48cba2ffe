"""fastText against its own wheel and gensim: words a second, memory, and how good the answers are.

(The file is not called fasttext.py, which would hide the wheel's module.)

Vectors: skip-gram with negative sampling and subwords, over the text of `word2vec.py`. Ours on each
backend, gensim with two workers and the wheel with two threads, each in a process of its own, in
turn, round after round, one pass over the text in each round. Quality: WordSim-353 (Spearman) and
analogies after `--epochs` over the text without repetition, mean over seeds.

Classifiers: the labelled sets of `SETS` with n-grams of one and of two words. Speed: words a second
of training, over the set repeated as the text is. Quality: accuracy on held-out lines, the same for
all, mean over seeds.

Of the wheel's time for a number of epochs that for one epoch is taken off, so that reading the file
twice, counting and filling its matrices are left out, as they are left out of ours. The wheel fills
its first matrix in eleven pieces, one for each thread, and leaves the rest as it finds it where
there are fewer threads. Used memory there can make training end in NaN, so it is given fresh
memory. Speed is measured with two threads on that matrix, quality with `--quality-threads`.

    python benchmarks/fasttext_training.py --data FOLDER --json figures.json
    python benchmarks/fasttext_training.py --data FOLDER --cells trec-1 --backends jax --rounds 2

`FOLDER` holds the data sets and embeddings/{wordsim353.tsv,questions-words.txt}. A ratio above 1
means that ours is faster. Needs gensim and a wheel of fastText, such as fasttext-wheel.
"""

import argparse
import csv
import importlib
import json
import math
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import runner
from word2vec import make_text, peak, table

BACKENDS = ("tensorflow", "jax", "torch")
SETS = ("ag_news", "trec", "sst2", "thucnews_titles")
CELLS = ("vectors", *(f"{name}-{n}" for name in SETS for n in (1, 2)))

# Large blocks of memory come from the system and hold zeros: what the wheel leaves as it finds it.
FRESH = {"MALLOC_MMAP_THRESHOLD_": "1000000"}


def words_of(text):
    """Lower-cased words; punctuation and symbols are words of their own."""
    return re.sub(r"([^\w\s]|_)", r" \1 ", text.lower()).split()


def labelled_set(name, folder):
    """(training lines, held-out lines) of a set: lists of (label, words).

    sst2 has held-out lines of its own; of the others every fifth line is held out.
    """
    folder = Path(folder) / name
    if name == "sst2":
        return [
            [(line.rpartition("\t")[2], line.rpartition("\t")[0].split()) for line in lines]
            for lines in (lines_of(folder / "train.tsv"), lines_of(folder / "dev.tsv"))
        ]
    if name == "ag_news":
        with open(folder / "ag_news.csv", encoding="utf-8", newline="") as file:
            rows = [
                (row[0], words_of(" ".join(row[1:]).replace("\\", " "))) for row in csv.reader(file)
            ]
    elif name == "trec":
        rows = [line.partition(" ") for line in lines_of(folder / "TREC.train", "latin-1")]
        rows = [(label.partition(":")[0], words_of(text)) for label, _, text in rows]
    else:  # Chinese titles: each character is a word, and so is a run of Latin letters or digits
        rows = [line.rpartition("\t") for line in lines_of(folder / "dev.txt")]
        rows = [(label, re.findall(r"[a-z0-9]+|\S", text.lower())) for text, _, label in rows]
    return [row for i, row in enumerate(rows) if i % 5 != 4], rows[4::5]


def lines_of(path, encoding="utf-8"):
    lines = path.read_text(encoding=encoding).split("\n")
    return [line.strip("\r") for line in lines if line.strip()]


def the_wheel():
    """The wheel's module, whatever this folder holds."""
    here = str(Path(__file__).parent)
    kept, sys.path[:] = sys.path[:], [x for x in sys.path if Path(x or ".").resolve() != Path(here)]
    try:
        return importlib.import_module("fasttext")
    finally:
        sys.path[:] = kept


class Ours:
    """Our models on the backend of the environment.

    Args:
        cell: one of `CELLS`.
        text: path of a text, or of labelled lines.
        settings: dict of the options.
    """

    def __init__(self, cell, text, settings):
        import keras

        from kctx import convert, data, models, training, vectors

        training.setup()  # as the recipes do
        self.keras, self.convert, self.data = keras, convert, data
        self.models, self.tables = models, vectors
        self.text, self.settings, self.model = text, settings, None
        self.word_ngrams = None if cell == "vectors" else int(cell.rpartition("-")[2])

    def load(self):
        """Vocabulary and ids; returns the number of tokens in the text."""
        settings = self.settings
        if self.word_ngrams is None:
            split = {"white_space": self.data.ALL_WHITE_SPACE, "progress": False}
            self.vocabulary = self.data.WordVocabulary.train(
                self.text, min_count=settings["min_count"], line_end="</s>", **split
            )
            self.corpus = self.data.IdCorpus.build(self.vocabulary, self.text, **split)
            words = self.vocabulary.words
            self.subwords = self.tables.Subwords(3, 6, settings["buckets"])
            rows = self.tables.SubwordRows(words, self.subwords).of_words(words, range(len(words)))
            self.features = self.data.WordFeatures(*rows)
            self.targets = self.data.NegativeSampling(
                self.vocabulary.counts, settings["shared"], exponent=0.5
            )
            return len(self.corpus)
        buckets = settings["label_buckets"] if self.word_ngrams > 1 else 0
        lines = self.data.read_labelled_lines(self.text, progress=False)
        self.vocabulary = self.data.count_labelled_lines(lines)
        self.subwords = self.tables.Subwords(0, 0, buckets)
        features = self.tables.LineFeatures(self.vocabulary.words, self.subwords, self.word_ngrams)
        self.lines = self.data.LabelledLines(lines, self.vocabulary.labels, features)
        return self.vocabulary.num_tokens

    def _stream(self, epochs, seed):
        options = self.settings["stream"]
        if self.word_ngrams is not None:
            rate, counts = self.settings["label_rate"], self.vocabulary.label_counts
            return self.data.LabelledStream(
                self.lines, counts, epochs=epochs, learning_rate=rate, seed=seed, **options
            )
        return self.data.WindowStream(
            self.corpus,
            self.vocabulary.counts,
            self.targets,
            self.features,
            sample=self.settings["sample"],
            num_tokens=len(self.corpus),
            epochs=epochs,
            line_end_id=self.vocabulary.words.index("</s>"),
            seed=seed,
            **{"learning_rate": self.settings["rate"], "predicted": "context", **options},
        )

    def _new(self, seed):
        size, dim = len(self.vocabulary.words), self.settings["dim"]
        if self.word_ngrams is None:
            return self.models.FastText(size, self.subwords.buckets, dim, seed=seed)
        labels = len(self.vocabulary.labels)
        return self.models.FastTextClassifier(size, labels, self.subwords.buckets, dim, seed=seed)

    def train(self, epochs, seed, quality=False):
        """Trains from the start; returns the seconds of training alone."""
        if self.model is None:
            self.model = self._new(seed)
        elif quality:  # speed does not hang on the values, and memory would on a second model
            self.model.set_weights(self._new(seed).get_weights())
        stream = self._stream(epochs, seed)
        began = time.perf_counter()
        self.model.fit(stream, verbose=0)
        self.keras.ops.convert_to_numpy(self.model.output_table)  # waits for the device
        return time.perf_counter() - began

    def _file(self):
        return self.convert.to_fasttext_file(
            self.model, self.vocabulary, self.subwords, self.word_ngrams or 1
        )

    def vectors(self):
        file = self._file()
        return self.tables.Vectors(file.words, file.word_table())

    def first_labels(self, texts):
        answers = self.tables.FastTextPredictor(self._file()).predict(texts)
        return [answer[0][0] if answer else None for answer in answers]


class Wheel:
    """The wheel of fastText; arguments as `Ours`."""

    def __init__(self, cell, text, settings):
        self.fasttext = the_wheel()
        self.text, self.settings = text, settings
        self.word_ngrams = None if cell == "vectors" else int(cell.rpartition("-")[2])

    def load(self):
        return None

    def _fit(self, epochs, seed, threads):
        shared = {
            "dim": self.settings["dim"],
            "epoch": epochs,
            "thread": threads,
            "verbose": 0,
        }
        began = time.perf_counter()
        if self.word_ngrams is None:  # without a seed: its runs differ by its threads
            self.model = self.fasttext.train_unsupervised(
                self.text,
                "skipgram",
                lr=0.05,
                minCount=self.settings["min_count"],
                t=self.settings["sample"],
                bucket=self.settings["buckets"],
                **shared,
            )
        else:
            self.model = self.fasttext.train_supervised(
                self.text,
                seed=seed,
                lr=self.settings["label_rate"],
                wordNgrams=self.word_ngrams,
                bucket=self.settings["label_buckets"],
                **shared,
            )
        return time.perf_counter() - began

    def train(self, epochs, seed, quality=False):
        if quality:
            return self._fit(epochs, seed, self.settings["quality_threads"])
        return self._fit(epochs + 1, seed, 2) - self._fit(1, seed, 2)

    def vectors(self):
        from kctx.vectors import Vectors

        words = self.model.get_words()
        import numpy as np

        return Vectors(words, np.stack([self.model.get_word_vector(word) for word in words]))

    def first_labels(self, texts):
        # The method of the wheel's own class, whose wrapper fails under NumPy 2.
        answers = [self.model.f.predict(text + "\n", 1, 0.0, "strict") for text in texts]
        return [answer[0][1] if answer else None for answer in answers]


class Gensim:
    """gensim with two workers, for vectors only; arguments as `Ours`."""

    def __init__(self, cell, text, settings):
        from gensim.models.fasttext import FastText

        self.gensim, self.text, self.settings = FastText, text, settings

    def load(self):
        self.model = self._new(0)
        return None

    def _new(self, seed):
        model = self.gensim(
            vector_size=self.settings["dim"],
            window=5,
            sample=self.settings["sample"],
            min_count=self.settings["min_count"],
            bucket=self.settings["buckets"],
            sg=1,
            negative=5,
            workers=2,
            seed=seed + 1,
        )
        model.build_vocab(corpus_file=self.text)
        return model

    def train(self, epochs, seed, quality=False):
        if seed:
            self.model = self._new(seed)
        else:
            self.model.init_weights()
        began = time.perf_counter()
        self.model.train(
            corpus_file=self.text,
            total_examples=self.model.corpus_count,
            total_words=self.model.corpus_total_words,
            epochs=epochs,
        )
        return time.perf_counter() - began

    def vectors(self):
        from kctx.vectors import Vectors

        return Vectors(self.model.wv.index_to_key, self.model.wv.vectors)


class Candidate:
    """What the parent asks: one way to train one cell.

    Args:
        way: "ours", "wheel" or "gensim".
        cell, text, settings: as `Ours`.
    """

    def __init__(self, way, cell, text, settings):
        self.way = {"ours": Ours, "wheel": Wheel, "gensim": Gensim}[way](cell, text, settings)
        self.epochs = settings["speed_epochs"]
        self.before = peak()

    def load(self):
        """Reads the text; ours trains an epoch, to be compiled, and says how many tokens it has."""
        tokens = self.way.load()
        if tokens is not None:
            self.way.train(1, 0)
        return tokens

    def time(self, repeats):
        """Seconds of an epoch of training."""
        return [self.way.train(self.epochs, 0) / self.epochs for _ in range(repeats)]

    def memory(self):
        """Highest resident megabytes, and those after the imports."""
        return [peak(), self.before]

    def vector_quality(self, epochs, seed, folder):
        """WordSim-353 and analogies after a training of its own."""
        from kctx import evaluation

        seconds, folder = self.way.train(epochs, seed, quality=True), Path(folder)
        vectors = self.way.vectors()
        found = evaluation.analogies(vectors, folder / "questions-words.txt", progress=False)
        pairs = evaluation.word_similarity(vectors, folder / "wordsim353.tsv")
        return {
            "seconds": seconds,
            "similarity": pairs["spearman"],
            **{name: found[name]["accuracy"] for name in ("semantic", "syntactic", "total")},
        }

    def label_quality(self, epochs, seed, held_out):
        """Accuracy on held-out lines after a training of its own."""
        seconds = self.way.train(epochs, seed, quality=True)
        lines = [line.split(" ", 1) for line in Path(held_out).read_text("utf-8").split("\n")[:-1]]
        answers = self.way.first_labels([text for _, text in lines])
        right = [answer == label for answer, (label, _) in zip(answers, lines, strict=True)]
        return {"seconds": seconds, "accuracy": 100 * statistics.mean(right)}


def workers_of(cell, text, options, min_count, epochs):
    names = "dim buckets label_buckets sample shared rate label_rate quality_threads stream".split()
    settings = {name: getattr(options, name) for name in names}
    settings.update(min_count=min_count, speed_epochs=epochs, stream=json.loads(options.stream))
    shared = {"cell": cell, "text": str(text), "settings": settings}
    made = {}
    for backend in options.backends:
        environment = {"KERAS_BACKEND": backend}
        made[f"ours, {backend}"] = runner.Worker(__file__, {"way": "ours", **shared}, environment)
    for peer in options.peers:
        if peer == "wheel" or cell == "vectors":
            made[peer] = runner.Worker(__file__, {"way": peer, **shared}, FRESH)
    return made


def speed(cell, text, options, min_count=1):
    """Rows of speed of one cell, as dicts."""
    epochs = 1 if cell == "vectors" else options.label_speed_epochs
    workers = workers_of(cell, text, options, min_count, epochs)
    try:
        tokens = [worker.ask("load") for worker in workers.values()]
        tokens = next(number for number in tokens if number is not None)
        times = runner.in_turn(workers, options.rounds, options.seconds, slice_seconds=0)
        memory = {name: worker.ask("memory") for name, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.close()
    return [
        {
            "cell": cell,
            "way": name,
            "words_per_second": tokens / statistics.median(times[name]),
            **{
                f"to_{peer}": runner.ratio(times[name], times[peer]) if peer in times else None
                for peer in ("wheel", "gensim")
            },
            "peak_mb": memory[name][0],
            "after_imports_mb": memory[name][1],
            "words": tokens,
            "times": times[name],
        }
        for name in workers
    ]


def quality(cell, text, options, method, **arguments):
    """Rows of quality of one cell, as dicts; `method` is asked once for each seed."""
    workers = workers_of(cell, text, options, options.min_count, 1)
    rows = []
    try:
        for name, worker in workers.items():
            worker.ask("load")
            found = [worker.ask(method, seed=seed, **arguments) for seed in range(options.seeds)]
            means = {key: statistics.mean(x[key] or 0.0 for x in found) for key in found[0]}
            rows.append({"cell": cell, "way": name, **means, "of_seeds": found})
            print(f"{cell}, {name}: {means}", file=sys.stderr, flush=True)
    finally:
        for worker in workers.values():
            worker.close()
    return rows


SPEED = (
    ("cell", "cell", ""),
    ("way", "way", ""),
    ("words_per_second", "words/s", ",.0f"),
    ("to_wheel", "to the wheel", ".2f"),
    ("to_gensim", "to gensim", ".2f"),
    ("peak_mb", "peak MB", ",.0f"),
    ("after_imports_mb", "after imports MB", ",.0f"),
)
VECTORS = (
    ("way", "way", ""),
    ("similarity", "WordSim-353", ".4f"),
    ("semantic", "semantic", ".4f"),
    ("syntactic", "syntactic", ".4f"),
    ("total", "analogies", ".4f"),
    ("seconds", "seconds", ".1f"),
)
LABELS = (
    ("cell", "cell", ""),
    ("way", "way", ""),
    ("accuracy", "accuracy %", ".2f"),
    ("seconds", "seconds", ".2f"),
)


def write_lines(path, lines):
    text = "".join(f"__label__{label} {' '.join(words)}\n" for label, words in lines)
    path.write_text(text, encoding="utf-8")
    return path


def label_cell(cell, options, folder, figures):
    """Speed and quality of a classifier's cell, added to the figures."""
    train, held_out = labelled_set(cell.rpartition("-")[0], options.data)
    repeats = math.ceil(options.words / sum(len(words) for _, words in train))
    often = write_lines(folder / "often.txt", train * repeats)
    train = write_lines(folder / "train.txt", train)
    held_out = write_lines(folder / "held_out.txt", held_out)
    if options.only != "quality":
        figures["speed"] += speed(cell, often, options)
    if options.only != "speed":
        arguments = {"epochs": options.label_epochs, "held_out": str(held_out)}
        figures["labels"] += quality(cell, train, options, "label_quality", **arguments)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default=os.environ.get("KCTX_DATA"), help="folder of data sets; KCTX_DATA"
    )
    parser.add_argument("--cells", nargs="+", default=CELLS, choices=CELLS)
    parser.add_argument("--backends", nargs="+", default=BACKENDS, choices=BACKENDS)
    peers = ("wheel", "gensim")
    parser.add_argument("--peers", nargs="+", default=peers, choices=peers)
    parser.add_argument("--only", choices=("speed", "quality"), help="default: both")
    parser.add_argument("--words", type=int, default=4_000_000, help="repeat the text to so many")
    parser.add_argument("--min-count", type=int, default=5, help="of the text before repetition")
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--buckets", type=int, default=2_000_000, help="of vectors")
    parser.add_argument("--label-buckets", type=int, default=2_000_000, help="of classifiers")
    parser.add_argument("--sample", type=float, default=1e-4)
    parser.add_argument("--shared", type=int, default=32, help="our negatives of a block")
    parser.add_argument("--rate", type=float, default=0.05, help="our first rate for vectors")
    parser.add_argument("--label-rate", type=float, default=0.5, help="first rate of classifiers")
    parser.add_argument("--stream", default="{}", help="JSON: more options of our streams")
    parser.add_argument("--epochs", type=int, default=5, help="of vectors, for quality")
    parser.add_argument("--label-epochs", type=int, default=10, help="of classifiers, for quality")
    parser.add_argument("--label-speed-epochs", type=int, default=3, help="in each round")
    parser.add_argument("--quality-threads", type=int, default=12, help="of the wheel")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5, help="at most so many rounds a cell")
    parser.add_argument("--seconds", type=float, default=240, help="at most so long a cell")
    parser.add_argument("--json", help="file to write all figures to")
    options = parser.parse_args()
    if not options.data:
        parser.error("--data or KCTX_DATA must name the folder of data sets")
    figures = {"options": vars(options), "speed": [], "vectors": [], "labels": []}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for cell in options.cells:
            print(f"{cell} ...", file=sys.stderr, flush=True)
            if cell == "vectors":
                once, often, repeats, _ = make_text(options, folder)
                if options.only != "quality":
                    minimum = options.min_count * repeats
                    figures["speed"] += speed(cell, often, options, minimum)
                if options.only != "speed":
                    scores = str(Path(options.data, "embeddings"))
                    arguments = {"epochs": options.epochs, "folder": scores}
                    figures["vectors"] += quality(
                        cell, once, options, "vector_quality", **arguments
                    )
                continue
            try:
                label_cell(cell, options, folder, figures)
            except RuntimeError as error:
                # A peer that fails, as the wheel does with NaN at high rates, costs its cell alone.
                print(f"{cell} failed: {error}", file=sys.stderr, flush=True)
    for name, columns in (("speed", SPEED), ("vectors", VECTORS), ("labels", LABELS)):
        if figures[name]:
            print(table(figures[name], columns), end="\n\n")
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if "--serve" in sys.argv:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        runner.serve(lambda candidate: Candidate(**candidate))
    else:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        main()
