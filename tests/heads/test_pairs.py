"""The bi-encoder: cosines of vectors that do not know each other."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.heads import BiEncoder, attach_pair, encoder_of, head_of
from kctx.models import BERT, StaticEncoder
from kctx.training import default_jit
from tests.catalogue import batch
from tests.gradients import gradient


def numpy_of(x):
    return ops.convert_to_numpy(x)


@pytest.fixture(scope="module")
def encoder():
    return BERT(30, 2, 8, 2, 16, max_sequence_length=16)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "pooled"])
def test_cosine(encoder, pooling):
    model = attach_pair(encoder, BiEncoder(pooling))
    assert encoder_of(model) is encoder
    inputs = batch(model.input)
    first = {name: inputs[name] for name in encoder.input}
    second = {name: inputs[name + "_b"] for name in encoder.input}
    vectors = []
    for side in (first, second):
        encoded = {
            name: numpy_of(encoder(side)[name]) for name in ("sequence_output", "pooled_output")
        }
        x, mask = encoded["sequence_output"], side["padding_mask"][..., None]
        vectors.append(
            {
                "mean": (x * mask).sum(1) / mask.sum(1),
                "cls": x[:, 0],
                "max": np.where(mask, x, -np.inf).max(1),
                "pooled": encoded["pooled_output"],
            }[pooling]
        )
    one, other = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in vectors)
    np.testing.assert_allclose(
        numpy_of(model(inputs)), (one * other).sum(-1, keepdims=True), atol=1e-5
    )
    found = numpy_of(head_of(model).sentence_vector(encoder(first), first["padding_mask"]))
    np.testing.assert_allclose(found, one, atol=1e-5)


def test_texts_of_two_lengths_and_an_empty_one(encoder):
    model = attach_pair(encoder, BiEncoder())
    inputs = batch(model.input)
    second = batch(encoder.input, (9, 0, 2), length=9)
    inputs = {**inputs, **{f"{name}_b": value for name, value in second.items()}}
    found = model.predict(inputs, verbose=0)
    assert found.shape == (3, 1) and found[1] == 0
    swapped = {
        **{name: inputs[f"{name}_b"] for name in encoder.input},
        **{f"{name}_b": inputs[name] for name in encoder.input},
    }
    np.testing.assert_allclose(model.predict(swapped, verbose=0), found, atol=1e-6)


def test_training_and_saving(tmp_path):
    model = attach_pair(StaticEncoder(30, 8), BiEncoder())
    head = head_of(model)
    model.compile(
        keras.optimizers.Adam(0.05),
        head.output_loss(),
        metrics=head.output_metrics(),
        jit_compile=default_jit(),
    )
    inputs = batch(model.input)
    labels = np.array([[0.9], [-0.5], [0.1]], "float32")
    losses = [float(np.ravel(model.train_on_batch(inputs, labels))[0]) for _ in range(20)]
    assert losses[-1] < losses[0] / 2
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    np.testing.assert_allclose(
        loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0), atol=1e-6
    )


def test_dropout_is_for_training_alone(encoder):
    model = attach_pair(encoder, BiEncoder(dropout=0.5))
    inputs = batch(model.input)
    still, again = (numpy_of(model(inputs, training=False)) for _ in range(2))
    np.testing.assert_array_equal(still, again)
    np.testing.assert_allclose(
        still, numpy_of(attach_pair(encoder, BiEncoder())(inputs)), atol=1e-6
    )
    assert np.abs(numpy_of(model(inputs, training=True)) - still).max() > 1e-3
    assert BiEncoder.from_config(head_of(model).get_config()).drop.rate == 0.5


def test_errors(encoder):
    with pytest.raises(ValueError, match=r'`pooling` must be "pooled".*Received: \'last\''):
        BiEncoder("last")
    without = BERT(30, 1, 8, 2, 16, max_sequence_length=16, pooler=False)
    with pytest.raises(ValueError, match="needs an encoder with a `pooled_output`"):
        attach_pair(without, BiEncoder("pooled"))
    model = attach_pair(encoder, BiEncoder())
    inputs = batch(model.input)
    inputs["token_ids_b"] = inputs["token_ids_b"] + 30
    with pytest.raises(Exception, match=r"(?s)`token_ids` must lie in \[0, 30\)"):
        model.predict(inputs, verbose=0)


def test_a_text_without_tokens_has_no_gradient():
    """Its vector is 0; a gradient of 1 / length there would drown those of all other texts."""
    head = BiEncoder()
    x = np.zeros((2, 3, 4), "float32")
    x[1] = 1
    mask = ops.convert_to_tensor([[True] * 3, [True] * 3])
    head.build({"sequence_output": (2, 3, 4)})

    def total(x):
        vectors = head.sentence_vector({"sequence_output": x}, mask)
        return ops.sum(vectors * ops.convert_to_tensor([1.0, 2.0, 3.0, 4.0]))

    found = gradient(total, x)
    assert not found[0].any() and found[1].any()
