"""kctx: the lineage of word representations in Keras 3.

Raw text to ids (`tokenizers`, `preprocessors`), to batches (`data`), to a trained encoder
(`models`, `objectives`, `training`), to an answer (`heads`, `presets`), to a server (`export`);
published checkpoints in and out (`convert`).
"""

__version__ = "0.1.0"

from kctx import (
    convert,
    data,
    evaluation,
    export,
    heads,
    layers,
    models,
    objectives,
    preprocessors,
    presets,
    tokenizers,
    training,
)

__all__ = [
    "convert",
    "data",
    "evaluation",
    "export",
    "heads",
    "layers",
    "models",
    "objectives",
    "preprocessors",
    "presets",
    "tokenizers",
    "training",
]
