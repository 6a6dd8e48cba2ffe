"""kctx embed"""

import dataclasses
import io
from pathlib import Path
from typing import Literal

import tyro

from kctx_cli.requests import check_output, format_of, opened, read_requests, written


@dataclasses.dataclass(frozen=True)
class Embed:
    """Makes a vector for each text in a file, or for each word of it.

        kctx embed PRESET texts.txt --output vectors.npy
        kctx embed PRESET reviews.csv --columns review --normalize > vectors.jsonl
        kctx embed PRESET texts.txt --words --layers last4_mean > words.jsonl

    An output that ends in .npy is one float32 array (texts, dimensions); any other, and stdout, are
    JSON lines, {"embedding": [...]}, or {"words": [...], "vectors": [[...]]}. Files may be of any
    size.
    """

    preset: tyro.conf.Positional[Path]
    """preset folder, or a folder in Hugging Face's format"""
    input: tyro.conf.Positional[str] = "-"
    """file of texts, - for stdin: txt (one a line), tsv, csv or jsonl"""
    output: str = "-"
    """file of vectors, - for stdout; it appears when it is whole"""
    format: Literal["auto", "txt", "tsv", "csv", "jsonl"] = "auto"
    """format of the input; auto: by its ending, txt for stdin"""
    columns: tuple[str, ...] = ()
    """name or number (from 0) of the column, or key, that holds the text; default: text, or
    the first column where the first row of TSV or CSV does not name it"""
    pooling: Literal["mean", "cls", "max", "pooled", "last4_mean", "last4_concat", "first"] = "mean"
    """how the vectors of a text's tokens become one; with --words those of a word's pieces, by
    their mean or the first"""
    normalize: bool = False
    """give each vector length 1, so that products are cosines"""
    words: bool = False
    """a vector for each word in its context instead"""
    layers: Literal["last", "last4_mean"] | None = None
    """with --words: the last layer (default), or the mean of the last four"""
    split: Literal["words", "characters"] | None = None
    """with --words: what is a word; default: words"""
    batch_size: int = 32
    """texts that the encoder sees at a time"""
    dtype: str | None = None
    """dtype policy, for instance mixed_bfloat16; default: as trained"""
    progress: bool = True
    """show how many were embedded, on a terminal"""

    def run(self):
        from kctx.presets.progress import tracked
        from kctx_cli.loading import load_text_model

        self.check()
        check_output(self.input, self.output)
        as_array = self.output.lower().endswith(".npy")
        if as_array and self.words:
            raise ValueError("--words needs JSON lines: texts differ in their numbers of words.")
        text_model = load_text_model(self.preset, self.dtype)
        shown = None if self.progress else False
        with opened(self.input) as file, tracked(shown, None, "embeddings") as advance:
            if self.words:
                found = text_model.embed_words(
                    self.texts(file),
                    self.pooling,
                    self.layers or "last",
                    self.split or "words",
                    self.batch_size,
                    self.normalize,
                )
                found = ({"words": words, "vectors": x.tolist()} for words, x in found)
            else:
                found = text_model.embed_stream(
                    self.texts(file), self.pooling, self.batch_size, self.normalize
                )
            if as_array:
                write_array(self.output, found, advance)
                return
            with written(self.output) as write:
                for item in found:
                    write(item if self.words else {"embedding": item.tolist()})
                    advance(1)

    def check(self):
        """Raises a `ValueError` where an option would be without effect."""
        if self.words and self.pooling not in ("mean", "first"):
            raise ValueError(f"--words takes --pooling mean or first. Received: {self.pooling}")
        if not self.words and (self.layers or self.split or self.pooling == "first"):
            raise ValueError(
                "--layers, --split and --pooling first are for --words. Received: "
                f"layers={self.layers}, split={self.split}, pooling={self.pooling}"
            )

    def texts(self, file):
        """The texts in a file, one by one; lists of words, where it holds these."""
        name = "stdin" if self.input == "-" else self.input
        format = format_of(self.input, self.format)
        parts = (
            ("text", "words")
            if self.words and format == "jsonl" and not self.columns
            else ("text",)
        )
        for request, _ in read_requests(file, name, format, parts[:1], parts[1:], self.columns):
            if len(request) > 1:
                raise ValueError(f"{name}: one of text and words is embedded. Received: {request}")
            yield next(iter(request.values()))


def write_array(path, vectors, advance):
    """Writes float32 rows as a .npy file, one by one; it appears when it is whole.

    Args:
        path: str.
        vectors: iterable of arrays (D,).
        advance: function, called with 1 for each.
    """
    import numpy as np

    from kctx.files import whole_file

    def header(shape):
        made = io.BytesIO()
        facts = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(made, facts)
        return made.getvalue()

    # As wide as the widest, which is padded by spaces before its end.
    room = len(header((1 << 62, 1 << 30)))
    count, width = 0, 0
    with whole_file(path) as file:
        file.write(b" " * room)
        for vector in vectors:
            count, width = count + 1, len(vector)
            file.write(np.asarray(vector, "<f4").tobytes())
            advance(1)
        file.seek(0)
        made = header((count, width))
        length = (room - 12).to_bytes(4, "little")
        file.write(made[:8] + length + made[12:-1].ljust(room - 13) + b"\n")
