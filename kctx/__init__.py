"""kctx: the lineage of word representations in Keras 3.

Raw text to ids (`tokenizers`, `preprocessors`), to batches (`data`), to a trained encoder
(`models`, `objectives`, `training`), to an answer (`heads`, `presets`), to a server (`export`);
published checkpoints in and out (`convert`).
"""

import os

# TensorFlow's own log at import is a page of notices about the machine, among them errors that are
# none, which bury what a recipe says. Its real errors are raised in Python. Set to "0" to read it.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

# Threads of OpenMP that wait for each other in a loop stand in each other's way where a core has
# other work too: training was seen to take twice as long. Read when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

__version__ = "0.1.0"

from kctx import (
    convert,
    data,
    evaluation,
    export,
    heads,
    layers,
    models,
    ngrams,
    objectives,
    preprocessors,
    presets,
    tasks,
    tokenizers,
    training,
    vectors,
)
from kctx.vectors import Vectors

__all__ = [
    "Vectors",
    "convert",
    "data",
    "evaluation",
    "export",
    "heads",
    "layers",
    "models",
    "ngrams",
    "objectives",
    "preprocessors",
    "presets",
    "tasks",
    "tokenizers",
    "training",
    "vectors",
]
