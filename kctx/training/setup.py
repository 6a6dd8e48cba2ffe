"""Seed, precision and compilation of a run, chosen once and said aloud."""

import dataclasses
import warnings

import keras

from kctx.training.loss_scale import LossScale
from kctx.training.memory import keep_freed_memory

JIT_CHOICES = ("auto", True, False)


@dataclasses.dataclass(frozen=True)
class Setup:
    """What `setup` chose.

    Attributes:
        backend: "tensorflow", "jax" or "torch".
        device: "cpu", "gpu" or "tpu".
        dtype: name of the global dtype policy.
        seed: int.
        jit_compile: bool, for `model.compile(jit_compile=...)`.
        reason: why `jit_compile` is what it is.
    """

    backend: str
    device: str
    dtype: str
    seed: int
    jit_compile: bool
    reason: str

    def scaled(self, optimizer):
        """`optimizer`, in `LossScale` if the policy computes in float16."""
        return LossScale(optimizer) if self.dtype == "mixed_float16" else optimizer

    def describe(self):
        """One line that says what was chosen and why."""
        compiled = "on" if self.jit_compile else "off"
        return (
            f"{self.backend} on {self.device}, {self.dtype}, seed {self.seed}, "
            f"compilation {compiled} ({self.reason})"
        )


def device_kind():
    """The kind of device that Keras computes on: "cpu", "gpu" or "tpu"."""
    if keras.config.backend() == "torch":
        import torch

        return "gpu" if torch.cuda.is_available() else "cpu"
    kinds = {name.split(":")[0].lower() for name in keras.distribution.list_devices()}
    if "tpu" in kinds:
        return "tpu"
    return "gpu" if kinds & {"gpu", "cuda", "rocm"} else "cpu"


def choose_jit(backend, device):
    """(jit_compile, reason) for `jit_compile="auto"`."""
    if backend == "jax":
        return True, "JAX always compiles its steps"
    if backend == "torch":
        return False, "torch runs eagerly; its compiler is slow to start and breaks on free shapes"
    if device == "cpu":
        return False, "on CPU the uncompiled kernels take any shape of a batch at once"
    return True, f"XLA fuses elementwise work on {device}"


def default_jit():
    """Whether to compile on this backend and device, what `setup` chooses by itself."""
    return choose_jit(keras.config.backend(), device_kind())[0]


def keep_tensorflow_off_accelerators():
    """Under JAX and torch TensorFlow only reads text: it must not take the device's memory."""
    import tensorflow as tf

    try:
        tf.config.set_visible_devices([], "GPU")
    except RuntimeError:
        warnings.warn(
            "TensorFlow was used before `setup` and may hold the memory of an accelerator. Call "
            "`setup` first.",
            stacklevel=3,
        )


def setup(seed=0, dtype="float32", jit_compile="auto"):
    """Sets seeds and the dtype policy of everything made from now on, and chooses compilation.

    On a CPU it also has the C library keep freed memory, see `keep_freed_memory`. Under JAX and
    torch it keeps TensorFlow, which reads the text, off accelerators.

    Args:
        seed: int in [0, 2**32), for Python, NumPy and the backend.
        dtype: name of a Keras dtype policy: "float32", "mixed_bfloat16", "mixed_float16", ...
        jit_compile: True, False, or "auto": off for TensorFlow on CPU and for torch, on otherwise.

    Returns:
        `Setup`, whose `jit_compile` is for `model.compile`.

    Raises:
        ValueError: if an argument is not as above; nothing is changed then.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
        raise ValueError(f"`seed` must be an integer in [0, 2**32). Received: seed={seed!r}")
    if not any(jit_compile is choice or jit_compile == choice for choice in JIT_CHOICES):
        raise ValueError(
            f'`jit_compile` must be True, False or "auto". Received: jit_compile={jit_compile!r}'
        )
    try:
        policy = keras.dtype_policies.get(dtype)
        floating = policy.compute_dtype in ("float16", "bfloat16", "float32", "float64")
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(
            "`dtype` must name a Keras dtype policy, such as "
            f'"float32" or "mixed_bfloat16". Received: dtype={dtype!r}'
        ) from error
    if not floating:
        raise ValueError(f"`dtype` must be a floating type. Received: dtype={dtype!r}")
    backend, device = keras.config.backend(), device_kind()
    chosen, reason = choose_jit(backend, device)
    if jit_compile != "auto":
        if backend == "jax" and not jit_compile:
            reason = "asked for; JAX runs uncompiled, for debugging only"
        else:
            reason = "asked for"
        chosen = bool(jit_compile)
    if device == "cpu":
        keep_freed_memory()
    if backend != "tensorflow":
        keep_tensorflow_off_accelerators()
    keras.utils.set_random_seed(seed)
    keras.config.set_dtype_policy(policy)
    return Setup(backend, device, policy.name, seed, chosen, reason)
