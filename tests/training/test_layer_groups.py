"""Rates by depth and by name, proven by how far the weights move."""

import keras
import numpy as np
import pytest
from toy_encoder import batch, compiled, make_model, numpy_of

from kctx import heads, models
from kctx.training import (
    AdamW,
    LossScale,
    WarmupLinearDecay,
    layer_groups,
    layerwise_rates,
)

# m / sqrt(v) of the first step: 0.1 g / sqrt(0.001 g²)
FIRST = 0.1 / np.sqrt(0.001)


def moved(model, optimizer, **options):
    """Largest change of each trainable variable in one step."""
    before = numpy_of(model.trainable_variables)
    compiled(model, optimizer, **options).train_on_batch(*batch(0))
    return [
        np.abs(a - b).max()
        for a, b in zip(numpy_of(model.trainable_variables), before, strict=True)
    ]


def test_groups_of_an_encoder_with_a_head():
    encoder = models.BERT(30, 2, 8, 2, 16, max_sequence_length=8)
    model = heads.attach(encoder, heads.Classifier(3))
    groups = layer_groups(model)
    assert [group.name for group in groups] == ["embeddings", "block 0", "block 1", "head"]
    assert [len(group.variables) for group in groups] == [5, 16, 16, 4]
    assert [v.path for v in groups[3].variables][:2] == ["pooler/kernel", "pooler/bias"]
    assert sum(len(group.variables) for group in groups) == len(model.trainable_variables)
    static = heads.attach(models.StaticEncoder(20, 4), heads.Classifier(2))
    assert [group.name for group in layer_groups(static)] == ["embeddings", "head"]


def test_rates_by_depth_and_by_name():
    model = heads.attach(models.BERT(30, 2, 8, 2, 16), heads.Classifier(3))
    paths = [v.path for v in model.trainable_variables]
    rates = layerwise_rates(model, 0.5, {"block_1.*/bias$": 3, "norm": 2})
    expected = []
    for path in paths:
        depth = 0 if "embedding" in path else int(path[6]) + 1 if path[:6] == "block_" else 3
        factor = 0.5 ** (3 - depth)
        if "block_1" in path and path.endswith("bias"):
            factor = 3.0
        elif "norm" in path:
            factor = 2.0
        expected.append(factor)
    assert rates == expected and {0.125, 0.25, 0.5, 1.0, 2.0, 3.0} == set(rates)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_weights_move_by_their_rates(policy, fused):
    """With a schedule, and in float16 with loss scaling: the first step is r * factor * 3.16."""
    keras.config.set_dtype_policy(policy)
    model = make_model()
    rates = layerwise_rates(model, 0.5, {"embedding_norm": 0.0})
    schedule = WarmupLinearDecay(1e-3, 0, 10)
    # epsilon must be small beside the smallest gradient
    options = {"weight_decay": 0.0, "clip_norm": None, "epsilon": 1e-12}
    optimizer = AdamW(schedule, **options, rates=rates, fused=fused)
    if policy == "mixed_float16":
        optimizer = LossScale(optimizer, initial_scale=128.0)
    changes = moved(model, optimizer)
    seen = set()
    for variable, factor, change in zip(model.trainable_variables, rates, changes, strict=True):
        np.testing.assert_allclose(change, 1e-3 * factor * FIRST, rtol=1e-3, err_msg=variable.path)
        seen.add(factor)
    assert seen == {0.0, 0.125, 0.25, 0.5, 1.0}


@pytest.mark.parametrize("fused", [True, False])
def test_decay_of_weights_follows_the_rates(fused):
    variables = [keras.Variable([2.0], name=name) for name in ("a", "b", "c")]
    optimizer = AdamW(0.1, weight_decay=0.5, rates=[1.0, 0.5, 0.0], fused=fused)
    optimizer.apply([keras.ops.zeros((1,))] * 3, variables)
    found = [float(value[0]) for value in numpy_of(variables)]
    np.testing.assert_allclose(found, [1.9, 1.95, 2.0], rtol=1e-6)
    assert [optimizer.factor_of(v) for v in variables] == [1.0, 0.5, 0.0]


