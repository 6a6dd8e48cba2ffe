"""BERT: its inputs and outputs, its errors, and the embeddings and pooler by hand."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.models import BERT
from tests.catalogue import batch


def tiny(**options):
    settings = {"max_sequence_length": 16, **options}
    return BERT(30, 2, 8, 2, 16, **settings)


@pytest.fixture(scope="module")
def encoder():
    return tiny()


def numpy_of(output):
    return keras.tree.map_structure(ops.convert_to_numpy, output)


def test_outputs(encoder):
    made = numpy_of(encoder(batch(encoder.input)))
    assert set(made) == {"sequence_output", "pooled_output", "hidden_states"}
    assert made["sequence_output"].shape == (3, 6, 8)
    assert made["pooled_output"].shape == (3, 8)
    assert [x.shape for x in made["hidden_states"]] == [(3, 6, 8)] * 3
    np.testing.assert_array_equal(made["hidden_states"][-1], made["sequence_output"])


def test_embeddings_are_the_normalised_sum_of_three(encoder):
    inputs = batch(encoder.input)
    made = numpy_of(encoder(inputs))["hidden_states"][0]
    tokens, positions, segments = (
        layer.get_weights()[0]
        for layer in (
            encoder.token_embedding,
            encoder.position_embedding,
            encoder.segment_embedding,
        )
    )
    total = tokens[inputs["token_ids"]] + positions[:6] + segments[inputs["segment_ids"]]
    centred = total - total.mean(-1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(made, expected, atol=1e-4)


def test_pooler_is_tanh_of_the_first_token(encoder):
    made = numpy_of(encoder(batch(encoder.input)))
    kernel, bias = encoder.pooler.get_weights()
    expected = np.tanh(made["sequence_output"][:, 0] @ kernel + bias)
    np.testing.assert_allclose(made["pooled_output"], expected, atol=1e-6)


def test_sees_both_sides(encoder):
    """A change of any real token changes the outputs at all real tokens of its row."""
    inputs = batch(encoder.input, lengths=(4,))
    before = numpy_of(encoder(inputs))["sequence_output"]
    for place in range(4):
        ids = inputs["token_ids"].copy()
        ids[0, place] = ids[0, place] % 29 + 1  # another one
        after = numpy_of(encoder({**inputs, "token_ids": ids}))["sequence_output"]
        assert (np.abs(after - before).max(-1)[0, :4] > 1e-6).all()


POSITIONS = np.array([[5, 0], [1, 1], [0, 2]], "int32")


@pytest.mark.parametrize(
    ("positions", "rows"),
    [
        ("cls", lambda x: x[:, :1]),
        (POSITIONS, lambda x: np.take_along_axis(x, POSITIONS[..., None], axis=1)),
        (POSITIONS[:, :0], lambda x: x[:, :0]),
    ],
)
def test_wanted_positions_alone(encoder, positions, rows):
    """The same vectors as in the whole output, also with padding, also in a functional model."""
    inputs = batch(encoder.input, lengths=(6, 0, 3))
    whole, some = numpy_of(encoder(inputs)), numpy_of(encoder(inputs, positions=positions))
    expected = rows(whole["sequence_output"])
    assert some["sequence_output"].shape == expected.shape
    np.testing.assert_allclose(some["sequence_output"], expected, atol=1e-6)
    np.testing.assert_allclose(some["pooled_output"], whole["pooled_output"], atol=1e-6)
    np.testing.assert_array_equal(some["hidden_states"][0], whole["hidden_states"][0])
    if isinstance(positions, str):
        model = keras.Model(encoder.input, encoder(encoder.input, positions=positions))
        model = keras.Model.from_config(model.get_config())  # "positions" is in the configuration
    else:
        extra = keras.Input((None,), dtype="int32", name="wanted")
        model = keras.Model(
            {**encoder.input, "wanted": extra}, encoder(encoder.input, positions=extra)
        )
        inputs["wanted"] = positions
    model.set_weights(encoder.get_weights())
    made = model.predict_on_batch(inputs)
    np.testing.assert_allclose(made["sequence_output"], expected, atol=1e-6)
    np.testing.assert_allclose(made["pooled_output"], whole["pooled_output"], atol=1e-6)


def test_bad_positions(encoder):
    inputs = batch(encoder.input)
    with pytest.raises(ValueError, match="`positions` must be .* Received: 'last'"):
        encoder(inputs, positions="last")
    with pytest.raises(Exception, match="must lie within the length"):
        encoder(inputs, positions=np.full((3, 1), 6, "int32"))


def test_segments_matter(encoder):
    inputs = batch(encoder.input)
    other = {**inputs, "segment_ids": 1 - inputs["segment_ids"]}
    one, two = (numpy_of(encoder(x))["sequence_output"] for x in (inputs, other))
    assert np.abs(one - two).max() > 1e-3


def test_without_pooler():
    encoder = tiny(pooler=False)
    assert encoder.pooler is None and "pooled_output" not in encoder.output
    assert encoder.count_params() == tiny().count_params() - 8 * 8 - 8


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu"])
def test_activation_reaches_every_block(activation):
    encoder = tiny(activation=activation)
    assert [block.feed_forward.activation for block in encoder.blocks] == [activation] * 2


def test_unknown_activation():
    with pytest.raises(ValueError, match=r"`activation` must be one of.*'gelu'"):
        tiny(activation="gelu")


@pytest.mark.parametrize(
    "argument", [{"num_layers": 0}, {"num_heads": 0}, {"num_heads": 2.0}, {"num_segments": True}]
)
def test_sizes_must_be_counts(argument):
    name, value = next(iter(argument.items()))
    sizes = {"num_layers": 2, "num_heads": 2, **argument}
    with pytest.raises(ValueError, match=f"`{name}` must be an integer.*Received: {name}={value}"):
        BERT(30, hidden_dim=8, intermediate_dim=16, **sizes)
    with pytest.raises(ValueError, match="`layer_norm_epsilon` must lie in"):
        tiny(layer_norm_epsilon=float("nan"))


@pytest.mark.parametrize("name", ["token_ids", "segment_ids"])
@pytest.mark.parametrize("value", [2**32 + 1, -(2**32), 1.7])
def test_ids_are_not_rounded_or_wrapped(encoder, name, value):
    """Cast to int32 they would be others, and lie inside the table."""
    inputs = batch(encoder.input)
    bad = np.zeros(inputs[name].shape, np.asarray(value).dtype)
    bad[0, 0] = value
    for call in (encoder, encoder.predict_on_batch):
        with pytest.raises(Exception, match=f"`{name}` must (hold integers|lie in)"):
            call({**inputs, name: bad})


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"`num_heads` must divide.*hidden_dim=10, num_heads=3"):
        BERT(30, 1, 10, 3, 16)


def test_config_holds_every_argument():
    arguments = {
        "vocabulary_size": 31,
        "num_layers": 3,
        "hidden_dim": 12,
        "num_heads": 3,
        "intermediate_dim": 20,
        "max_sequence_length": 7,
        "num_segments": 3,
        "activation": "relu",
        "dropout": 0.2,
        "attention_dropout": 0.3,
        "layer_norm_epsilon": 1e-6,
        "pooler": False,
        "name": "other",
    }
    encoder = BERT(**arguments)
    config = encoder.get_config()
    assert {key: config[key] for key in arguments} == arguments
    again = BERT.from_config(config)
    assert again.get_config() == config
    assert [w.path for w in again.weights] == [w.path for w in encoder.weights]
    assert again.blocks[0].config == encoder.blocks[0].config


def test_from_size_overrides():
    encoder = BERT.from_size("tiny", vocabulary_size=40, num_layers=1, name="small_one")
    assert (encoder.vocabulary_size, encoder.num_layers, encoder.name) == (40, 1, "small_one")
    assert (encoder.hidden_dim, encoder.num_heads, encoder.intermediate_dim) == (128, 2, 512)


def test_unknown_size():
    with pytest.raises(ValueError, match=r"`size` must be one of tiny, .*L12_H768.*'huge'"):
        BERT.from_size("huge")


def test_unknown_override():
    with pytest.raises(TypeError, match="hidden_size"):
        BERT.from_size("tiny", hidden_size=12)


def test_sizes_follow_the_papers_rules():
    assert len(BERT.SIZES) == 11 + 24
    for name, size in BERT.SIZES.items():
        assert size["num_heads"] * 64 == size["hidden_dim"], name
        assert size["intermediate_dim"] == 4 * size["hidden_dim"], name


def test_initial_values():
    """Normal of 0.02, cut at two standard deviations, which leaves 0.0176."""
    encoder = BERT(500, 1, 64, 2, 128)
    for weight in encoder.trainable_weights:
        value, kind = ops.convert_to_numpy(weight), weight.path.split("/")[-1]
        if kind in ("bias", "beta"):
            assert (value == 0).all(), weight.path
        elif kind == "gamma":
            assert (value == 1).all(), weight.path
        else:
            assert np.abs(value).max() <= 0.04 + 1e-6, weight.path
            if value.size > 2000:
                assert abs(value.std() - 0.0176) < 1e-3, weight.path


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("token_ids", 30, r"`token_ids` must lie in \[0, 30\)"),
        ("token_ids", -1, r"`token_ids` must lie in \[0, 30\)"),
        ("segment_ids", 2, r"`segment_ids` must lie in \[0, 2\)"),
    ],
)
def test_bad_ids_lose_nothing(encoder, name, change, message):
    """In a compiled `predict`, which under JAX would otherwise take the weights with it."""
    inputs = batch(encoder.input)
    before = encoder.get_weights()
    expected = encoder.predict(inputs, verbose=0)["sequence_output"]
    bad = {**inputs, name: inputs[name].copy()}
    bad[name][1, 1] = change
    with pytest.raises(Exception, match=rf"(?s){message}.*{change}"):
        encoder.predict(bad, verbose=0)
    for one, other in zip(encoder.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)
    again = encoder.predict(inputs, verbose=0)["sequence_output"]
    np.testing.assert_array_equal(again, expected)


def test_too_long_loses_nothing(encoder):
    inputs = batch(encoder.input, lengths=(17,), length=17)
    before = encoder.get_weights()
    with pytest.raises(Exception, match=r"(?s)sequence length must be at most 16.*17"):
        encoder.predict(inputs, verbose=0)
    np.testing.assert_array_equal(encoder.get_weights()[0], before[0])


@pytest.mark.parametrize("names", [["token_ids", "segment_ids"], []])
def test_missing_inputs(encoder, names):
    inputs = batch(encoder.input)
    with pytest.raises(
        ValueError, match=r"must hold token_ids, segment_ids, padding_mask. Received"
    ):
        encoder({name: inputs[name] for name in names})


@pytest.mark.parametrize("extra", ["a", "mask_positions", "z"])
def test_extra_inputs_are_left_out(encoder, extra):
    """Keras by itself would take them for other inputs, as the order of the names may be."""
    inputs = batch(encoder.input)
    expected = numpy_of(encoder(inputs)["pooled_output"])
    more = {**inputs, extra: np.zeros((3, 6), "int32")}
    np.testing.assert_array_equal(numpy_of(encoder(more)["pooled_output"]), expected)
    np.testing.assert_allclose(
        encoder.predict(more, verbose=0)["pooled_output"], expected, atol=1e-6
    )
