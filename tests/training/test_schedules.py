import keras
import numpy as np
import pytest

from kctx.training import WarmupLinearDecay


@pytest.mark.parametrize(
    "step, rate",
    [
        (0, 0),
        (1, 1e-8),
        (9999, 9.999e-5),
        (10_000, 9.9e-5),
        (500_000, 5e-5),
        (999_999, 1e-10),
        (1_000_000, 0),
        (1_000_001, 0),
    ],
)
def test_rates_of_the_original(step, rate):
    schedule = WarmupLinearDecay(1e-4, 10_000, 1_000_000)
    got = schedule(keras.ops.convert_to_tensor(step, dtype="int32"))
    assert keras.backend.standardize_dtype(got.dtype) == "float32"
    np.testing.assert_allclose(float(got), rate, rtol=3e-7)


def test_no_warmup_starts_at_the_peak():
    schedule = WarmupLinearDecay(2.0, 0, 4)
    assert [float(schedule(step)) for step in range(6)] == [2.0, 1.5, 1.0, 0.5, 0.0, 0.0]


def test_serialises():
    schedule = WarmupLinearDecay(1e-4, 10, 100)
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(schedule))
    assert again.get_config() == {"peak": 1e-4, "warmup_steps": 10, "total_steps": 100}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((0, 1, 2), "`peak` must be above 0. Received: peak=0"),
        ((float("inf"), 1, 2), "`peak` must be above 0. Received: peak=inf"),
        ((1, -1, 2), "`warmup_steps` must be at least 0. Received: warmup_steps=-1"),
        ((1, 2, 2), "`total_steps` must be above 2. Received: total_steps=2"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        WarmupLinearDecay(*arguments)


@pytest.mark.once
@pytest.mark.parametrize(
    "arguments",
    [("x", 0, 1), (1, 0.5, 2), (1, "x", 2), (1, 0, float("nan")), (1, 0, float("inf"))],
)
def test_arguments_that_are_no_numbers(arguments):
    with pytest.raises(ValueError, match=r"`(peak|warmup_steps|total_steps)` must be"):
        WarmupLinearDecay(*arguments)