def test_rates_by_pattern_alone():
    model = make_model()
    rates = {"classifier": 4, "^block_": 0, "block_1": 9}
    optimizer = AdamW(1e-3, weight_decay=0.0, clip_norm=None, epsilon=1e-12, rates=rates)
    changes = dict(
        zip([v.path for v in model.trainable_variables], moved(model, optimizer), strict=True)
    )
    np.testing.assert_allclose(changes["classifier/kernel"], 4e-3 * FIRST, rtol=1e-3)
    np.testing.assert_allclose(changes["token_embedding/embeddings"], 1e-3 * FIRST, rtol=1e-3)
    assert all(v == 0 for k, v in changes.items() if k.startswith("block"))


@pytest.mark.parametrize("scale", [1.0, 100.0])  # without and with clipping
def test_fused_equals_plain_with_rates(scale):
    results = []
    for fused in (True, False):
        model = make_model()
        rates = layerwise_rates(model, 0.7)
        optimizer = AdamW(0.01, bias_correction=True, rates=rates, fused=fused)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(
            optimizer,
            lambda y, p, loss=loss: scale * loss(y, p),
            jit_compile=keras.config.backend() == "jax",
        )
        for number in range(4):
            model.train_on_batch(*batch(number))
        results.append(numpy_of(model.weights))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_rates_are_saved_and_loaded(tmp_path):
    model = make_model()
    rates = layerwise_rates(model, 0.5)
    compiled(model, AdamW(1e-3, rates=rates)).train_on_batch(*batch(0))
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.optimizer.get_config() == model.optimizer.get_config()
    assert [again.optimizer.factor_of(v) for v in again.trainable_variables] == rates
    for one in (model, again):
        one.train_on_batch(*batch(1))
    for a, b in zip(numpy_of(model.weights), numpy_of(again.weights), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-7)
    patterns = AdamW(1e-3, rates={"a": 2, "b": 0.5})
    config = AdamW.from_config(patterns.get_config()).get_config()
    assert config["rates"] == {"a": 2.0, "b": 0.5} and list(config["rates"]) == ["a", "b"]


def test_errors():
    model = make_model()
    with pytest.raises(ValueError, match="`decay` must be above 0, at most 1. Received: decay=0"):
        layerwise_rates(model, 0)
    with pytest.raises(ValueError, match="`patterns` must be found .* Received: 'blok'"):
        layerwise_rates(model, 0.9, {"blok": 2})
    with pytest.raises(ValueError, match="`rates` must be finite and at least 0. Received"):
        AdamW(1e-3, rates=[1.0, -1.0])
    optimizer = AdamW(1e-3, rates=[1.0])
    with pytest.raises(ValueError, match="factor for each trainable variable. Received: 1 for 9"):
        optimizer.build(model.trainable_variables)
    one = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)], name="flat")
    with pytest.raises(ValueError, match="different depth.*Received: flat"):
        layer_groups(one)


@pytest.mark.once
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decay": "x"}, "`decay` must be above 0, at most 1. Received: decay='x'"),
        ({"patterns": {"(": 1.0}}, r"`patterns` must be a regular expression .* Received: .*'\('"),
        ({"patterns": {"dense": -1}}, "must be at least 0. Received: .*=-1"),
        ({"patterns": {"dense": float("nan")}}, "must be at least 0. Received: .*=nan"),
        ({"patterns": "dense"}, "`patterns` must be a dict. Received: patterns='dense'"),
    ],
)
def test_factors_and_patterns_that_are_none(options, message):
    with pytest.raises(ValueError, match=message):
        layerwise_rates(make_model(), **options)


@pytest.mark.once
def test_expressions_that_are_none():
    with pytest.raises(ValueError, match="`block` must have a group for the number"):
        layer_groups(make_model(), block="block")
    for options in ({"exclude": "("}, {"rates": {"(": 1.0}}):
        with pytest.raises(ValueError, match="must be a regular expression"):
            AdamW(0.1, **options)
