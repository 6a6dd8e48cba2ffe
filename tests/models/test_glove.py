"""GloVe's step on every backend against the in-order reference, its errors, its vectors."""

import keras
import numpy as np
import pytest

from kctx.convert import load_glove_parameters, save_glove_parameters
from kctx.data import CooccurrenceStream, WordVocabulary
from kctx.data.cooccurrence_records import RECORD
from kctx.models import GloVe
from kctx.models.glove_in_order import train_in_order

GOLDEN = [
    *((1, 2, 7.0), (1, 3, 1.5), (1, 4, 1.0), (2, 1, 3.5), (2, 3, 1.5)),
    *((2, 4, 0.5), (3, 1, 1.5), (3, 2, 1.5), (4, 1, 1.0), (4, 2, 0.5)),
]
TRAINED = [
    [-0.133071, 0.008308],
    [0.271268, -0.092658],
    [0.218175, -0.197329],
    [0.097681, -0.296799],
]
UNKNOWN = [0.113513, -0.144620]


def golden():
    """Records, parameters and sums of squares at the beginning: V = 4, d = 2."""
    parameters = ((7 * np.arange(24)) % 11 - 5) / 20
    return np.array(GOLDEN, RECORD), parameters.reshape(8, 3), np.ones((8, 3))


def vocabulary_of(size):
    return WordVocabulary([f"w{i}" for i in range(size)], np.arange(size, 0, -1))


