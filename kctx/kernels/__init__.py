"""Loops compiled by Numba for CPUs: a fast path of sparse models, if Numba is installed.

Every kernel has a twin in `kctx.layers` or `kctx.models` that needs Keras alone, and a test that
both agree. Under torch, whose tensors on a CPU share their memory with NumPy, models take the
kernels by themselves. `pip install "kctx[cpu]"` installs Numba, which needs no compiler.
"""

import importlib.util

import keras

# Objectives of `kctx.models.FastTextClassifier` that have a kernel: those that score all labels.
LABEL_OBJECTIVES = ("softmax", "one_vs_all")


def installed():
    """Whether Numba is installed."""
    return importlib.util.find_spec("numba") is not None


def usable():
    """Whether models can train by kernels here: torch on a CPU, with Numba installed."""
    if keras.config.backend() != "torch" or not installed():
        return False
    return str(keras.ops.zeros(()).device) == "cpu"
