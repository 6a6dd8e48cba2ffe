"""kctx convert"""

import dataclasses
from pathlib import Path
from typing import Literal

import tyro

from kctx_cli.requests import check_output


@dataclasses.dataclass(frozen=True)
class Convert:
    """Turns a published checkpoint or word vectors into a preset folder, or the other way round.

        kctx convert bert-base-uncased/ bert/
        kctx convert bert/ for-transformers/ --to huggingface
        kctx convert crawl-300d.vec vectors/ --lowercase True
        kctx convert crawl.bin crawl.vec --to vec

    A source is a folder in Hugging Face's format, a TensorFlow 1 checkpoint with its
    bert_config.json, a preset folder, or a file of word vectors of fastText, word2vec or GloVe.
    What was matched, missing or left aside is printed.
    """

    source: tyro.conf.Positional[Path]
    """what is read: a folder, a checkpoint's prefix, or a file of word vectors"""
    target: tyro.conf.Positional[Path]
    """what is written: a folder, or a file for word vectors"""
    to: Literal[
        "preset", "huggingface", "vec", "word2vec", "word2vec_text", "glove", "fasttext", "native"
    ] = "preset"
    """preset: a folder of ours; huggingface: a folder that transformers loads; the others: a file
    of word vectors"""
    lowercase: bool | None = None
    """whether text is lower-cased; default: as the source says, or for vectors no"""
    sequence_length: int | None = None
    """most tokens of a text; default: what the model has positions for, 512 for vectors"""
    weights_dtype: Literal["float32", "float16"] | None = None
    """with --to huggingface: dtype of the file; default: float32"""

    def run(self):
        from kctx import convert, presets

        if self.weights_dtype and self.to != "huggingface":
            raise ValueError(
                f"--weights-dtype is for --to huggingface. Received: {self.weights_dtype}"
            )
        check_output(self.source, self.target, "the target")
        if self.source.is_file():
            self.run_vectors(convert, presets)
            return
        if self.to not in ("preset", "huggingface"):
            raise ValueError(
                f"--to {self.to} is for files of word vectors. Received: {self.source}"
            )
        length = {} if self.sequence_length is None else {"sequence_length": self.sequence_length}
        text_model, report = convert.load_preset(self.source, lowercase=self.lowercase, **length)
        print(report)
        if self.to == "preset":
            text_model.save(self.target)
        else:
            convert.save_huggingface(
                text_model, self.target, weights_dtype=self.weights_dtype or "float32"
            )
        print(f"{text_model.describe()}\nWritten to {self.target}")

    def run_vectors(self, convert, presets):
        """A file of word vectors to a preset or to another file."""
        if self.to == "huggingface":
            raise ValueError(f"--to huggingface is for models. Received: {self.source}")
        if self.to != "preset" and not (self.lowercase is None and self.sequence_length is None):
            raise ValueError(
                "--lowercase and --sequence-length are for --to preset, where texts are read. "
                f"Received: --to {self.to}"
            )
        vectors, report = convert.load_vectors(self.source)
        print(report)
        if self.to == "preset":
            length = 512 if self.sequence_length is None else self.sequence_length
            presets.from_vectors(self.target, vectors, length, bool(self.lowercase))
        else:
            convert.save_vectors(vectors, self.target, format=self.to)
        print(f"Written to {self.target}")
