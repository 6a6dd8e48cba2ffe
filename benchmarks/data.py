"""Speed and memory of the pretraining data pipeline alone.

Makes a corpus of seeded documents from the words of Python's language reference in a temporary
folder, indexes it, streams masked batches of it, and prints the rates and the most memory that was
resident. The corpus is deleted at the end.

    python benchmarks/data.py --megabytes 2000 --batches 2000
"""

import argparse
import os
import pydoc_data.topics
import re
import tempfile
import threading
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np


def write_corpus(path, size, seed=0):
    """Write `size` bytes of documents of 2 to 40 sentences of 4 to 40 words."""
    words = re.findall(r"[A-Za-z]+[,]?|[0-9]+|[A-Za-z_]+\(\)", _text())
    rng = np.random.default_rng(seed)
    words = np.array(words, object)
    written = 0
    with open(path, "w", encoding="utf-8") as file:
        while written < size:
            # Some 2 MB at a time.
            drawn = iter(words[rng.integers(0, len(words), 400_000)].tolist())
            lines, used = [], 0
            while used < 390_000:
                for _ in range(int(rng.integers(2, 41))):
                    length = int(rng.integers(4, 41))
                    sentence = " ".join(next(drawn) for _ in range(min(length, 400_000 - used)))
                    lines.append(sentence.capitalize() + ".")
                    used += length
                    if used >= 390_000:
                        break
                lines.append("")
            text = "\n".join(lines) + "\n"
            file.write(text)
            written += len(text)


def resident_bytes():
    """Resident memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class PeakMemory:
    """Notes the largest resident memory seen, ten times a second."""

    def __init__(self):
        self.peak, self._stop = resident_bytes(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self):
        while not self._stop.wait(0.1):
            self.peak = max(self.peak, resident_bytes())

    def stop(self):
        self._stop.set()
        self._thread.join()
        return max(self.peak, resident_bytes())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=2000, help="size of the corpus")
    parser.add_argument("--batches", type=int, default=2000, help="batches streamed")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--sequence-length", type=int, default=128)
    parser.add_argument("--max-predictions", type=int, default=20)
    parser.add_argument("--whole-word", action="store_true", help="whole-word masking")
    parser.add_argument("--workers", type=int, default=2, help="threads that tokenise")
    parser.add_argument("--vocabulary", help="vocab.txt; default: 8,000 pieces trained on the text")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    from kctx.data import Corpus, bert_pretraining_stream
    from kctx.tokenizers import WordPieceTokenizer, train_wordpiece

    if options.vocabulary:
        tokenizer = WordPieceTokenizer(options.vocabulary)
    else:
        tokenizer = train_wordpiece(vocabulary_size=8000, lines=_text().split("\n"), progress=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "corpus.txt"
        write_corpus(path, options.megabytes * 1_000_000, options.seed)
        before = resident_bytes()
        memory = PeakMemory()
        begin = time.perf_counter()
        corpus = Corpus(str(path))
        indexed = time.perf_counter() - begin
        stream = bert_pretraining_stream(
            corpus,
            tokenizer,
            sequence_length=options.sequence_length,
            max_predictions=options.max_predictions,
            batch_size=options.batch_size,
            whole_word=options.whole_word,
            workers=options.workers,
            seed=options.seed,
            vocabulary_size=tokenizer.vocabulary_size,
        )
        batches = stream.dataset().take(options.batches + 1).as_numpy_iterator()
        begin = time.perf_counter()
        next(batches)
        first = time.perf_counter() - begin
        begin, tokens = time.perf_counter(), 0
        for x, _, _ in batches:
            tokens += int(x["padding_mask"].sum())
        seconds = time.perf_counter() - begin
        peak = memory.stop()
    padded = options.batches * options.batch_size * options.sequence_length
    print(f"corpus            {corpus.num_bytes / 1e6:,.0f} MB, {corpus.num_documents:,} documents")
    print(f"index             {indexed:.2f} s, {corpus.num_bytes / 1e6 / indexed:,.0f} MB/s")
    print(f"first batch       {first:.2f} s")
    print(
        f"stream            {tokens / seconds:,.0f} tokens/s, {padded / seconds:,.0f} with padding"
    )
    print(
        f"resident memory   {peak / 1e6:,.0f} MB at most, {before / 1e6:,.0f} MB before the corpus"
    )


def _text():
    return "\n".join(pydoc_data.topics.topics.values())


if __name__ == "__main__":
    main()
