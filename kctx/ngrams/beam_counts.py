"""Counts beyond one machine: an Apache Beam pipeline (package extra `beam`).

The pipeline counts the n-grams of the highest order, filled up with `<s>` at the beginning of
sentences, from which all other counts follow:

    from kctx.ngrams import NGramLM, beam_counts
    beam_counts.count_files("gs://texts/*.txt", "gs://counts/part", order=5, options=...)
    counts = beam_counts.read_counts(paths_of_the_parts, order=5)
    model = NGramLM.from_counts(counts, "kneser_ney")

Words get their ids in the order of their bytes, since workers know no first appearance.
"""

from kctx.arguments import check_count
from kctx.files import unpacked
from kctx.ngrams.counts import NGramCounts
from kctx.ngrams.text import SPECIAL_WORDS, split_words
from kctx.words import to_bytes, to_text


def padded_ngrams(line, order, known=None, special_words="error", empty_lines=True):
    """The n-grams of one sentence, `<s>` repeated before it, `</s>` at its end.

    Args:
        line: str or bytes.
        order: int.
        known: set of bytes, the words to tell apart; others become `<unk>`. None: all.
        special_words, empty_lines: as `count_ngrams`.

    Returns:
        list of tuples of `order` bytes, one for each word and one for `</s>`.
    """
    words = [to_bytes(word) for word in split_words(line)]
    if any(word in SPECIAL_WORDS for word in words):
        if special_words == "error":
            raise ValueError(
                f"A line holds a special word, one of {SPECIAL_WORDS}; see `special_words`. "
                f"Received: {line[:80]!r}"
            )
        if special_words == "skip":
            words = [word for word in words if word not in SPECIAL_WORDS]
        words = [b"<unk>" if word in SPECIAL_WORDS else word for word in words]
    if not words and not empty_lines:
        return []
    if known is not None:
        words = [word if word in known else b"<unk>" for word in words]
    padded = [b"<s>"] * (order - 1) + words + [b"</s>"]
    return [tuple(padded[start : start + order]) for start in range(len(words) + 1)]


def ngram_counts(lines, order, vocabulary=None, special_words="error", empty_lines=True):
    """Beam transform: a PCollection of lines to one of (tuple of bytes, int).

    Args:
        lines: PCollection of str or bytes, a sentence each.
        order, vocabulary, special_words, empty_lines: as `count_ngrams`.
    """
    import apache_beam as beam

    check_count("order", order)
    known = None if vocabulary is None else {to_bytes(word) for word in vocabulary}
    return (
        lines
        | "n-grams" >> beam.FlatMap(padded_ngrams, order, known, special_words, empty_lines)
        | "count" >> beam.combiners.Count.PerElement()
    )


def count_files(pattern, output, order, options=None, **arguments):
    """Runs the pipeline over files and writes parts that `read_counts` reads.

    Args:
        pattern: str, what `beam.io.ReadFromText` takes.
        output: str, beginning of the names of the parts.
        order: int.
        options: Beam's `PipelineOptions`. Default: the runner on this machine.
        arguments: `vocabulary`, `special_words`, `empty_lines`.
    """
    import apache_beam as beam

    with beam.Pipeline(options=options) as pipeline:
        lines = pipeline | beam.io.ReadFromText(pattern, coder=beam.coders.BytesCoder())
        (
            ngram_counts(lines, order, **arguments)
            | "lines" >> beam.MapTuple(lambda gram, count: b" ".join(gram) + b"\t%d" % count)
            | beam.io.WriteToText(output, coder=beam.coders.BytesCoder())
        )


def read_counts(paths, order, vocabulary=None):
    """`NGramCounts` from the parts that `count_files` wrote.

    Args:
        paths: list of paths.
        order: int, as given there.
        vocabulary: list of words that fixes their ids, as given there.

    Raises:
        ValueError: a line that is no n-gram with a count; names the file and the line. A gzip file
            that is broken or cut short.
    """
    return NGramCounts.from_items(_items(paths, order), order, vocabulary)


def _items(paths, order):
    for path in paths:
        with unpacked(path) as (file, _):
            for number, line in enumerate(file, 1):
                words, _, count = line.rstrip(b"\n").rpartition(b"\t")
                gram = tuple(words.split(b" "))
                if len(gram) != order or b"" in gram or not count.isdigit():
                    raise ValueError(
                        f"{path} line {number} must hold {order} words, a tab and a count. "
                        f"Received: {to_text(line[:80])!r}"
                    )
                yield gram, int(count)
