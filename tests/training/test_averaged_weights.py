"""Averages of the weights: their values, swapping in and back, resuming."""

import keras
import numpy as np
import pytest
from toy_encoder import Recorder, Stream, compiled, make_model, numpy_of

from kctx.training import (
    AdamW,
    Checkpoints,
    ExponentialMovingAverage,
    KeepBest,
    StochasticWeightAveraging,
    fit_steps,
)


def run(average, steps, every=2, callbacks=lambda model: (), **options):
    model = compiled(make_model(), AdamW(0.01))
    recorder = Recorder(lambda: numpy_of(model.trainable_variables))
    stream = Stream()
    if "checkpoints" in options:
        options["checkpoints"].stream = stream
    callbacks = [average, recorder, *callbacks(model)]
    fit_steps(model, stream.batches, steps, every, callbacks=callbacks, verbose=0, **options)
    return model, recorder.rows


def averages(average, model):
    with average.swapped():
        return numpy_of(model.trainable_variables)


def check(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)


def test_exponential_moving_average():
    average = ExponentialMovingAverage(0.9, warmup=False)
    model, rows = run(average, 5)
    expected = rows[1]
    for row in rows[2:]:
        expected = [0.9 * a + 0.1 * w for a, w in zip(expected, row, strict=True)]
    check(averages(average, model), expected)
    assert average.updates == 5


def test_warmup_and_every():
    average = ExponentialMovingAverage(0.2, every=2)
    model, rows = run(average, 7)
    # updates 0, 1 and 2 after steps 2, 4 and 6: d = 0.1, 2 / 11, min(0.2, 3 / 12)
    second = [2 / 11 * a + 9 / 11 * w for a, w in zip(rows[2], rows[4], strict=True)]
    check(
        averages(average, model),
        [0.2 * a + 0.8 * w for a, w in zip(second, rows[6], strict=True)],
    )


def test_stochastic_weight_averaging():
    average = StochasticWeightAveraging(start=3, every=2)
    model, rows = run(average, 8)
    expected = [
        np.mean([a, b, c], axis=0) for a, b, c in zip(rows[3], rows[5], rows[7], strict=True)
    ]
    check(averages(average, model), expected)
    assert average.updates == 3


def test_swapping_back_is_exact_even_after_an_error():
    average = ExponentialMovingAverage(0.9)
    model, rows = run(average, 3)
    own = numpy_of(model.trainable_variables)
    assert all(np.array_equal(a, b) for a, b in zip(own, rows[-1], strict=True))
    with pytest.raises(KeyError), average.swapped():
        changed = [
            not np.array_equal(a, b)
            for a, b in zip(numpy_of(model.trainable_variables), own, strict=True)
        ]
        assert all(changed)
        raise KeyError
    for a, b in zip(numpy_of(model.trainable_variables), own, strict=True):
        assert a.tobytes() == b.tobytes()


def test_training_goes_on_as_without_an_average(tmp_path):
    """Evaluating and saving under the average, in the middle of the run, changes no step."""
    average = ExponentialMovingAverage(0.9)
    saved = []

    def best(model):
        def evaluate():
            return {"first": float(len(saved)), "weight": float(numpy_of(model.weights)[0][1, 0])}

        def save():
            saved.append(numpy_of(model.trainable_variables))

        return [KeepBest(tmp_path / "b.json", average.averaged(evaluate), average.averaged(save))]

    model, rows = run(average, 6, callbacks=best)
    plain, _ = run(StochasticWeightAveraging(100, 1), 6)
    for a, b in zip(numpy_of(model.weights), numpy_of(plain.weights), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(saved) == 3
    check(saved[-1], averages(average, model))
    assert any(not np.allclose(a, b) for a, b in zip(saved[-1], rows[-1], strict=True))


@pytest.mark.parametrize(
    "make",
    [lambda: ExponentialMovingAverage(0.9), lambda: StochasticWeightAveraging(3, 2)],
)
def test_a_resumed_run_has_the_average_of_an_unbroken_one(tmp_path, make):
    whole, resumed = make(), make()
    model, _ = run(whole, 8)
    run(make(), 4, checkpoints=Checkpoints(tmp_path, every=2))
    again, _ = run(resumed, 8, checkpoints=Checkpoints(tmp_path, every=2), resume=True)
    assert resumed.updates == whole.updates
    for a, b in zip(averages(whole, model), averages(resumed, again), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_resume_must_find_the_same_average(tmp_path):
    model = compiled(make_model(), AdamW(0.01))
    fit_steps(model, Stream().batches, 2, 2, verbose=0, checkpoints=Checkpoints(tmp_path, 2))
    with pytest.raises(ValueError, match="callbacks/ExponentialMovingAverage-1/decay: saved 'noth"):
        run(
            ExponentialMovingAverage(),
            4,
            checkpoints=Checkpoints(tmp_path, every=2, stream=Stream()),
            resume=True,
        )


def test_before_the_first_update_the_weights_are_their_own():
    average = StochasticWeightAveraging(100, 1)
    model, _ = run(average, 2)
    check(averages(average, model), numpy_of(model.trainable_variables))


def test_bfloat16_weights_are_averaged_in_float32():
    keras.config.set_dtype_policy("bfloat16")
    average = ExponentialMovingAverage(0.9)
    model, _ = run(average, 2)
    assert {array.dtype.name for name, array in average.state().items() if name != "updates"} == {
        "float32"
    }
    with average.swapped():
        assert model.trainable_variables[0].dtype == "bfloat16"


def test_errors():
    with pytest.raises(ValueError, match=r"`decay` must be in \[0, 1\). Received: decay=1"):
        ExponentialMovingAverage(1)
    with pytest.raises(ValueError, match="`every` must be an integer of at least 1"):
        StochasticWeightAveraging(1, 0)
    average = ExponentialMovingAverage()
    average.restore({"updates": 1, "0": np.zeros(1, "float32")})
    with pytest.raises(ValueError, match="1 averages, 9 weights"):
        average.set_model(make_model())