def random_records(vocabulary_size=60, seed=0, share=0.4):
    """Counts of a corpus with structure: products of frequencies and of hidden vectors."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(vocabulary_size, 4)) * 0.5
    frequency = 400 / np.arange(1, vocabulary_size + 1)
    expected = np.sqrt(frequency[:, None] * frequency) * np.exp(hidden @ hidden.T)
    word, context = np.nonzero(rng.random(expected.shape) < share)
    records = np.empty(len(word), RECORD)
    records["word1"], records["word2"] = word + 1, context + 1
    records["value"] = expected[word, context]
    return rng.permutation(records)


def trained(records, size, epochs, batch_size, on_cpu=None, static_shapes=False, **options):
    model = GloVe(size, seed=3, on_cpu=on_cpu, **{"dim": 8, **options})
    stream = CooccurrenceStream(records, size, batch_size=batch_size, static_shapes=static_shapes)
    history = model.fit(
        stream.dataset(),
        steps_per_epoch=stream.steps_per_epoch,
        epochs=epochs,
        shuffle=False,
        verbose=0,
    )
    return model, history.history["loss"]


@pytest.mark.once
def test_in_order_equals_the_tool():
    records, parameters, squares = golden()
    costs = [train_in_order(parameters, squares, records, x_max=2) for _ in range(2)]
    assert costs == pytest.approx([0.542203317, 0.123123384], abs=1e-6)
    np.testing.assert_allclose((parameters[:4] + parameters[4:])[:, :2], TRAINED, atol=1e-6)


def test_vectors_and_unknown_row_of_the_tools_trace():
    records, parameters, squares = golden()
    for _ in range(2):
        train_in_order(parameters, squares, records, x_max=2)
    model = GloVe(4, 2, x_max=2)
    model.set_parameters(parameters)
    vocabulary = WordVocabulary(list("abcd"), [3, 3, 1, 1])
    vectors = model.vectors(vocabulary, unknown=True)
    assert vectors.words == ["a", "b", "c", "d", "<unk>"]
    for word, expected in zip(vectors.words, [*TRAINED, UNKNOWN], strict=True):
        np.testing.assert_allclose(vectors[word], expected, atol=1e-6)
    np.testing.assert_allclose(model.vectors(vocabulary, "word")["b"], parameters[1, :2], atol=1e-7)
    both = model.vectors(vocabulary, "both")
    np.testing.assert_allclose(both["b"][2:], parameters[5, :2], atol=1e-7)
    with pytest.raises(ValueError, match="`part` must be one of .*part='mean'"):
        model.vectors(vocabulary, "mean")
    with pytest.raises(ValueError, match="must hold 4 words. Received: 5"):
        model.vectors(vocabulary_of(5))


def one_batch_by_hand(model, records, clip=100.0, damping=2.0):
    """The step of `glove_rows.update_rows`, record by record in float64."""
    size = model.vocabulary_size
    old, squares = model.parameters(), np.ones((2 * size, model.dim + 1))
    sums, bound, total = np.zeros_like(old), np.zeros((2 * size, 2)), 0.0
    for word1, word2, value in records.tolist():
        i, j = word1 - 1, size + word2 - 1
        difference = old[i, :-1] @ old[j, :-1] + old[i, -1] + old[j, -1] - np.log(value)
        weight = min(1, (value / model.x_max) ** model.alpha)
        total += 0.5 * weight * difference**2
        for own, other in ((i, j), (j, i)):
            step = np.append(np.clip(weight * difference * old[other, :-1], -clip, clip), 0)
            step *= model.learning_rate
            step[-1] = weight * difference * model.bias_rate
            sums[own] += step
            squares[own] += step**2
            bound[own] += weight * np.array(
                [model.learning_rate * (old[other, :-1] ** 2).sum(), model.bias_rate]
            )
    bound = damping * np.repeat(bound, [model.dim, 1], axis=1)
    return old - sums / np.maximum(np.sqrt(squares), bound), squares, total / len(records)


@pytest.mark.parametrize("on_cpu", [True, False])
@pytest.mark.parametrize("options", [{}, {"damping": 0.0, "bias_rate": 0.05}, {"clip": 0.02}])
def test_one_batch_by_hand(on_cpu, options):
    records = random_records(20)
    model = GloVe(20, 5, seed=1, on_cpu=on_cpu, x_max=30, learning_rate=0.2, **options)
    rng = np.random.default_rng(0)
    model.set_parameters(rng.normal(size=(40, 6)) * 0.7)
    clip, damping = options.get("clip", 100.0), options.get("damping", 2.0)
    expected, squares, cost = one_batch_by_hand(model, records, clip, damping)
    stream = CooccurrenceStream(records, 20, batch_size=1000)
    history = model.fit(stream.dataset(), steps_per_epoch=1, shuffle=False, verbose=0)
    assert history.history["loss"][0] == pytest.approx(cost, rel=1e-5)
    np.testing.assert_allclose(model.parameters(), expected, rtol=1e-4, atol=1e-5)
    got = [keras.ops.convert_to_numpy(x) for x in (model.word_squares, model.context_squares)]
    np.testing.assert_allclose(np.concatenate(got), squares, rtol=1e-4)


@pytest.mark.parametrize(("on_cpu", "static"), [(True, True), (False, False), (False, True)])
def test_all_ways_agree(on_cpu, static):
    """NumPy or Keras, with padding or without."""
    if not (on_cpu or static) and keras.config.backend() == "jax":
        pytest.skip("JAX compiles for each shape")
    records = random_records(share=0.1)
    plain, plain_costs = trained(records, 60, 2, 100, on_cpu=True)
    other, costs = trained(records, 60, 2, 100, on_cpu=on_cpu, static_shapes=static)
    np.testing.assert_allclose(costs, plain_costs, rtol=1e-4)
    np.testing.assert_allclose(other.parameters(), plain.parameters(), atol=1e-4)


def test_costs_fall_as_in_order():
    """Batches reach the cost of the reference within a few percent, epoch by epoch."""
    records = random_records(100, share=0.3)
    model = GloVe(100, 8, seed=3)
    parameters, squares = model.parameters(), np.ones((200, 9))
    expected = [train_in_order(parameters, squares, records) for _ in range(8)]
    _, costs = trained(records, 100, 8, None)
    assert expected[-1] < 0.5 * expected[0]
    np.testing.assert_allclose(costs, expected, rtol=0.05)


def test_frequent_words_do_not_overshoot():
    """A batch that holds all records of each word stays stable; a plain sum does not."""
    records = random_records(80, share=1.0)
    records["value"] *= 20
    _, damped = trained(records, 80, 4, 10_000)
    assert damped[1] < 0.05 * damped[0] and damped[1] > damped[2] > damped[3]
    _, plain = trained(records, 80, 4, 10_000, damping=0.0)
    assert plain[-1] > 10 * plain[0]


def test_only_rows_of_the_batch_change():
    records = np.array([(2, 5, 3.0)], RECORD)
    model = GloVe(6, 4)
    before = model.parameters()
    model.fit(CooccurrenceStream(records, 6), steps_per_epoch=1, verbose=0)
    changed = np.flatnonzero((model.parameters() != before).any(axis=1))
    assert changed.tolist() == [1, 6 + 4]


@pytest.mark.parametrize(("dim", "expected"), [(50, 40_800_000), (300, 240_800_000)])
def test_published_parameter_counts(dim, expected):
    """Of 400,000 words: the count grows with their number and nothing else."""
    model = GloVe(400, dim)
    assert 1000 * sum(int(np.prod(v.shape)) for v in model.trainable_variables) == expected
    squares = [v for v in model.non_trainable_variables if "squares" in v.path]
    assert 1000 * sum(int(np.prod(v.shape)) for v in squares) == expected


def test_first_values():
    model = GloVe(2000, 10, seed=1)
    values = model.parameters() * 10
    assert -0.5 <= values.min() < -0.499 and 0.499 < values.max() < 0.5
    assert abs(values.mean()) < 0.01 and values.std() == pytest.approx(12**-0.5, rel=0.01)
    np.testing.assert_array_equal(values, GloVe(2000, 10, seed=1).parameters() * 10)
    assert (values != GloVe(2000, 10, seed=2).parameters() * 10).mean() > 0.99


@pytest.mark.parametrize("on_cpu", [True, False])
def test_stops_at_the_first_value_that_is_not_finite(on_cpu):
    words = [f"w{i}" for i in range(30)]
    records = random_records(30)
    model = GloVe(30, 8, learning_rate=1e30, clip=1e30, damping=0.0, words=words, on_cpu=on_cpu)
    stream = CooccurrenceStream(records, 30, batch_size=50, static_shapes=True)
    with pytest.raises(FloatingPointError, match=r"the pair 'w\d+' and 'w\d+' \(word1=\d+, word2="):
        model.fit(
            stream.dataset(),
            steps_per_epoch=stream.steps_per_epoch,
            epochs=20,
            shuffle=False,
            verbose=0,
        )
    assert all(np.isfinite(keras.ops.convert_to_numpy(v)).all() for v in model.weights)


@pytest.mark.once
def test_in_order_stops_as_well():
    records, parameters, squares = golden()
    with pytest.raises(FloatingPointError, match="record 0: word1=1, word2=2"):
        train_in_order(parameters, squares, records, bias_rate=float("inf"))
    assert np.isfinite(parameters).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be an integer of at least 1"),
        ({"dim": 0}, "`dim`"),
        ({"x_max": 0}, "`x_max` must be positive. Received: x_max=0"),
        ({"x_max": -1.0}, "`x_max` must be positive. Received: x_max=-1.0"),
        ({"alpha": float("nan")}, "`alpha` must be zero or positive. Received: alpha=nan"),
        ({"learning_rate": 0.0}, "`learning_rate` must be positive"),
        ({"clip": float("inf")}, "`clip` must be positive"),
        ({"damping": -1}, "`damping` must be zero or positive"),
        ({"words": ["a"]}, "`words` must hold `vocabulary_size` words. Received: 1 words"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        GloVe(**{"vocabulary_size": 4, "dim": 2, **options})


def test_file_of_all_parameters(tmp_path):
    model = GloVe(5, 3, seed=0)
    save_glove_parameters(model, tmp_path / "vectors.bin")
    assert (tmp_path / "vectors.bin").stat().st_size == 8 * 2 * 5 * 4
    other = GloVe(5, 3, seed=1)
    other.set_parameters(load_glove_parameters(tmp_path / "vectors.bin", 5))
    np.testing.assert_array_equal(other.parameters(), model.parameters())
    with pytest.raises(ValueError, match="320 bytes, vocabulary_size=6"):
        load_glove_parameters(tmp_path / "vectors.bin", 6)
    np.full((10, 4), np.nan).tofile(tmp_path / "nan.bin")
    with pytest.raises(ValueError, match="not finite, in row 0"):
        load_glove_parameters(tmp_path / "nan.bin", 5)
    with pytest.raises(ValueError, match=r"must be finite and have shape \(10, 4\)"):
        model.set_parameters(np.zeros((10, 5)))


def test_configuration_makes_the_same_model():
    model = GloVe(5, 3, seed=7, dtype="mixed_bfloat16")
    assert model.get_config()["seed"] == 7
    config = keras.saving.serialize_keras_object(model)
    again = keras.saving.deserialize_keras_object(config)
    assert again.dtype_policy.name == "mixed_bfloat16"
    np.testing.assert_array_equal(again.parameters(), model.parameters())


def test_saved_and_loaded(tmp_path):
    records = random_records(30)
    model, _ = trained(records, 30, 1, 100)
    model.save(tmp_path / "glove.keras")
    loaded = keras.saving.load_model(tmp_path / "glove.keras")
    np.testing.assert_array_equal(loaded.parameters(), model.parameters())
    assert loaded.get_config() == model.get_config()
    inputs = {"word_ids": np.array([0, 3]), "context_ids": np.array([1, 1])}
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(loaded(inputs)), keras.ops.convert_to_numpy(model(inputs))
    )


def test_a_stream_of_rows_that_the_model_does_not_have():
    stream = CooccurrenceStream(golden()[0], 4)
    with pytest.raises(ValueError, match="`vocabulary_size` of at least 4. .*vocabulary_size=3"):
        GloVe(3, 2).fit(stream, steps_per_epoch=1, verbose=0)
    with pytest.raises(ValueError, match="`x_max` must be positive. Received: x_max='5'"):
        GloVe(4, 2, x_max="5")
