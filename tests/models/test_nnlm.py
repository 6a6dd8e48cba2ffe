"""The neural probabilistic language model: its equation, its counts, and that it learns."""

import keras
import numpy as np
import pytest

from kctx import data
from kctx.models import NNLM


def logits_of(model, contexts):
    return keras.ops.convert_to_numpy(model({"context_ids": np.asarray(contexts)}))


def by_hand(model, contexts):
    """b + W x + U tanh(d + H x) with NumPy."""
    names = {
        "/".join(weight.path.split("/")[-2:]): value
        for weight, value in zip(model.weights, model.get_weights(), strict=True)
    }
    x = names["token_embedding/embeddings"][np.asarray(contexts)].reshape(len(contexts), -1)
    kernel, b = names["output/kernel"], names["output/bias"]
    y = b + np.zeros((len(contexts), len(b)))
    if model.direct_connections:
        y, kernel = y + x @ kernel[: x.shape[1]], kernel[x.shape[1] :]
    if model.hidden_dim:
        y = y + np.tanh(names["hidden/bias"] + x @ names["hidden/kernel"]) @ kernel
    return y


SHAPES = [(3, True), (3, False), (0, True)]


@pytest.mark.parametrize(("hidden", "direct"), SHAPES)
def test_equation(hidden, direct):
    model = NNLM(7, 2, 4, hidden, direct_connections=direct)
    generator = np.random.default_rng(0)
    model.set_weights([generator.normal(size=w.shape) for w in model.get_weights()])
    contexts = generator.integers(0, 7, (5, 2))
    np.testing.assert_allclose(logits_of(model, contexts), by_hand(model, contexts), atol=1e-5)
    # The order of the words counts.
    assert np.abs(logits_of(model, contexts) - logits_of(model, contexts[:, ::-1])).max() > 0.1


def test_tiny_case_with_numbers():
    """|V|, n, m, h = 2, 2, 1, 1: C = 1, -1; H = 2; d = 0.5; W = 3, 0; U = 0, 4; b = 0, 1."""
    model = NNLM(2, 1, 1, 1)
    table = np.array([[1.0], [-1.0]])
    kernel = np.array([[3.0, 0.0], [0.0, 4.0]])
    values = {"embeddings": table, "hidden": [[2.0]], "d": [0.5], "output": kernel, "b": [0.0, 1.0]}
    model.set_weights([np.asarray(v, "float32") for v in values.values()])
    expected = [[3.0, 1 + 4 * np.tanh(2.5)], [-3.0, 1 + 4 * np.tanh(-1.5)]]
    np.testing.assert_allclose(logits_of(model, [[0], [1]]), expected, atol=1e-5)
    logs = model.log_probabilities([[0], [1]], [1, 0])
    expected = np.array(expected)
    wanted = expected[[0, 1], [1, 0]] - np.log(np.exp(expected).sum(axis=1))
    np.testing.assert_allclose(logs, wanted, atol=1e-5)


@pytest.mark.once
@pytest.mark.parametrize(
    ("size", "parameters"),
    [
        ("mlp1", 5_762_483),
        ("mlp9", 2_158_273),
        ("ap_mlp10", 11_904_264),
        ("ap_no_direct", 2_922_264),
    ],
)
def test_published_counts(size, parameters):
    assert NNLM.from_size(size).count_params() == parameters


@pytest.mark.once
@pytest.mark.parametrize("size", sorted(NNLM.SIZES))
def test_count_formula(size):
    """|V|(1 + n m + h) + h (1 + (n - 1) m), without direct connections less |V| (n - 1) m."""
    model = NNLM.from_size(size, vocabulary_size=11)
    n, m, h = model.context_length + 1, model.embedding_dim, model.hidden_dim
    wanted = 11 * (1 + n * m + h) + h * (1 + (n - 1) * m)
    if not model.direct_connections:
        wanted -= 11 * (n - 1) * m
    assert model.count_params() == wanted


def test_probabilities_sum_to_one_and_are_those_of_the_logits():
    model = NNLM(6, 2, 3, 4)
    contexts = np.array([[1, 2]] * 6)
    logs = model.log_probabilities(contexts, np.arange(6), batch_size=4)
    assert logs.dtype == np.float64 and np.exp(logs).sum() == pytest.approx(1, abs=1e-6)
    logits = logits_of(model, contexts[:1])[0]
    np.testing.assert_allclose(logs, logits - np.log(np.exp(logits).sum()), atol=1e-5)


@pytest.mark.parametrize(("hidden", "direct"), SHAPES)
def test_it_learns(hidden, direct):
    """A text in which the word before the last decides."""
    ids = np.tile(np.array([1, 2, 3, 1, 4, 5], "int32"), 60)
    model = NNLM(6, 2, 8, 4 * hidden, direct_connections=direct)
    windows = data.WordWindows(ids, 2, batch_size=32)
    contexts, words = windows.at(windows.targets)
    before = model.log_probabilities(contexts, words).mean()
    model.compile(
        keras.optimizers.Adam(0.05), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    model.fit({"context_ids": contexts}, words, batch_size=32, epochs=12, verbose=0)
    after = model.log_probabilities(contexts, words).mean()
    assert before < -1.5 and after > -0.15


def test_bfloat16_keeps_float32_logits():
    keras.config.set_dtype_policy("mixed_bfloat16")
    model = NNLM(6, 2, 3, 4)
    assert (
        keras.backend.standardize_dtype(model({"context_ids": np.array([[1, 2]])}).dtype)
        == "float32"
    )
    assert (
        model.hidden.compute_dtype == "bfloat16" and model.output_layer.compute_dtype == "float32"
    )


def test_errors():
    with pytest.raises(
        ValueError, match="`direct_connections` must be True without a hidden layer"
    ):
        NNLM(5, 2, 3, 0, direct_connections=False)
    with pytest.raises(ValueError, match="`context_length` must be an integer of at least 1"):
        NNLM(5, 0, 3, 2)
    with pytest.raises(ValueError, match=r"`dropout` must lie in \[0, 1\)"):
        NNLM(5, 2, 3, 2, dropout=1.0)
    with pytest.raises(ValueError, match="`size` must be one of mlp1, .* Received: 'mlp11'"):
        NNLM.from_size("mlp11")
    with pytest.raises(Exception, match="must lie in"):
        NNLM(5, 2, 3, 2)({"context_ids": np.array([[1, 5]])})
