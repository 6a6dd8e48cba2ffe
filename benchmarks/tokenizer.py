"""Lines a second of the WordPiece tokenizer in tf.data, against the Rust `tokenizers` package.

Four ways from the same lines in memory to ragged batches of ids, each in a process of its own, in
turn, round after round:

    ours               from_tensor_slices, batch, map(tokenizer, AUTOTUNE)
    rust in map        the same with encode_batch_fast inside a tf.py_function
    rust in generator  encode_batch_fast in a Python generator, from_generator
    rust alone         encode_batch_fast and nothing else: no TensorFlow, lists of ids

All must give the same ids, which is checked first. A ratio above 1 means that ours is faster.

    python benchmarks/tokenizer.py --data FOLDER
    python benchmarks/tokenizer.py --text corpus.txt --vocabulary vocab.txt

`FOLDER` holds brown/brown_part.txt, imdb/train.tsv, peopledaily_text/sentences-part.txt and
tokenizers/bert-base-{uncased,chinese}/vocab.txt. With neither, the text is Python's own language
reference, and the vocabulary 8,000 pieces learnt from it.
"""

import argparse
import os
import pydoc_data.topics
import statistics
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import runner

SETS = (
    ("brown", "brown/brown_part.txt", "bert-base-uncased"),
    ("imdb", "imdb/train.tsv", "bert-base-uncased"),
    ("peopledaily", "peopledaily_text/sentences-part.txt", "bert-base-chinese"),
)
WAYS = ("ours", "rust in map", "rust in generator", "rust alone")
MAX_WORD_CHARS = 100  # the limit of the Rust package, so that ids can be compared


def read_lines(path):
    """Lines of a UTF-8 file, without their ends."""
    text = Path(path).read_bytes().decode("utf-8")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


class Candidate:
    """One way to tokenise one text.

    Args:
        way: one of `WAYS`.
        text, vocabulary: paths.
        lowercase: bool.
        batch_size: int, lines a batch.
        passes: int, over the text, in each timing.
    """

    def __init__(self, way, text, vocabulary, lowercase, batch_size, passes):
        self.passes = passes
        self.lines = read_lines(text)
        self.batch_size = batch_size
        make = {
            "ours": self._ours,
            "rust in map": self._rust_in_map,
            "rust in generator": self._rust_in_generator,
            "rust alone": self._rust_alone,
        }
        self.batches = make[way](vocabulary, lowercase)

    def time(self, repeats):
        """Seconds a pass over the text, `repeats` times the mean of `passes` in one go.

        Several passes by one iterator: what TensorFlow spends on starting one, some 0.1 s, would
        weigh heavily in a pass over as little text as this.
        """
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            for _ in self.batches(self.passes):
                pass
            seconds.append((time.perf_counter() - began) / self.passes)
        return seconds

    def summary(self):
        """Lines, tokens, and a checksum of ids and row lengths."""
        checksum, tokens = 0, 0
        for batch in self.batches(1):
            rows = batch.to_list() if hasattr(batch, "to_list") else batch
            tokens += sum(map(len, rows))
            flat = [value for row in rows for value in (len(row), *row)]
            checksum = zlib.crc32(np.array(flat, np.int32).tobytes(), checksum)
        return {"lines": len(self.lines), "tokens": tokens, "checksum": checksum}

    def _slices(self):
        for start in range(0, len(self.lines), self.batch_size):
            yield self.lines[start : start + self.batch_size]

    def _ours(self, vocabulary, lowercase):
        import tensorflow as tf

        from kctx.tokenizers import WordPieceTokenizer

        tokenizer = WordPieceTokenizer(
            vocabulary, lowercase=lowercase, max_word_chars=MAX_WORD_CHARS
        )
        dataset = tf.data.Dataset.from_tensor_slices(self.lines).batch(self.batch_size)
        dataset = dataset.map(tokenizer, num_parallel_calls=tf.data.AUTOTUNE)
        return lambda passes: dataset.repeat(passes).prefetch(tf.data.AUTOTUNE)

    def _rust_in_map(self, vocabulary, lowercase):
        import tensorflow as tf

        encode = _rust(vocabulary, lowercase)

        def from_python(lines):
            rows = encode([line.decode("utf-8") for line in lines.numpy()])
            return (*_flat(rows),)

        def from_graph(lines):
            values, splits = tf.py_function(from_python, [lines], [tf.int32, tf.int64])
            values.set_shape([None])
            splits.set_shape([None])
            return tf.RaggedTensor.from_row_splits(values, splits, validate=False)

        dataset = tf.data.Dataset.from_tensor_slices(self.lines).batch(self.batch_size)
        dataset = dataset.map(from_graph, num_parallel_calls=tf.data.AUTOTUNE)
        return lambda passes: dataset.repeat(passes).prefetch(tf.data.AUTOTUNE)

    def _rust_in_generator(self, vocabulary, lowercase):
        import tensorflow as tf

        encode = _rust(vocabulary, lowercase)
        signature = (tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int64))
        dataset = tf.data.Dataset.from_generator(
            lambda: (_flat(encode(lines)) for lines in self._slices()), output_signature=signature
        )
        dataset = dataset.map(
            lambda values, splits: tf.RaggedTensor.from_row_splits(values, splits, validate=False)
        )
        return lambda passes: dataset.repeat(passes).prefetch(tf.data.AUTOTUNE)

    def _rust_alone(self, vocabulary, lowercase):
        encode = _rust(vocabulary, lowercase)
        return lambda passes: (encode(lines) for _ in range(passes) for lines in self._slices())


