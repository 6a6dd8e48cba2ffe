"""Word vectors: loading, neighbours, analogies, words outside the table; against the peers.

    python benchmarks/vectors.py --vectors glove.6B.50d.txt --questions questions-words.txt \\
        [--fasttext model.bin] [--seconds 60]

Each task is timed in turn, round after round, each way in a process of its own:

    load text      the file as it is         ours, gensim (load_word2vec_format)
    load binary    the same as word2vec .bin ours, gensim
    load native    our own folder, memory-mapped, with the norms of all rows; beside gensim's own
                   format (KeyedVectors.load, mmap="r"), with its norms
    neighbours     200 words, one at a time  ours, gensim (most_similar)
    analogies      --sample questions over all words: ours, gensim (evaluate_word_analogies)
    outside        2,000 words outside the table, by their n-grams: one at a time and all at once;
                   ours, fasttext

Then the whole set of questions is answered from the native folder in a process of its own: the
share of right answers, seconds, and memory beyond what the process had before it loaded.
A ratio above 1 means that ours is faster. Peers that are not installed are left out.
"""

import argparse
import contextlib
import importlib.util
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import runner


def memory():
    """Megabytes of the process: resident now, of that not backed by files, and the peak."""
    lines = Path("/proc/self/status").read_text().split("\n")
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    names = {"resident": "VmRSS", "anonymous": "RssAnon", "peak": "VmHWM"}
    return {name: int(fields[field].split()[0]) / 1024 for name, field in names.items()}


