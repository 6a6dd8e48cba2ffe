"""Where the work is done: one of the few places that must know the backend."""

import functools
import itertools
import platform

import keras


@functools.cache
def made_by_intel():
    """Whether the CPU says that it is one of Intel."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return any("GenuineIntel" in line for line in itertools.islice(file, 50))
    except OSError:  # another system than Linux
        return "Intel" in platform.processor()


def on_cpu(x):
    """Whether a value lies in a CPU's memory or, in a graph, will be computed on a CPU.

    Args:
        x: NumPy array, or tensor of the backend. Under torch's compiler the answer is False, since
            it rewrites the work as it likes.
    """
    backend = keras.config.backend()
    if backend == "torch":
        import torch

        if not torch.is_tensor(x):
            return True
        return x.device.type == "cpu" and not torch.compiler.is_compiling()
    if backend == "jax":
        import jax

        if isinstance(x, jax.core.Tracer):
            return jax.default_backend() == "cpu"
        return not isinstance(x, jax.Array) or all(d.platform == "cpu" for d in x.devices())
    import tensorflow as tf

    if not tf.is_tensor(x):
        return True
    if hasattr(x, "numpy"):
        return "CPU" in x.device
    return not tf.config.list_logical_devices("GPU") + tf.config.list_logical_devices("TPU")
