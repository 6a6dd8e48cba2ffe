"""Word vectors in the formats that other tools read."""

import numpy as np

from kctx.arguments import check_count
from kctx.convert import text_vectors_file, word2vec_file
from kctx.convert.fasttext_file import FastTextArguments, FastTextFile
from kctx.vectors import Vectors
from kctx.vectors.subword_table import SubwordTable, sums_of_rows

FORMATS = ("word2vec", "word2vec_text", "vec", "glove", "fasttext", "native")


def save_vectors(vectors, path, format="word2vec", digits=None):
    """Writes word vectors so that `load_vectors`, and the format's own tool, read them back.

    Formats: "word2vec" (binary), "word2vec_text" (with a header), "vec" (the same as fastText
    writes it: 5 digits), "glove" (text without a header), "fasttext" (`.bin`, with the rows of the
    n-grams; its output matrix is zero, so that no training goes on from it) and "native" (a
    folder, `Vectors.save`). A text file whose name ends in ".gz" is gzipped.

    Args:
        vectors: `Vectors`.
        path: file, or folder for "native".
        format: str, one of the above. Default "word2vec".
        digits: int, significant digits in text formats. Default: 5 for "vec"; else 9, which bring
            back every float32.

    Raises:
        ValueError: unknown format, or a word that the format cannot hold, such as one with a space
            in word2vec's binary format; it is named, and nothing is written. Vectors of a
            supervised or pruned model as "fasttext"; no words at all in a format but "fasttext" and
            "native".
    """
    if not isinstance(vectors, Vectors):
        raise ValueError(f"`vectors` must be Vectors. Received: {type(vectors).__name__}")
    if digits is not None:
        check_count("digits", digits)
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {FORMATS}. Received: {format!r}")
    if format == "native":
        vectors.save(path)
    elif format == "word2vec":
        word2vec_file.write(vectors, path)
    elif format == "fasttext":
        to_fasttext(vectors).write(path)
    else:
        text_vectors_file.write(
            vectors,
            path,
            header=format != "glove",
            digits=digits or (5 if format == "vec" else 9),
            trailing_space=format == "vec",
        )


def to_fasttext(vectors):
    """A `FastTextFile` that gives the words of `vectors` these vectors.

    A word's own row is taken from fastText's matrix where the vectors hold it; else it is what is
    missing from its n-grams' rows to its vector. Counts that are not known are made up, falling,
    since fastText's readers expect them in this order.

    Raises:
        ValueError: vectors of a supervised or of a pruned model, of which too little is known.
    """
    if vectors.labels:
        raise ValueError(
            f"Vectors of a supervised model, of {len(vectors.labels)} labels, lack what scores the "
            "labels: fastText would read an unsupervised model. `FastTextFile.write` keeps all of "
            "such a model, and the format 'native' the vectors and labels."
        )
    buckets, subwords = 0, vectors.subwords
    if subwords is not None:
        rows, buckets = vectors.subword_places(), subwords.buckets
        if rows.places is not None:
            raise ValueError(
                "Vectors of a pruned model cannot be written as an unpruned fastText file. Write "
                "the `FastTextFile` itself, or the format 'native'."
            )
        if isinstance(vectors.table, SubwordTable):
            own = vectors.table.inputs.rows(slice(0, len(vectors)))
        else:
            ids, offsets = rows.of_words(vectors.words)
            sums = sums_of_rows(vectors.subword_table, ids, offsets)
            table = vectors.table.chunk(0, len(vectors))
            own = table * (np.diff(offsets) + 1)[:, None].astype(np.float32) - sums
        grams = vectors.subword_table.rows(slice(rows.num_words, rows.num_words + buckets))
        table = np.concatenate([own, grams])
    else:
        table = vectors.table.chunk(0, len(vectors))
    counts = vectors.counts
    if counts is None:
        counts = np.arange(len(vectors), 0, -1)
    arguments = FastTextArguments(
        dim=vectors.dim,
        min_count=1,
        buckets=buckets,
        min_n=0 if subwords is None else subwords.min_n,
        max_n=0 if subwords is None else subwords.max_n,
    )
    return FastTextFile(
        arguments,
        words=vectors.words,
        counts=np.asarray(counts, np.int64),
        inputs=np.ascontiguousarray(table, np.float32),
        outputs=np.zeros((len(vectors), vectors.dim), np.float32),
        num_tokens=int(np.sum(counts)),
    )
