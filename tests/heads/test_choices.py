"""Multiple choice: each choice encoded by itself, one score for each."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.heads import ChoiceScorer, Classifier, attach, attach_choices, encoder_of, head_of
from kctx.models import BERT, StaticEncoder
from kctx.training import default_jit
from tests.catalogue import batch


def numpy_of(x):
    return ops.convert_to_numpy(x)


@pytest.fixture(scope="module")
def encoder():
    return BERT(30, 2, 8, 2, 16, max_sequence_length=16)


def test_scores_are_those_of_the_choices_one_by_one(encoder):
    model = attach_choices(encoder, ChoiceScorer())
    assert encoder_of(model) is encoder and model.name == f"{encoder.name}_{head_of(model).name}"
    inputs = batch(model.input)
    assert inputs["token_ids"].shape == (3, 2, 6)
    found = numpy_of(model(inputs))
    single = Classifier(1)
    alone = attach(encoder, single)
    single.set_weights(head_of(model).get_weights())
    for choice in range(2):
        of_choice = {name: inputs[name][:, choice] for name in encoder.input}
        real = inputs["choice_mask"][:, choice]
        wanted = numpy_of(alone(of_choice))[:, 0]
        np.testing.assert_allclose(found[real, choice], wanted[real], atol=1e-5)
    assert (found[~inputs["choice_mask"]] == -1e9).all()


def test_any_number_of_choices(encoder):
    model = attach_choices(encoder, ChoiceScorer())
    inputs = batch(model.input)
    five = {name: np.concatenate([x, x, x[:, :1]], axis=1) for name, x in inputs.items()}
    found = model.predict(five, verbose=0)
    assert found.shape == (3, 5)
    np.testing.assert_allclose(found[:, :2], model.predict(inputs, verbose=0), atol=1e-5)


def test_loss_and_metric():
    head = ChoiceScorer()
    logits = np.array([[0, 0, -1e9], [9, 0, 0], [0, 1, 2]], "float32")
    labels = np.array([1, 0, -1], "int32")
    wanted = (np.log(2) + np.log1p(2 * np.exp(-9))) / 2
    np.testing.assert_allclose(float(head.output_loss()(labels, logits)), wanted, rtol=1e-5)
    (metric,) = head.output_metrics()
    metric.update_state(labels, logits)
    np.testing.assert_allclose(float(metric.result()), 0.5)


def test_training_and_saving(tmp_path):
    model = attach_choices(StaticEncoder(30, 8), ChoiceScorer(dropout=0.0))
    head = head_of(model)
    model.compile(
        keras.optimizers.Adam(0.05),
        head.output_loss(),
        metrics=head.output_metrics(),
        jit_compile=default_jit(),
    )
    inputs = batch(model.input)
    labels = np.array([1, 0, 0], "int32")
    losses = [float(model.train_on_batch(inputs, labels)[0]) for _ in range(20)]
    assert losses[-1] < losses[0] / 2
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    np.testing.assert_allclose(
        loaded.predict(inputs, verbose=0), model.predict(inputs, verbose=0), atol=1e-6
    )


def test_bad_ids_lose_nothing(encoder):
    model = attach_choices(encoder, ChoiceScorer())
    inputs = batch(model.input)
    expected = model.predict(inputs, verbose=0)
    bad = {**inputs, "token_ids": inputs["token_ids"] + 30}
    with pytest.raises(Exception, match=r"(?s)`token_ids` must lie in \[0, 30\)"):
        model.predict(bad, verbose=0)
    np.testing.assert_array_equal(model.predict(inputs, verbose=0), expected)


def test_an_encoder_with_an_input_of_the_same_name_is_refused():
    x = keras.Input((None, 4), name="choice_mask")
    plain = keras.Model({"choice_mask": x}, {"sequence_output": keras.layers.Dense(4)(x)})
    with pytest.raises(ValueError, match="an input of the same name: choice_mask"):
        attach_choices(plain, ChoiceScorer())
