"""Published checkpoints to and from our models.

One file per format (`safetensors_file`, `torch_file`, `tensorflow_checkpoint`), one per family
(`bert`, with its table of names), a row of `families.FAMILIES` each, and one report.
"""

from kctx.convert.load import load_encoder, load_model
from kctx.convert.load_text_model import load_preset
from kctx.convert.report import Report, Tensor
from kctx.convert.save import save_huggingface

__all__ = ["Report", "Tensor", "load_encoder", "load_model", "load_preset", "save_huggingface"]
