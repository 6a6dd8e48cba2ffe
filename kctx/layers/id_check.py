"""One guard for ids and lengths that lie outside a table, on every backend.

Left alone, a lookup out of range raises under TensorFlow on a CPU, gives zeros on a GPU, and gives
NaN or another row's vector under JAX. This is one of the few places that must know the backend.
"""

import os

import keras
import numpy as np


def check_range(values, limit, message):
    """Raises unless all of `values` lie in [0, limit).

    Values that are at hand are checked at once; in a compiled graph the check becomes part of the
    graph. On by default on CPUs; on accelerators it costs a transfer each step, and the
    environment variable `KCTX_CHECK_IDS=1` asks for it (`0` turns it off everywhere).

    Args:
        values: int tensor of any shape, or int.
        limit: int.
        message: str, what is expected; the value received is added to it.

    Raises:
        ValueError, or from a compiled graph the backend's own error with the same message.
    """
    wanted = os.environ.get("KCTX_CHECK_IDS", "auto")
    if wanted == "0" or isinstance(values, keras.KerasTensor):
        return
    if wanted != "1" and not _on_cpu():
        return

    def check(lowest, highest):
        for value in (int(lowest), int(highest)):
            if not 0 <= value < limit:
                raise ValueError(f"{message} Received: {value}")

    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if tf.is_tensor(values) and not hasattr(values, "numpy"):
            inside = tf.reduce_all((values >= 0) & (values < limit))
            extremes = [tf.reduce_min(values), tf.reduce_max(values)]
            tf.debugging.Assert(inside, [f"{message} Received, lowest and highest:", *extremes])
            return
    elif backend == "jax":
        import jax

        if isinstance(values, jax.core.Tracer):
            if values.size:
                jax.debug.callback(check, values.min(), values.max())
            return
    elif backend == "torch":
        import torch

        if torch.is_tensor(values):
            if values.device.type == "meta" or torch.compiler.is_compiling():
                return
            values = values.cpu()
    values = np.asarray(values)
    if values.size:
        check(values.min(), values.max())


def _on_cpu():
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return jax.default_backend() == "cpu"
    if backend == "torch":
        import torch

        return not torch.cuda.is_available()
    import tensorflow as tf

    return not tf.config.list_logical_devices("GPU") + tf.config.list_logical_devices("TPU")
