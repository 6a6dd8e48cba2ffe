import dataclasses

import keras
import numpy as np
import pytest

from kctx.training import setup
from kctx.training.setup import choose_jit


def test_sets_seed_and_policy_and_describes_itself():
    chosen = setup(seed=7, dtype="mixed_bfloat16")
    first = keras.ops.convert_to_numpy(keras.random.normal((3,))), np.random.rand(3)
    assert keras.config.dtype_policy().name == "mixed_bfloat16"
    setup(seed=7)
    second = keras.ops.convert_to_numpy(keras.random.normal((3,))), np.random.rand(3)
    np.testing.assert_array_equal(first, second)
    assert keras.config.dtype_policy().name == "float32"
    assert (chosen.backend, chosen.dtype, chosen.device) == (
        keras.config.backend(),
        "mixed_bfloat16",
        "cpu",
    )
    assert chosen.jit_compile == (chosen.backend == "jax")
    line = chosen.describe()
    assert line.startswith(f"{chosen.backend} on cpu, mixed_bfloat16, seed 7, compilation o")
    assert "\n" not in line
    with pytest.raises(dataclasses.FrozenInstanceError):
        chosen.dtype = "float32"


def test_asked_for_compilation_is_kept():
    assert setup(jit_compile=True).jit_compile is True
    assert setup(jit_compile=False).jit_compile is False


@pytest.mark.parametrize(
    "backend, device, expected",
    [
        ("tensorflow", "cpu", False),
        ("tensorflow", "gpu", True),
        ("tensorflow", "tpu", True),
        ("jax", "cpu", True),
        ("jax", "gpu", True),
        ("torch", "cpu", False),
        ("torch", "gpu", False),
    ],
)
def test_choice_by_device(backend, device, expected):
    jit_compile, reason = choose_jit(backend, device)
    assert jit_compile is expected and reason


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seed": -1}, r"`seed` must be .* Received: seed=-1"),
        ({"seed": "a"}, r"`seed` must be .* Received: seed='a'"),
        ({"dtype": "mixed_float17"}, r"`dtype` must .* Received: dtype='mixed_float17'"),
        ({"dtype": "int32"}, r"`dtype` must be a floating type. Received: dtype='int32'"),
        ({"jit_compile": "on"}, r"`jit_compile` must .* Received: jit_compile='on'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        setup(**arguments)
