"""Heads: what they pool, when they drop, and the encoder within the model they make."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx import heads
from kctx.heads import Classifier, Regressor, attach, encoder_of
from kctx.heads.losses import ClassCrossEntropy, PaddedCrossEntropy
from kctx.models import BERT
from kctx.objectives import MaskedLM
from tests.catalogue import batch


def make_encoder(**options):
    return BERT(30, 2, 8, 2, 16, max_sequence_length=16, **options)


@pytest.fixture(scope="module")
def encoder():
    return make_encoder()


def of(model, inputs, **options):
    return ops.convert_to_numpy(model(inputs, **options))


@pytest.mark.parametrize("pooling", [None, "pooled", "cls", "mean", "max"])
def test_pooling(encoder, pooling):
    head = Classifier(3, pooling=pooling)
    model = attach(encoder, head)
    inputs = batch(model.input)
    encoded = {
        key: ops.convert_to_numpy(encoder(inputs)[key])
        for key in ("sequence_output", "pooled_output")
    }
    x, mask = encoded["sequence_output"], inputs["padding_mask"][..., None]
    pooled = {
        None: encoded["pooled_output"],
        "pooled": encoded["pooled_output"],
        "cls": x[:, 0],
        "mean": (x * mask).sum(1) / mask.sum(1),
        "max": np.where(mask, x, -np.inf).max(1),
    }[pooling]
    kernel, bias = head.dense.get_weights()
    np.testing.assert_allclose(of(model, inputs), pooled @ kernel + bias, atol=1e-5)


def test_default_pooling_follows_the_encoder(encoder):
    with_pooler, without = Classifier(2), Classifier(2)
    attach(encoder, with_pooler)
    attach(make_encoder(pooler=False), without)
    assert (with_pooler.pooling, without.pooling) == ("pooled", "mean")


def test_dropout_only_in_training():
    head = Classifier(3, dropout=0.5, pooling="cls")
    encoded = {"sequence_output": np.ones((4, 2, 64), "float32")}
    still, again, training = (of(head, encoded, training=mode) for mode in (False, False, True))
    np.testing.assert_array_equal(still, again)
    assert np.abs(still - training).max() > 1e-3


def test_regressor_is_one_output(encoder):
    model = attach(encoder, Regressor(dropout=0.3, pooling="mean"))
    assert of(model, batch(model.input)).shape == (3, 1)
    config = Regressor(dropout=0.3, pooling="mean", name="stars").get_config()
    assert "num_classes" not in config
    again = Regressor.from_config(config)
    assert (again.num_classes, again.dropout, again.pooling, again.name) == (
        1,
        0.3,
        "mean",
        "stars",
    )


def test_errors():
    with pytest.raises(ValueError, match="`num_classes` must be an integer of at least 1. Rec.*=0"):
        Classifier(0)
    with pytest.raises(ValueError, match=r'`pooling` must be "pooled".*\'last\''):
        Classifier(2, pooling="last")
    with pytest.raises(ValueError, match=r"`pooled_output`.*hidden_states.*sequence_output"):
        attach(make_encoder(pooler=False), Classifier(2, pooling="pooled"))


def test_names(encoder):
    assert attach(encoder, Classifier(2, name="topic")).name == f"{encoder.name}_topic"
    assert attach(encoder, Classifier(2), name="mine").name == "mine"


def test_reloaded_model_holds_its_encoder(tmp_path):
    encoder = make_encoder(name="reader")
    model = attach(encoder, Classifier(3, name="topic"))
    assert encoder_of(model) is encoder
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = batch(model.input)
    np.testing.assert_allclose(of(loaded, inputs), of(model, inputs), atol=1e-6)
    found = encoder_of(loaded)
    assert type(found) is BERT and found.name == "reader" and type(loaded) is type(model)
    assert found.get_config() == encoder.get_config()
    np.testing.assert_allclose(
        ops.convert_to_numpy(found(inputs)["sequence_output"]),
        ops.convert_to_numpy(encoder(inputs)["sequence_output"]),
        atol=1e-6,
    )
    # The layers found are those that the model computes with, not copies.
    found.token_embedding.set_weights([0 * w for w in found.token_embedding.get_weights()])
    assert np.abs(of(loaded, inputs) - of(model, inputs)).max() > 1e-6


@pytest.mark.parametrize("frozen", [False, True])
def test_training_through_a_head_trains_the_encoder(frozen):
    encoder = make_encoder()
    encoder.trainable = not frozen
    head = Classifier(3)
    model = attach(encoder, head)
    model.compile(
        keras.optimizers.SGD(1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        # Under JAX one program is compiled sooner than every operation by itself.
        run_eagerly=keras.config.backend() != "jax",
    )
    before, kernel = encoder.get_weights(), head.get_weights()[0]
    model.train_on_batch(batch(model.input), np.array([0, 1, 2]))
    moved = [
        not np.array_equal(one, other)
        for one, other in zip(encoder.get_weights(), before, strict=True)
    ]
    assert any(moved) != frozen
    assert not np.array_equal(head.get_weights()[0], kernel)


def test_bad_ids_in_predict_lose_nothing(encoder):
    model = attach(encoder, Classifier(3))
    inputs = batch(model.input)
    expected = model.predict(inputs, verbose=0)
    bad = {**inputs, "token_ids": inputs["token_ids"] + 30}
    with pytest.raises(Exception, match=r"(?s)`token_ids` must lie in \[0, 30\)"):
        model.predict(bad, verbose=0)
    np.testing.assert_array_equal(model.predict(inputs, verbose=0), expected)


def test_encoder_of(encoder):
    assert encoder_of(encoder) is encoder
    assert encoder_of(MaskedLM(encoder)) is encoder
    inputs = encoder.input
    two = keras.Model(
        inputs,
        encoder(inputs)["pooled_output"] + make_encoder(name="second")(inputs)["pooled_output"],
        name="both",
    )
    with pytest.raises(ValueError, match=r"exactly one encoder. Received: both.*second"):
        encoder_of(two)
    x = keras.Input((3,))
    with pytest.raises(ValueError, match="exactly one encoder"):
        encoder_of(keras.Model(x, keras.layers.Dense(2)(x)))


def test_any_functional_model_serves_as_encoder():
    x = keras.Input((None, 4), name="vectors")
    plain = keras.Model({"vectors": x}, {"sequence_output": keras.layers.Dense(4)(x)}, name="plain")
    model = attach(plain, Classifier(2))
    assert model.predict({"vectors": np.ones((2, 3, 4), "float32")}, verbose=0).shape == (2, 2)


@pytest.mark.once
@pytest.mark.parametrize(
    ("head", "options", "argument"),
    [
        (heads.Classifier, {"num_classes": "3"}, "num_classes"),
        (heads.Classifier, {"num_classes": 2, "dropout": None}, "dropout"),
        (heads.Tagger, {"num_tags": True}, "num_tags"),
        (heads.Span, {"dropout": "x"}, "dropout"),
        (heads.RoleTagger, {"num_tags": 3, "hidden_dim": 1.5}, "hidden_dim"),
        (heads.MentionRanker, {"feature_dim": 0}, "feature_dim"),
    ],
)
def test_arguments_that_are_none(head, options, argument):
    with pytest.raises(ValueError, match=f"`{argument}` must be .* Received: {argument}="):
        head(**options)


def labelled(kind, value):
    """A model, its inputs and labels, the first of which is `value`."""
    head = {"class": Classifier(3), "tag": heads.Tagger(5), "crf": heads.CRFTagger(5)}[kind]
    model = attach(make_encoder(), head)
    model.compile("sgd", head.output_loss(), jit_compile=False)
    inputs = batch(model.input, (3, 3))
    labels = np.zeros((2,) if kind == "class" else inputs["word_mask"].shape, type(value))
    labels.flat[0] = value
    return model, inputs, labels


@pytest.mark.parametrize("kind", ["class", "tag", "crf"])
@pytest.mark.parametrize(
    ("value", "message"),
    [(7, "must (lie|be below) .*7"), (0.5, "Labels must be integers. .*float")],
)
def test_labels_that_are_no_classes_lose_nothing(kind, value, message):
    model, inputs, labels = labelled(kind, value)
    with pytest.raises(Exception, match=message):
        model.fit(inputs, labels, verbose=0)
    assert np.isfinite(model.predict(inputs, verbose=0)).all()


@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_sample_weights_of_rows(shape):
    """As Keras' own losses take them: of rows, with and without a last axis."""
    labels = np.int32([[0, 1], [1, -1], [1, 0]])
    logits = np.random.default_rng(0).normal(size=(3, 2, 2)).astype("float32")
    weights = np.float32([1, 3, 0.5])
    loss = PaddedCrossEntropy()
    found = float(loss(labels, logits, weights.reshape(shape)))
    losses = -np.log(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))
    picked = np.take_along_axis(losses, np.maximum(labels, 0)[..., None], -1)[..., 0]
    each = weights[:, None] * (labels >= 0)
    assert found == pytest.approx((picked * each).sum() / each.sum(), rel=1e-5)
    # Of one class for each row the loss is the same kind of mean.
    found = float(ClassCrossEntropy()(labels[:, 0], logits[:, 0], weights.reshape(shape)))
    assert found == pytest.approx((picked[:, 0] * weights).sum() / weights.sum(), rel=1e-5)
    with pytest.raises(ValueError, match=r"`sample_weight` must have .* shape \(3, 5\)"):
        loss(labels, logits, np.ones((3, 5), "float32"))
