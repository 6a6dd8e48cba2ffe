"""Word vectors from any of the formats that they are published in."""

import os
import re
import struct
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from kctx.arguments import check_count
from kctx.convert import glove_file, text_vectors_file, word2vec_file
from kctx.convert.collected_words import is_invalid
from kctx.convert.fasttext_file import FastTextFile
from kctx.convert.fasttext_reading import LOSSES, MAGIC, MODELS
from kctx.convert.vectors_report import VectorsReport
from kctx.files import unpacked
from kctx.vectors import Vectors
from kctx.vectors.tables import DenseTable, check_storage, chunks

FORMATS = ("word2vec", "word2vec_text", "vec", "glove", "glove_binary", "fasttext", "native")
_LOOKED_AT = 2**18
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_CHECKED_FOR_NAN = 2**28  # bytes; a larger matrix is left on the disk


def load_vectors(
    path,
    format=None,
    first=None,
    only=None,
    storage=None,
    memory_map=True,
    vocabulary=None,
    progress=True,
):
    """Loads word vectors.

    Formats: "word2vec" (binary), "word2vec_text" (with a header; "vec" of fastText is the same),
    "glove" (text without a header), "glove_binary" (`vectors.bin`, with `vocabulary`), "fasttext"
    (`.bin` of any version, `.ftz`, unsupervised or not) and "native" (a folder of `Vectors.save`).
    Text and word2vec files may be gzipped.

    Words are kept to the byte: what is not UTF-8 stands in them as lone surrogates. Of a word that
    comes twice the first one is kept.

    Args:
        path: file, or folder of the native format.
        format: str, one of the above. Default: found out from the content.
        first: int, only the first so many words. Default: all.
        only: collection of str, only these words. Default: all.
        storage: "float32", "float16" or "int8": converted while reading. Default: float32, or as
            the native folder has it.
        memory_map: bool, whether the numbers of a native folder or a fastText file stay on the disk
            until they are used. The other formats must be read. Default True.
        vocabulary: path of GloVe's `vocab.txt`, for "glove_binary".
        progress: bool, whether to show a bar for large files. Default True.

    Returns:
        (`Vectors`, `VectorsReport`)

    Raises:
        ValueError: unknown format; a wrong header, a truncated file, a wrong row; the line or the
            byte offset is named. Sizes are checked against the file before memory is taken.
        FileNotFoundError: no such file.
    """
    if storage is not None:
        check_storage(storage)
    if first is not None:
        check_count("first", first)
    if only is not None and (isinstance(only, (str, bytes)) or not isinstance(only, Iterable)):
        raise ValueError(f"`only` must be a collection of words. Received: {only!r}")
    if format not in (None, *FORMATS):
        raise ValueError(f"`format` must be one of {FORMATS}. Received: {format!r}")
    if not os.path.exists(path):
        raise FileNotFoundError(f"No such file: {path}")
    format = detect_format(path) if format is None else format
    report = VectorsReport(str(path), format)
    limits = {"first": first, "only": only, "storage": storage or "float32"}
    if format == "native":
        vectors = _restricted(Vectors.load(path, memory_map), first, only, storage, path)
    elif format == "fasttext":
        file = FastTextFile.read(path, memory_map)
        vectors = _restricted(_of_fasttext(file, report), first, only, storage, path)
    elif format == "word2vec":
        vectors = word2vec_file.read(path, report, **limits, progress=progress)
    elif format == "glove_binary":
        if vocabulary is None:
            raise ValueError("`format` glove_binary needs `vocabulary`, the path of its vocab.txt.")
        vectors = glove_file.read(path, vocabulary, report, **limits)
    else:
        header = format != "glove"
        vectors = text_vectors_file.read(path, report, header, **limits, progress=progress)
    report.words, report.dim = len(vectors), vectors.dim
    return vectors, report