def forget_peak():
    """Lets the peak begin anew, so that it is not that of the imports."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class Candidate:
    """One way of one task; see the top of the file."""

    def __init__(self, way, task, paths, words=(), questions=None):
        self.way, self.task, self.paths = way, task, paths
        self.words, self.questions = words, questions
        if way == "ours":
            import kctx

            self.kctx = kctx
        elif way == "gensim":
            from gensim.models import KeyedVectors

            self.keyed_vectors = KeyedVectors
        forget_peak()
        self.before, self.held = memory(), None
        if task.startswith("load"):
            return
        if way == "fasttext":
            import fasttext

            self.held = fasttext.load_model(paths["fasttext"])
        else:
            self.held = self._outside_table() if task.startswith("outside") else self._native()

    def time(self, repeats):
        """Seconds of the task, `repeats` times."""
        return [self._once() for _ in range(repeats)]

    def grown(self):
        """Megabytes that the task added to the process."""
        after = memory()
        return {name: after[name] - self.before[name] for name in after}

    def accuracy(self):
        """Answers all questions: shares in per cent by section, and seconds."""
        began = time.perf_counter()
        result = self._ours_analogies()
        seconds = time.perf_counter() - began
        rows = {**result["sections"], **{k: result[k] for k in ("semantic", "syntactic", "total")}}
        shares = {name: row["accuracy"] and 100 * row["accuracy"] for name, row in rows.items()}
        return {"seconds": seconds, "shares": shares}

    def _once(self):
        method = getattr(self, f"_{self.way}_{self.task.replace(' ', '_')}")
        self.held = None if self.task.startswith("load") else self.held
        began = time.perf_counter()
        result = method()
        seconds = time.perf_counter() - began
        if self.task.startswith("load"):
            self.held = result
        return seconds

    def _native(self):
        return getattr(self, f"_{self.way}_load_native")()

    def _outside_table(self):
        return self.kctx.convert.load_vectors(self.paths["fasttext"], progress=False)[0]

    def _ours_load_text(self):
        return self.kctx.convert.load_vectors(self.paths["text"], progress=False)[0]

    def _ours_load_binary(self):
        return self.kctx.convert.load_vectors(self.paths["binary"], progress=False)[0]

    def _ours_load_native(self):
        vectors = self.kctx.Vectors.load(self.paths["native"])
        assert len(vectors.scales) == len(vectors)
        return vectors

    def _ours_neighbours(self):
        for word in self.words:
            self.held.neighbours(word)

    def _ours_analogies(self):
        return self.kctx.evaluation.analogies(self.held, self.questions, progress=False)

    def _ours_outside_one(self):
        for word in self.words:
            self.held[word]

    def _ours_outside_all(self):
        self.held.get(self.words)

    def _gensim_load_text(self):
        header = self.paths["header"]
        return self.keyed_vectors.load_word2vec_format(
            self.paths["text"], binary=False, no_header=not header
        )

    def _gensim_load_binary(self):
        return self.keyed_vectors.load_word2vec_format(self.paths["binary"], binary=True)

    def _gensim_load_native(self):
        vectors = self.keyed_vectors.load(self.paths["gensim"], mmap="r")
        vectors.fill_norms()
        return vectors

    def _gensim_neighbours(self):
        for word in self.words:
            self.held.most_similar(word)

    def _gensim_analogies(self):
        self.held.evaluate_word_analogies(self.questions, restrict_vocab=len(self.held))

    def _fasttext_outside_one(self):
        for word in self.words:
            self.held.get_word_vector(word)

    _fasttext_outside_all = _fasttext_outside_one


def prepare(arguments, folder):
    """Writes the vectors in all formats; returns the paths and some words."""
    from kctx.convert import load_vectors, save_vectors

    vectors, report = load_vectors(arguments.vectors)
    paths = {
        "text": str(arguments.vectors),
        "header": report.file_format != "glove",
        "binary": str(folder / "vectors.bin"),
        "native": str(folder / "native"),
        "gensim": str(folder / "vectors.kv"),
        "fasttext": str(arguments.fasttext),
    }
    save_vectors(vectors, paths["binary"])
    vectors.save(paths["native"])
    if importlib.util.find_spec("gensim"):
        from gensim.models import KeyedVectors

        theirs = KeyedVectors(vectors.dim)
        theirs.add_vectors(vectors.words, vectors.get(vectors.words))
        theirs.save(paths["gensim"])
    return paths, vectors.words


def sample_questions(path, count, folder):
    """A file with `count` of the questions, evenly drawn, in their sections."""
    lines = [line for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
    questions = sum(not line.startswith(":") for line in lines)
    step = max(1, questions // count)
    number = itertools.count()
    kept = [line for line in lines if line.startswith(":") or next(number) % step == 0]
    (folder / "questions.txt").write_text("\n".join(kept) + "\n", encoding="utf-8")
    return str(folder / "questions.txt"), len(kept)


def tasks(arguments, paths, words, folder):
    """The tasks: name, arguments of the candidates, and the peer."""
    rows = [(name, {}, "gensim") for name in ("load text", "load binary", "load native")]
    some = words[:: max(1, len(words) // 200)][:200]
    rows.append(("neighbours", {"words": some}, "gensim"))
    if arguments.questions:
        path, _ = sample_questions(arguments.questions, arguments.sample, folder)
        rows.append(("analogies", {"questions": path}, "gensim"))
    if arguments.fasttext:
        outside = [f"{word}zq{i}" for i, word in enumerate(words[:2000])]
        rows += [(f"outside {how}", {"words": outside}, "fasttext") for how in ("one", "all")]
    return rows


def compare(name, settings, peer, paths, seconds):
    """Times a task in turn; a row of the table."""
    ways = ["ours", peer] if importlib.util.find_spec(peer) else ["ours"]
    workers = {
        way: runner.Worker(__file__, {"way": way, "task": name, "paths": paths, **settings})
        for way in ways
    }
    times = runner.in_turn(workers, 9, seconds)
    grown = {way: worker.ask("grown")["peak"] for way, worker in workers.items()}
    for worker in workers.values():
        worker.close()
    row = [name, statistics.median(times["ours"]), grown["ours"]]
    if peer not in times:
        row += [peer, "-", "-", "-"]
    else:
        theirs = times[peer]
        row += [peer, statistics.median(theirs), grown[peer], runner.ratio(times["ours"], theirs)]
    return [f"{cell:.4g}" if isinstance(cell, float) else cell for cell in row]


def whole_set(arguments, paths):
    """Prints the shares of right answers of all questions, seconds and memory."""
    settings = {"way": "ours", "task": "analogies", "paths": paths}
    worker = runner.Worker(__file__, {**settings, "questions": str(arguments.questions)})
    result = worker.ask("accuracy")
    grown = worker.ask("grown")
    worker.close()
    size = sum(file.stat().st_size for file in Path(paths["native"]).iterdir()) / 2**20
    shares = [[k, "-" if v is None else v] for k, v in result["shares"].items()]
    print(runner.markdown_table(["section", "right %"], shares))
    print(
        f"\nall questions: {result['seconds']:.1f} s; memory at the peak {grown['peak']:.0f} MB "
        f"above the process before loading, {grown['peak'] - size:.0f} MB beyond the folder's "
        f"{size:.0f} MB; not backed by files at the end: {grown['anonymous']:.0f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--vectors", type=Path, required=True, help="text file of vectors")
    parser.add_argument("--questions", type=Path, help="file of analogies")
    parser.add_argument("--fasttext", type=Path, help="fastText .bin for words outside the table")
    parser.add_argument("--sample", type=int, default=500, help="analogies asked of both")
    parser.add_argument("--seconds", type=float, default=60, help="time budget of a task")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths, words = prepare(arguments, Path(folder))
        header = ["task", "ours s", "ours MB", "peer", "peer s", "peer MB", "ratio"]
        rows = [
            compare(name, settings, peer, paths, arguments.seconds)
            for name, settings, peer in tasks(arguments, paths, words, Path(folder))
        ]
        print(runner.markdown_table(header, rows) + "\n")
        if arguments.questions:
            whole_set(arguments, paths)


if __name__ == "__main__":
    if "--serve" in sys.argv:
        runner.serve(lambda candidate: Candidate(**candidate))
    else:
        main()
