"""Published checkpoints to and from our models.

One file per format (`safetensors_file`, `torch_file`, `tensorflow_checkpoint`), one per family
(`bert`, with its table of names), a row of `families.FAMILIES` each, and one report. Word vectors:
`load_vectors`, `save_vectors`, and `FastTextFile` for all that a fastText file holds.
"""

from kctx.convert.fasttext_file import FastTextArguments, FastTextFile
from kctx.convert.fasttext_model import from_fasttext_file, to_fasttext_file
from kctx.convert.glove_binary import load_glove_parameters, save_glove_parameters
from kctx.convert.load import load_encoder, load_model
from kctx.convert.load_text_model import load_preset
from kctx.convert.load_vectors import FORMATS as VECTOR_FORMATS
from kctx.convert.load_vectors import load_vectors
from kctx.convert.report import Report, Tensor
from kctx.convert.save import save_huggingface
from kctx.convert.save_vectors import save_vectors
from kctx.convert.vectors_report import VectorsReport

__all__ = [
    "VECTOR_FORMATS",
    "FastTextArguments",
    "FastTextFile",
    "Report",
    "Tensor",
    "VectorsReport",
    "from_fasttext_file",
    "load_encoder",
    "load_glove_parameters",
    "load_model",
    "load_preset",
    "load_vectors",
    "save_glove_parameters",
    "save_huggingface",
    "save_vectors",
    "to_fasttext_file",
]
