"""Modified Kneser-Ney of order 5 against KenLM: text to ARPA file, and scores a second.

Training: counting, smoothing and writing the ARPA file, ours in Python and `lmplz` in turn, round
after round. Ours is timed inside a process that has imported kctx; `lmplz` as a whole process. The
files are compared at the end: the same n-grams, and the largest difference of any number. Peak
memory is the process's highest resident size; beside ours stands what the imports take.

Scoring: `NGramLM.score` over all lines at once, and the Python module of KenLM line by line, if it
is installed.

    python benchmarks/ngram.py --lmplz kenlm/build/bin/lmplz --data FOLDER

`FOLDER` holds the sets named in `SETS`, which are put together to one text; `--text` takes any
other. `--tokens` repeats the text until it has so many words. A ratio above 1 means that ours is
faster.
"""

import argparse
import os
import resource
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
    "wikitext2/valid.txt",
    "imdb/train.tsv",
    "books/pride_and_prejudice.txt",
    "tinyshakespeare/input.txt",
    "wiki_paragraphs_en/paragraphs.txt",
    "ptb/ptb.valid.txt",
    "multi30k/train.en",
    "multi30k/train.de",
    "ag_news/ag_news.csv",
    "embeddings/lee_background.cor",
    "snli/dev.txt",
    "sst2/train.tsv",
)


class Training:
    """Text to ARPA file, by one of two ways.

    Args:
        way: "ours" or "lmplz".
        text, arpa: paths.
        order: int.
        lmplz: path of the program.
        memory: int, bytes that counting may take.
    """

    def __init__(self, way, text, arpa, order, lmplz, memory):
        self.way, self.text, self.arpa = way, text, arpa
        self.order, self.lmplz, self.memory = order, lmplz, memory
        if way == "ours":
            import warnings

            from kctx.ngrams import NGramLM

            warnings.simplefilter("ignore")  # of discounts that fall back, as in lmplz
            self.model = NGramLM
        self.before = self._peak()

    def time(self, repeats):
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            if self.way == "ours":
                model = self.model.train(
                    self.text, order=self.order, memory_limit=self.memory, progress=False
                )
                model.write_arpa(self.arpa)
                del model
            else:
                folder = f"{self.arpa}.work"
                os.makedirs(folder, exist_ok=True)
                subprocess.run(
                    [
                        *[self.lmplz, "-o", str(self.order), "-S", f"{self.memory}b", "-T", folder],
                        *["--discount_fallback", "--text", self.text, "--arpa", self.arpa],
                    ],
                    check=True,
                    capture_output=True,
                )
            seconds.append(time.perf_counter() - began)
        return seconds

    def memory_peak(self):
        """Highest resident megabytes, and those before any work."""
        return [self._peak(), self.before]

    def _peak(self):
        who = resource.RUSAGE_SELF if self.way == "ours" else resource.RUSAGE_CHILDREN
        return resource.getrusage(who).ru_maxrss / 1024


class Scoring:
    """Scores of all lines of a text, by one of two ways; `time` gives seconds a pass."""

    def __init__(self, way, text, arpa):
        # Lines are cut at LF alone, as both models were trained; KenLM takes UTF-8 only.
        data = Path(text).read_bytes().decode("utf-8", "replace").replace("\r", " ")
        self.lines = data.removesuffix("\n").split("\n")
        self.tokens = sum(len(line.split(" ")) + 1 for line in self.lines)
        if way == "ours":
            from kctx.ngrams import read_arpa

            self.score = read_arpa(arpa, progress=False).score
        else:
            import kenlm

            model = kenlm.Model(arpa)
            self.score = lambda lines: [model.score(line) for line in lines]

    def time(self, repeats):
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            self.score(self.lines)
            seconds.append(time.perf_counter() - began)
        return seconds

    def summary(self):
        return [self.tokens, float(sum(self.score(self.lines)))]


