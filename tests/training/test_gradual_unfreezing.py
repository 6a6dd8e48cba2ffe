"""Frozen weights are bit-identical, moments are kept, nothing is compiled anew, resume is exact."""

import keras
import numpy as np
import pytest
from toy_encoder import Recorder, Stream, compiled, make_model, numpy_of

from kctx.training import (
    AdamW,
    Checkpoints,
    GradualUnfreezing,
    LossScale,
    WarmupLinearDecay,
    fit_steps,
    layer_groups,
)

DEPTHS = [0] * 3 + [1] * 2 + [2] * 2 + [3] * 2


def optimizer_of(policy="float32", **options):
    optimizer = AdamW(WarmupLinearDecay(0.01, 2, 40), weight_decay=0.1, **options)
    return LossScale(optimizer, initial_scale=64.0) if policy == "mixed_float16" else optimizer


def moments(model):
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return [numpy_of(inner.moments_of(variable)) for variable in model.trainable_variables]


def run(steps, every=2, policy="float32", unfreeze=True, fused=True, callbacks=(), **options):
    keras.config.set_dtype_policy(policy)
    model = compiled(make_model(), optimizer_of(policy, fused=fused))
    added = [GradualUnfreezing(model, every)] if unfreeze else []
    recorder = Recorder(lambda: (numpy_of(model.trainable_variables), moments(model)))
    stream = Stream()
    if "checkpoints" in options:
        options["checkpoints"].stream = stream
    fit_steps(
        model,
        stream.batches,
        steps,
        2,
        callbacks=[*added, recorder, *callbacks],
        verbose=0,
        **options,
    )
    return model, recorder.rows


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_frozen_weights_and_moments_are_bit_identical(policy, fused):
    model, rows = run(9, policy=policy, fused=fused)
    assert [v.path for v in model.trainable_variables][6] == "block_1/bias"
    for step in range(9):
        lowest = max(3 - step // 2, 0)  # one more group after every second step
        (before, moments_before), (after, moments_after) = rows[step], rows[step + 1]
        for place, depth in enumerate(DEPTHS):
            frozen = depth < lowest
            path = model.trainable_variables[place].path
            same = before[place].tobytes() == after[place].tobytes()
            if frozen:
                assert same, (step, path)
                for a, b in zip(moments_before[place], moments_after[place], strict=True):
                    assert a.tobytes() == b.tobytes() and not a.any(), (step, path)
            elif step > 0:  # at step 0 the rate is 0
                assert not same, (step, path)


def test_moments_of_layers_that_train_go_on():
    """At the step that adds a group, the head's moments move as if none had been added."""
    options = {"clip_norm": None}
    results = []
    for every in (3, 100):
        model = compiled(make_model(), optimizer_of(**options))
        unfreezing = GradualUnfreezing(model, every)
        fit_steps(model, Stream().batches, 4, 2, callbacks=[unfreezing], verbose=0)
        results.append(moments(model)[7:])
    for a, b in zip(*results, strict=True):
        for one, other in zip(a, b, strict=True):
            assert one.any()
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("fused", [True, False])
def test_switching_off_again_keeps_moments(fused):
    variables = [keras.Variable([1.0, -0.0, 2.0], name=name) for name in ("a", "b")]
    optimizer = AdamW(0.1, weight_decay=0.5, fused=fused)
    optimizer.make_freezable()
    optimizer.build(variables)
    gradient = [keras.ops.convert_to_tensor([0.3, -0.2, 0.5])] * 2
    optimizer.apply(gradient, variables)
    optimizer.set_active([True, False])
    before = [numpy_of([v, *optimizer.moments_of(v)]) for v in variables]
    # even what is not finite does no harm to a variable that is off, nor to the norm
    bad = keras.ops.convert_to_tensor([np.nan, np.inf, 1.0])
    optimizer.apply([gradient[0], bad], variables)
    after = [numpy_of([v, *optimizer.moments_of(v)]) for v in variables]
    for a, b in zip(before[1], after[1], strict=True):
        assert a.tobytes() == b.tobytes()
    for a, b in zip(before[0], after[0], strict=True):
        assert not np.array_equal(a, b) and np.isfinite(b).all()


@pytest.mark.parametrize("fused", [True, False])
def test_the_norm_counts_only_what_trains(fused):
    variables = [keras.Variable([1.0], name=name) for name in ("a", "b")]
    optimizer = AdamW(0.1, fused=fused)  # clips at 1
    optimizer.make_freezable()
    optimizer.build(variables)
    optimizer.set_active([True, False])
    optimizer.apply([keras.ops.convert_to_tensor([g]) for g in (0.5, 100.0)], variables)
    momentum = numpy_of([optimizer.moments_of(variables[0])[0]])[0]
    np.testing.assert_allclose(momentum, [0.05], rtol=1e-6)


def test_nothing_is_compiled_anew():
    traces = []
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def counted(y, p):
        traces.append(1)
        return loss(y, p)

    model = make_model()
    model.compile(AdamW(0.01), counted, jit_compile=keras.config.backend() == "jax")
    unfreezing = GradualUnfreezing(model, 2)
    counts = Recorder(lambda: len(traces))
    fit_steps(model, Stream().batches, 8, 2, callbacks=[unfreezing, counts], verbose=0)
    if keras.config.backend() == "torch":  # runs eagerly
        assert counts.rows[-1] - counts.rows[0] == 8
    else:
        assert counts.rows[-1] == counts.rows[1]


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_a_resumed_run_equals_an_unbroken_one(tmp_path, policy):
    whole, _ = run(9, policy=policy)
    run(4, policy=policy, checkpoints=Checkpoints(tmp_path, every=2))
    resumed, rows = run(9, policy=policy, checkpoints=Checkpoints(tmp_path, every=2), resume=True)
    assert len(rows) == 6
    for a, b in zip(numpy_of(whole.variables), numpy_of(resumed.variables), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(moments(whole), moments(resumed), strict=True):
        np.testing.assert_array_equal(a, b)


def test_another_plan_cannot_resume(tmp_path):
    run(2, checkpoints=Checkpoints(tmp_path, every=2))
    with pytest.raises(ValueError, match="callbacks/GradualUnfreezing-1/every: saved 2, now 3"):
        run(4, every=3, checkpoints=Checkpoints(tmp_path, every=2), resume=True)
    with pytest.raises(ValueError, match="freezable: saved True, now False"):
        run(4, unfreeze=False, checkpoints=Checkpoints(tmp_path, every=2), resume=True)


def test_logs_and_options():
    model = compiled(make_model(), AdamW(0.01))
    unfreezing = GradualUnfreezing(model, every=3, first=2, at_once=2)
    assert [unfreezing.trained_at(step) for step in (0, 2, 3, 50)] == [2, 2, 4, 4]
    history = fit_steps(model, Stream().batches, 6, 3, callbacks=[unfreezing], verbose=0)
    assert history.history["trained_groups"] == [2, 4]
    assert unfreezing.groups == layer_groups(model)


def test_saved_with_the_model(tmp_path):
    model, _ = run(3)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for a, b in zip(
        numpy_of(model.optimizer.variables), numpy_of(again.optimizer.variables), strict=True
    ):
        np.testing.assert_array_equal(a, b)


def test_errors():
    model = make_model()
    with pytest.raises(ValueError, match="`model` must be compiled first"):
        GradualUnfreezing(model, 2)
    with pytest.raises(ValueError, match="with `kctx.training.AdamW`. Received: SGD"):
        GradualUnfreezing(compiled(model, keras.optimizers.SGD(0.1)), 2)
    compiled(model, AdamW(0.1)).optimizer.build(model.trainable_variables)
    with pytest.raises(ValueError, match="must become freezable before it is built"):
        GradualUnfreezing(model, 2)
    with pytest.raises(ValueError, match="`every` must be an integer of at least 1"):
        GradualUnfreezing(model, 0)
