import keras
import numpy as np
import pytest

from kctx.training import AdamW, LossScale, WarmupLinearDecay


def as_numpy(variables):
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


def small_model():
    inputs = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(11, 4)(inputs)
    x = keras.layers.LayerNormalization(name="norm", dtype="float32")(x)
    x = keras.layers.Dropout(0.1, seed=1)(x)
    x = keras.layers.Flatten()(x)
    return keras.Model(inputs, keras.layers.Dense(3, dtype="float32")(x))


def small_data():
    random = np.random.default_rng(0)
    x = random.integers(0, 5, (40, 6)).astype("int32")  # rows 5 to 10 get no gradient
    return x, random.integers(0, 3, 40)


def trained_weights(optimizer, jit_compile="auto", epochs=2, scale=1.0):
    keras.utils.set_random_seed(3)
    model = small_model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, lambda y, p: scale * loss(y, p), jit_compile=jit_compile)
    model.fit(*small_data(), batch_size=8, epochs=epochs, shuffle=False, verbose=0)
    return as_numpy(model.weights)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    "correction, decay, expected",
    [(False, 0.01, 0.4968337220), (False, 0.0, 0.4968387220), (True, 0.01, 0.4989950100)],
)
def test_first_step_of_the_original(fused, correction, decay, expected):
    variable = keras.Variable([0.5], name="kernel")
    optimizer = AdamW(1e-3, weight_decay=decay, bias_correction=correction, fused=fused)
    optimizer.apply([keras.ops.convert_to_tensor([0.1])], [variable])
    np.testing.assert_allclose(as_numpy([variable]), [[expected]], rtol=0, atol=4e-8)


@pytest.mark.parametrize("fused", [True, False])
def test_norms_and_biases_are_not_decayed_and_clipping_is_global(fused):
    layers = [keras.layers.Dense(1, name="dense"), keras.layers.LayerNormalization(name="my_norm")]
    for layer in layers:
        layer.build((None, 1))
    variables = [variable for layer in layers for variable in layer.trainable_variables]
    before = as_numpy(variables)
    optimizer = AdamW(0.1, weight_decay=0.5, fused=fused)
    zero = [keras.ops.zeros(variable.shape) for variable in variables]
    optimizer.apply(zero, variables)
    after = as_numpy(variables)
    np.testing.assert_allclose(after[0], before[0] * (1 - 0.1 * 0.5), rtol=1e-6)  # kernel
    for i in (1, 2, 3):  # bias, gamma, beta
        np.testing.assert_array_equal(after[i], before[i])
    # gradients 3, 0, 4, 0 of norm 5 become 0.6, 0, 0.8, 0: first moments 0.06 and 0.08
    grads = [keras.ops.ones(v.shape) * g for v, g in zip(variables, (3.0, 0, 4.0, 0), strict=True)]
    optimizer.apply(grads, variables)
    momentums = [float(as_numpy([optimizer.moments_of(v)[0]])[0].sum()) for v in variables]
    np.testing.assert_allclose(momentums, [0.06, 0, 0.08, 0], rtol=1e-6)


@pytest.mark.parametrize(
    "correction, scale, jit_compile",  # scale 1: without, 100: with clipping
    [(False, 1.0, False), (True, 100.0, False), (False, 100.0, True)],
)
def test_fused_equals_plain(correction, scale, jit_compile):
    if jit_compile and keras.config.backend() == "torch":
        pytest.skip("torch runs without compilation")
    if keras.config.backend() == "jax":
        jit_compile = True
    make = lambda fused: AdamW(  # noqa: E731
        WarmupLinearDecay(0.01, 3, 20), bias_correction=correction, fused=fused
    )
    fused = trained_weights(make(True), jit_compile, scale=scale)
    plain = trained_weights(make(False), jit_compile, scale=scale)
    for a, b in zip(fused, plain, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_rows_without_gradient_decay_and_keep_their_moments_moving():
    keras.utils.set_random_seed(3)
    before = as_numpy(small_model().weights)[0]
    after = trained_weights(AdamW(0.01, weight_decay=0.1), epochs=1)[0]
    np.testing.assert_allclose(after[5:], before[5:] * (1 - 0.001) ** 5, rtol=1e-5)
    assert (np.abs(after[:5] - before[:5]) > 1e-3).any()


def test_sparse_gradients_equal_dense():
    if keras.config.backend() != "tensorflow":
        pytest.skip("only TensorFlow has sparse gradients")
    import tensorflow as tf

    sparse = tf.IndexedSlices(tf.constant([[1.0], [2.0], [0.5]]), tf.constant([2, 0, 2]), (4, 1))
    results = []
    for fused in (True, False):
        for grad in (sparse, tf.constant([[2.0], [0.0], [1.5], [0.0]])):
            variable = keras.Variable([[1.0], [2.0], [3.0], [4.0]], name="embeddings")
            optimizer = AdamW(0.1, fused=fused)
            for _ in range(3):
                optimizer.apply([grad], [variable])
            results.append(as_numpy([variable])[0])
    for result in results[1:]:
        # The kernel forms 1 - beta_2 in float32: 1.3e-5 off, which the root halves.
        np.testing.assert_allclose(result, results[0], rtol=0, atol=2e-5)


def test_gradient_accumulation_equals_one_large_batch():
    keras.utils.set_random_seed(3)
    parts = [np.float32([[0.2, -0.1]]), np.float32([[0.4, 0.3]])]
    one, two = (keras.Variable([[1.0, 2.0]], name="kernel") for _ in range(2))
    accumulating = AdamW(0.1, gradient_accumulation_steps=2)
    for part in parts:
        accumulating.apply([keras.ops.convert_to_tensor(part)], [one])
    AdamW(0.1).apply([keras.ops.convert_to_tensor((parts[0] + parts[1]) / 2)], [two])
    np.testing.assert_allclose(*as_numpy([one, two]), rtol=1e-6)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "bfloat16"])
def test_reduced_precision_trains(policy):
    keras.config.set_dtype_policy(policy)
    x, y = small_data()
    model = small_model()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = LossScale(AdamW(0.01)) if policy == "mixed_float16" else AdamW(0.01)
    model.compile(optimizer, loss, auto_scale_loss=True)
    assert model.optimizer is optimizer
    first, *_, last = model.fit(x, y, batch_size=8, epochs=6, verbose=0).history["loss"]
    assert np.isfinite(last) and last < first
    inner = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    assert {v.dtype for pair in map(inner.moments_of, model.trainable_variables) for v in pair} == {
        "float32"
    }


def test_weights_and_config_round_trip(tmp_path):
    model = small_model()
    model.compile(AdamW(WarmupLinearDecay(0.01, 3, 20), clip_norm=None, exclude=["x"]), "mse")
    model.fit(small_data()[0], np.zeros((40, 3)), verbose=0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.optimizer.get_config() == model.optimizer.get_config()
    assert len(model.optimizer.variables) == 1 + 2 * len(model.trainable_variables)
    for a, b in zip(again.optimizer.variables, model.optimizer.variables, strict=True):
        np.testing.assert_array_equal(*as_numpy([a, b]))


@pytest.mark.parametrize(
    "argument", [{"weight_decay": -1}, {"beta_1": 1.0}, {"epsilon": 0}, {"clip_norm": 0}]
)
def test_bad_arguments(argument):
    name, value = next(iter(argument.items()))
    with pytest.raises(ValueError, match=f"`{name}` is out of range. Received: {name}={value}"):
        AdamW(1e-3, **argument)


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -1, True])
def test_bad_rates(rate):
    with pytest.raises(ValueError, match="`learning_rate` is out of range. Received"):
        AdamW(rate)