def make_text(options, path):
    """Puts the text to train on together; returns its number of words."""
    if options.text:
        parts = [Path(name).read_bytes() for name in options.text]
    else:
        parts = [(Path(options.data) / name).read_bytes() for name in SETS]
    lines = [line for part in parts for line in part.split(b"\n") if line.strip()]
    # `lmplz` refuses the words that stand for sentence edges and unknown words.
    text = b"\n".join(lines).replace(b"<unk>", b"UNK") + b"\n"
    words = len(text.split())
    times = max(1, -(-options.tokens // words))
    path.write_bytes(text * times)
    return words * times


def differences(ours, theirs):
    """(whether both files list the same n-grams, largest difference of their numbers)."""
    import numpy as np

    from kctx.ngrams import read_arpa

    a, b = (read_arpa(path, progress=False).tables for path in (ours, theirs))
    if a.words != b.words or a.sizes != b.sizes:
        return False, float("nan")
    same = all(np.array_equal(x, y) for x, y in zip(a.keys, b.keys, strict=True))
    pairs = zip([*a.probabilities, *a.backoffs], [*b.probabilities, *b.backoffs], strict=True)
    return same, max(float(np.abs(x - y).max()) for x, y in pairs)


def compare_training(options, folder, text, words):
    """Rows of the table of training."""
    workers = {}
    try:
        for way in ("ours", "lmplz"):
            candidate = {
                "way": way,
                "text": str(text),
                "arpa": str(folder / f"{way}.arpa"),
                "order": options.order,
                "lmplz": os.path.abspath(options.lmplz),
                "memory": options.memory << 20,
            }
            workers[way] = runner.Worker(__file__, {"kind": "training", **candidate})
        times = runner.in_turn(workers, options.rounds, options.seconds)
        peaks = {way: worker.ask("memory_peak") for way, worker in workers.items()}
    finally:
        for worker in workers.values():
            worker.close()
    same, largest = differences(folder / "ours.arpa", folder / "lmplz.arpa")
    print(
        f"{words:,} words, order {options.order}; same n-grams: {'yes' if same else 'no'}; largest "
        f"difference of a log10: {largest:.2g}; {len(times['ours'])} rounds\n"
    )
    median = {way: sorted(found)[len(found) // 2] for way, found in times.items()}
    return [
        [
            way,
            median[way],
            min(times[way]),
            f"{words / median[way]:,.0f}",
            "" if way == "ours" else runner.ratio(times["ours"], times[way]),
            f"{peaks[way][0]:,.0f}",
            f"{peaks[way][1]:,.0f}" if way == "ours" else "",
        ]
        for way in workers
    ]


def compare_scoring(options, folder, text):
    """Rows of the table of scoring."""
    workers = {}
    try:
        for way, arpa in (("ours", "ours.arpa"), ("kenlm module", "ours.arpa")):
            candidate = {"way": way, "text": str(text), "arpa": str(folder / arpa)}
            workers[way] = runner.Worker(__file__, {"kind": "scoring", **candidate})
        found = {way: worker.ask("summary") for way, worker in workers.items()}
        times = runner.in_turn(workers, options.rounds, options.seconds)
    except RuntimeError as error:
        print(f"no scoring: {str(error)[:300]}", file=sys.stderr)
        return []
    finally:
        for worker in workers.values():
            worker.close()
    tokens = found["ours"][0]
    return [
        [
            way,
            f"{tokens / min(times[way]):,.0f}",
            "" if way == "ours" else runner.ratio(times["ours"], times[way]),
            f"{found[way][1]:.2f}",
        ]
        for way in workers
    ]


def make(candidate):
    kind = candidate.pop("kind")
    return (Training if kind == "training" else Scoring)(**candidate)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lmplz", required=True, help="path of KenLM's program")
    parser.add_argument(
        "--data", default=os.environ.get("KCTX_DATA"), help="folder of data sets; KCTX_DATA"
    )
    parser.add_argument("--text", nargs="+", help="any text files instead, a sentence a line")
    parser.add_argument("--tokens", type=int, default=0, help="repeat the text to so many words")
    parser.add_argument("--order", type=int, default=5, help="longest n-gram")
    parser.add_argument("--memory", type=int, default=2048, help="megabytes both may sort in")
    parser.add_argument("--rounds", type=int, default=5, help="at most so many")
    parser.add_argument("--seconds", type=float, default=120, help="at most so long, after two")
    parser.add_argument("--no-scoring", action="store_true", help="time training only")
    options = parser.parse_args()
    if not options.text and not options.data:
        parser.error("give --data or --text")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        text = folder / "text"
        words = make_text(options, text)
        rows = compare_training(options, folder, text, words)
        header = ["way", "seconds, median", "fastest", "words/s", "ours faster by", "peak MB"]
        print(runner.markdown_table([*header, "of which before"], rows), flush=True)
        if not options.no_scoring:
            rows = compare_scoring(options, folder, text)
            if rows:
                header = ["way", "tokens/s", "ours faster by", "sum of log10 p"]
                print("\n" + runner.markdown_table(header, rows))


if __name__ == "__main__":
    if "--serve" in sys.argv:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        runner.serve(make)
    else:
        main()
