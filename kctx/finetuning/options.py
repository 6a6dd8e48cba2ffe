"""The options that every recipe of fine-tuning has."""

import dataclasses
from pathlib import Path
from typing import Literal


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Options of fine-tuning. A recipe adds its own, and may change defaults."""

    encoder: Path
    """preset folder, Hugging Face folder or TF1 checkpoint to start from"""
    train: Path
    """labelled file"""
    dev: Path | None = None
    """labelled file to choose the best epoch on; default: a tenth of the training file"""
    encoding: str = "utf-8"
    """encoding of the files"""
    output: Path = Path("runs/finetuned")
    """folder of the run; checkpoints/ in it is for --resume alone"""
    random_weights: bool = False
    """start from random weights instead of the encoder's, to see what pretraining gains"""
    sequence_length: int = 128
    """longest input in tokens"""
    batch_size: int = 32
    """examples of a step"""
    epochs: int = 3
    """passes over the training file"""
    learning_rate: float = 5e-5
    """peak; 1e-4 to 3e-4 suit the small sizes"""
    head_rate: float = 1.0
    """rate of the head, as a multiple of the peak"""
    layer_decay: float = 1.0
    """rate of each layer as a share of that of the one above; 0.8 to 0.95 are usual"""
    unfreeze_every: float | None = None
    """train the head alone first, and one more layer from the top after so many epochs each;
    default: all from the start"""
    patience: int | None = None
    """epochs without a better result after which the run ends; default: it does not"""
    average: Literal["none", "ema", "swa"] = "none"
    """what is evaluated and saved; ema: the exponential moving average of the weights; swa: their
    mean at about ten points of the second half of the run"""
    warmup: float = 0.1
    """share of the steps in which the rate rises"""
    weight_decay: float = 0.01
    """of AdamW, a share of the rate; biases and norms are left out"""
    bias_correction: bool = True
    """of Adam's moments; the original has none, which makes fine-tuning on few rows unstable"""
    dropout: float = 0.1
    """on what the head looks at"""
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """mixed_bfloat16 is the faster on most devices, mixed_float16 for older GPUs"""
    seed: int = 0
    """fixes everything on one backend"""
    seeds: int = 1
    """so many runs with seeds from `seed` on, in subfolders, and the means of their results"""
    resume: bool = False
    """go on with a broken run"""