def _rust(vocabulary, lowercase):
    """Lists of str -> lists of ids, on all cores."""
    import tokenizers

    tokenizer = tokenizers.BertWordPieceTokenizer(vocabulary, lowercase=lowercase)
    # Without offsets, where this version of the package can.
    encode = getattr(tokenizer._tokenizer, "encode_batch_fast", tokenizer.encode_batch)
    return lambda lines: [row.ids for row in encode(lines, add_special_tokens=False)]


def _flat(rows):
    values = np.array([value for row in rows for value in row], np.int32)
    return values, np.cumsum([0, *map(len, rows)], dtype=np.int64)


def compare(name, text, vocabulary, options):
    """Rows of the table for one text."""
    candidate = {
        "text": str(text),
        "vocabulary": str(vocabulary),
        "lowercase": not options.cased,
        "batch_size": options.batch_size,
        "passes": options.passes,
    }
    workers = {}
    try:
        for way in WAYS:
            workers[way] = runner.Worker(__file__, {"way": way, **candidate})
        summaries = {way: worker.ask("summary") for way, worker in workers.items()}
        different = [way for way in WAYS if summaries[way] != summaries["ours"]]
        if different:
            print(f"{name}: ids differ in {different}: {summaries}", file=sys.stderr)
        times = runner.in_turn(workers, options.rounds, options.seconds)
    finally:
        for worker in workers.values():
            worker.close()
    lines = summaries["ours"]["lines"]
    return [
        [
            name,
            way,
            f"{lines / statistics.median(times[way]):,.0f}",
            f"{summaries[way]['tokens'] / statistics.median(times[way]):,.0f}",
            runner.ratio(times["ours"], times[way]),
            "no" if way in different else "yes",
        ]
        for way in WAYS
    ]


def texts_to_compare(options, folder):
    """(name, text, vocabulary) of each set to run."""
    if options.text:
        if not options.vocabulary:
            sys.exit("--text needs --vocabulary")
        return [(Path(options.text).name, options.text, options.vocabulary)]
    if options.data:
        data = Path(options.data)
        return [
            (name, data / text, data / "tokenizers" / vocabulary / "vocab.txt")
            for name, text, vocabulary in SETS
            if not options.sets or name in options.sets
        ]
    from kctx.tokenizers import train_wordpiece

    text = folder / "python.txt"
    text.write_text("\n".join(pydoc_data.topics.topics.values()), encoding="utf-8")
    train_wordpiece(
        text, 8000, lowercase=not options.cased, path=folder / "vocab.txt", progress=False
    )
    return [("python", text, folder / "vocab.txt")]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", default=os.environ.get("KCTX_DATA"), help="folder of data sets; KCTX_DATA"
    )
    parser.add_argument("--sets", nargs="+", choices=[x[0] for x in SETS], help="only these")
    parser.add_argument("--text", help="any UTF-8 file instead, a text a line")
    parser.add_argument("--vocabulary", help="vocab.txt for --text")
    parser.add_argument("--cased", action="store_true", help="keep case and accents")
    parser.add_argument("--batch-size", type=int, default=1024, help="lines a batch")
    parser.add_argument("--passes", type=int, default=4, help="passes over the text a timing")
    parser.add_argument("--rounds", type=int, default=7, help="at most so many rounds a set")
    parser.add_argument("--seconds", type=float, default=60, help="at most so long a set")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text, vocabulary in texts_to_compare(options, Path(folder)):
            print(f"{name} ...", file=sys.stderr, flush=True)
            rows += compare(name, text, vocabulary, options)
    header = ["text", "way", "lines/s", "tokens/s", "ours faster by", "same ids"]
    print(runner.markdown_table(header, rows))


if __name__ == "__main__":
    if "--serve" in sys.argv:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
        runner.serve(lambda candidate: Candidate(**candidate))
    else:
        main()