def detect_format(path):
    """The format of a file of word vectors, as named by `load_vectors`.

    Raises:
        ValueError: none of the known ones, or an empty or broken file; says what was found.
    """
    if Path(path).is_dir():
        return "native"
    with unpacked(path) as (file, _):
        data = file.read(_LOOKED_AT)
    if not data:
        raise ValueError(f"{path} is empty.")
    if len(data) >= 8 and struct.unpack_from("<i", data)[0] == MAGIC:
        return "fasttext"
    lines = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    lines[0] = text_vectors_file.without_mark(lines[0])
    whole = lines[:-1] if len(data) == _LOOKED_AT and len(lines) > 1 else lines
    sizes = word2vec_file.parse_header(lines[0])
    if sizes is not None and len(lines) > 1:
        return _with_header(data, whole, sizes)
    if _is_old_fasttext(data):
        return "fasttext"
    rows = [line for line in whole[:100] if line]
    dim = text_vectors_file.infer_dim(rows)
    agreed = sum(text_vectors_file.infer_dim([line]) == dim for line in rows)
    if dim and 2 * agreed >= len(rows):
        return "glove"
    raise ValueError(
        f"{path} is no known format of word vectors: it begins with {data[:24]!r}. Give `format` "
        f"if it is one of {FORMATS}."
    )


def _with_header(data, lines, sizes):
    """The format of a file whose first line holds two sizes, from its beginning."""
    rows, dim = sizes
    filled = [line for line in lines[1:] if line]
    like_text = [text_vectors_file.infer_dim([line]) == dim for line in filled[:100]]
    if len(data) < _LOOKED_AT:  # the whole file
        if len(filled) == rows and all(like_text):
            return "word2vec_text"
        if word2vec_file.fits(data, rows, dim):
            return "word2vec"
    if b"\0" not in data and not text_vectors_file.looks_like_header(lines):
        return "glove"
    if (like_text and like_text[0]) or not _BINARY.search(data):
        return "word2vec_text"
    return "word2vec"


def _is_old_fasttext(data):
    """Whether data begin like a fastText file from before the magic number."""
    if len(data) < 76:
        return False
    values = struct.unpack_from("<12i", data)
    sizes = struct.unpack_from("<3i", data, 56)
    return (
        0 < values[0] <= 100_000
        and 1 <= values[6] <= len(LOSSES)
        and 1 <= values[7] <= len(MODELS)
        and sizes[0] == sizes[1] + sizes[2]
    )


def _of_fasttext(file, report):
    """`Vectors` of a fastText file; an entry that comes twice is dropped."""
    table, words, counts = file.word_table(), file.words, file.counts
    index = {}
    for place, word in enumerate(words):
        index.setdefault(word, place)
    if len(index) < len(words):
        report.duplicates += [word for place, word in enumerate(words) if index[word] != place]
        kept = np.array(sorted(index.values()), np.int64)
        table = DenseTable(table.rows(kept))
        words, counts = [words[i] for i in kept], counts[kept]
    report.invalid_utf8 += [word for word in words if is_invalid(word)]
    subwords = file.subwords
    if isinstance(file.inputs, np.ndarray) and file.inputs.nbytes > _CHECKED_FOR_NAN:
        size = f"{file.inputs.nbytes / 1e9:.2f} GB"
        report.notes.append(f"The matrix of {size} was not checked for NaN and infinity.")
    elif isinstance(file.inputs, np.ndarray):
        for start, rows in chunks(DenseTable(file.inputs)):
            bad = start + np.flatnonzero(~np.isfinite(rows).all(axis=1))
            report.nan_rows += [file.words[i] for i in bad if i < len(file.words)]
            for bucket in bad[bad >= len(file.words)][:10]:
                report.notes.append(f"The row of n-gram {bucket - len(file.words)} is not finite.")
    kind = f"{file.arguments.model} model, loss {file.arguments.loss}, {len(file.labels)} labels"
    report.notes.append(f"{kind}{', quantised' if file.is_quantized else ''}")
    if not subwords.max_n:
        return Vectors(words, table, labels=file.labels, counts=counts)
    return Vectors(
        words, table, subwords, file.inputs, file.subword_rows, labels=file.labels, counts=counts
    )


def _restricted(vectors, first, only, storage, path):
    """Vectors that were there as a whole, limited as `load_vectors` was asked to."""
    if only is not None:
        vectors = vectors.only(only)
        if not len(vectors):
            raise ValueError(f"{path} holds none of the words that were asked for.")
    if first is not None and first < len(vectors):
        vectors = vectors.first(first)
    if storage is not None and storage != vectors.table.storage:
        vectors = vectors.stored_as(storage)
    return vectors
