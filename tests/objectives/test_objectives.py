"""Losses by hand, one encoder pass, tied weights, and what a failed step leaves behind."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import GatherPositions
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from tests.catalogue import batch

WEIGHTS = {
    "masked_lm": np.array([[1, 0.5], [0, 2], [1, 0]], "float32"),
    "next_sentence": np.array([1, 0, 3], "float32"),
}
LABELS = {
    "masked_lm": np.array([[3, 29], [0, 7], [1, 1]], "int32"),
    "next_sentence": np.array([0, 1, 1], "int32"),
}


def make_joint():
    encoder = BERT(30, 2, 8, 2, 16, max_sequence_length=16, dropout=0.0, attention_dropout=0.0)
    # Greater values than the initialiser's, so that losses differ from ln V and ln 2.
    rng = np.random.default_rng(0)
    model = Joint([MaskedLM(encoder), NextSentence(encoder)])
    model.set_weights([rng.normal(size=w.shape, scale=0.4) for w in model.get_weights()])
    return model


@pytest.fixture(scope="module")
def joint():
    model = make_joint()
    model.compile_for(keras.optimizers.SGD(0.1), run_eagerly=True)
    return model


def outputs(model, inputs):
    return {key: ops.convert_to_numpy(value) for key, value in model(inputs).items()}


def expected_loss(logits, labels, weights):
    """Σw·CE/Σw, 0 without any weight."""
    shifted = logits - logits.max(-1, keepdims=True)
    log_probabilities = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    entropy = -np.take_along_axis(log_probabilities, labels[..., None], -1)[..., 0]
    return (weights * entropy).sum() / max(weights.sum(), 1e-9)


def expected_accuracy(logits, labels, weights):
    return (weights * (logits.argmax(-1) == labels)).sum() / max(weights.sum(), 1e-9)


def evaluate(model, weights):
    return model.evaluate(
        batch(model.input), LABELS, sample_weight=weights, return_dict=True, verbose=0
    )


def test_losses_and_accuracies_by_hand(joint):
    made, logits = evaluate(joint, WEIGHTS), outputs(joint, batch(joint.input))
    losses = {key: expected_loss(logits[key], LABELS[key], WEIGHTS[key]) for key in LABELS}
    assert made["masked_lm_loss"] == pytest.approx(losses["masked_lm"], rel=1e-5)
    assert made["next_sentence_loss"] == pytest.approx(losses["next_sentence"], rel=1e-5)
    assert made["loss"] == pytest.approx(sum(losses.values()), rel=1e-5)
    for key in LABELS:
        expected = expected_accuracy(logits[key], LABELS[key], WEIGHTS[key])
        assert made[f"{key}_accuracy"] == pytest.approx(expected, abs=1e-6)


def test_without_any_weight_the_loss_is_zero(joint):
    made = evaluate(joint, {key: 0 * value for key, value in WEIGHTS.items()})
    assert made["loss"] == 0 and all(np.isfinite(value) for value in made.values())


def test_weight_zero_means_left_out(joint):
    """Labels of weight 0 may be anything within the vocabulary."""
    other = {
        key: np.where(WEIGHTS[key] == 0, 1 - LABELS[key].clip(0, 1), LABELS[key]) for key in LABELS
    }
    made = joint.evaluate(
        batch(joint.input), other, sample_weight=WEIGHTS, return_dict=True, verbose=0
    )
    assert made == pytest.approx(evaluate(joint, WEIGHTS))


@pytest.mark.parametrize("kind", [MaskedLM, NextSentence])
def test_single_objectives_score_alike(joint, kind):
    model = kind(joint.encoder)
    inputs = batch(joint.input)
    model.compile_for(keras.optimizers.SGD(), run_eagerly=True)
    (key,) = model.output
    logits = outputs(model, {name: inputs[name] for name in model.input})
    made = model.test_on_batch(
        {name: inputs[name] for name in model.input},
        {key: LABELS[key]},
        sample_weight={key: WEIGHTS[key]},
        return_dict=True,
    )
    expected = expected_loss(logits[key], LABELS[key], WEIGHTS[key])
    assert made["loss"] == pytest.approx(expected, rel=1e-5)


def test_loss_weights(joint):
    model = Joint(joint.objectives)
    model.compile_for(
        keras.optimizers.SGD(), {"masked_lm": 1.0, "next_sentence": 0.5}, run_eagerly=True
    )
    made = evaluate(model, WEIGHTS)
    parts = evaluate(joint, WEIGHTS)
    expected = parts["masked_lm_loss"] + 0.5 * parts["next_sentence_loss"]
    assert made["loss"] == pytest.approx(expected, rel=1e-5)


def test_joint_encodes_once(joint, monkeypatch):
    passes = []
    layer = joint.encoder.embedding_norm
    original = layer.call
    monkeypatch.setattr(layer, "call", lambda *args: passes.append(1) or original(*args))
    joint(batch(joint.input))
    assert len(passes) == 1


def test_joint_gives_what_its_parts_give(joint):
    inputs = batch(joint.input)
    made = outputs(joint, inputs)
    for part in joint.objectives:
        alone = outputs(part, {name: inputs[name] for name in part.input})
        for key, value in alone.items():
            np.testing.assert_allclose(made[key], value, atol=1e-6)


def test_joint_inputs_and_outputs(joint):
    assert set(joint.input) == {"token_ids", "segment_ids", "padding_mask", "mask_positions"}
    made = outputs(joint, batch(joint.input))
    assert made["masked_lm"].shape == (3, 2, 30) and made["next_sentence"].shape == (3, 2)


def test_masked_lm_is_tied(joint):
    """The head adds only its own layers, and the projection is the token table."""
    model = joint.objectives[0]
    encoder = joint.encoder.count_params()
    assert model.count_params() == encoder + (8 * 8 + 8) + 2 * 8 + 30
    inputs = {name: value for name, value in batch(joint.input).items() if name in model.input}
    vectors = ops.convert_to_numpy(
        model.head(
            GatherPositions()(
                joint.encoder(inputs)["sequence_output"],
                ops.convert_to_tensor(inputs["mask_positions"]),
            )
        )
    )
    table, bias = joint.encoder.token_embedding.get_weights()[0], model.output_bias.get_weights()[0]
    np.testing.assert_allclose(
        outputs(model, inputs)["masked_lm"], vectors @ table.T + bias, atol=1e-4
    )


def test_reloaded_joint_shares_one_encoder(joint, tmp_path):
    joint.save(tmp_path / "joint.keras")
    loaded = keras.models.load_model(tmp_path / "joint.keras")
    assert type(loaded) is Joint and loaded.name == joint.name
    assert all(part.encoder is loaded.encoder for part in loaded.objectives)
    assert loaded.objectives[0].token_embedding is loaded.encoder.token_embedding
    assert loaded.count_params() == joint.count_params()
    inputs = batch(joint.input)
    made, expected = outputs(loaded, inputs), outputs(joint, inputs)
    for key in expected:
        np.testing.assert_allclose(made[key], expected[key], atol=1e-6)
    assert evaluate(loaded, WEIGHTS)["loss"] == pytest.approx(evaluate(joint, WEIGHTS)["loss"])


def test_unregistered_objective(joint):
    config = joint.get_config()
    config["objectives"][0]["registered_name"] = "elsewhere>Other"
    with pytest.raises(ValueError, match=r"Objective 'elsewhere>Other' is not registered"):
        Joint.from_config(config)


def test_joint_refuses_several_encoders(joint):
    other = make_joint()
    with pytest.raises(ValueError, match="share one encoder.*2 objectives on 2 encoders"):
        Joint([joint.objectives[0], other.objectives[1]])
    with pytest.raises(ValueError, match="0 objectives on 0 encoders"):
        Joint([])


def test_joint_refuses_equal_outputs(joint):
    with pytest.raises(ValueError, match=r"different outputs.*'masked_lm', 'masked_lm'"):
        Joint([joint.objectives[0], MaskedLM(joint.encoder)])


def test_next_sentence_needs_a_pooler():
    encoder = BERT(30, 1, 8, 2, 16, pooler=False)
    with pytest.raises(ValueError, match=r"`pooled_output`.*hidden_states.*sequence_output"):
        NextSentence(encoder)


def test_misspelt_argument(joint):
    with pytest.raises(TypeError, match="nmae"):
        MaskedLM(joint.encoder, nmae="other")


@pytest.fixture(scope="module")
def compiled():
    """A model whose steps are compiled; tests leave it as it was, as they are about that."""
    model = make_joint()
    model.compile_for(keras.optimizers.SGD(0.1))
    model.fit(batch(model.input), LABELS, sample_weight=WEIGHTS, verbose=0)
    return model


@pytest.mark.parametrize(
    ("name", "bad", "message"),
    [
        ("token_ids", 30, "`token_ids` must lie"),
        ("segment_ids", 2, "`segment_ids` must lie"),
        ("mask_positions", 6, "`mask_positions` must lie within the length"),
    ],
)
def test_bad_ids_in_fit_lose_nothing(compiled, name, bad, message):
    before = compiled.get_weights()
    inputs = batch(compiled.input)
    inputs[name][0, 1] = bad
    with pytest.raises(Exception, match=rf"(?s){message}.*{bad}"):
        compiled.fit(inputs, LABELS, sample_weight=WEIGHTS, verbose=0)
    # Under TensorFlow, what does not depend on positions may have made its step by then.
    if name != "mask_positions" or keras.config.backend() != "tensorflow":
        for one, other in zip(compiled.get_weights(), before, strict=True):
            np.testing.assert_array_equal(one, other)
    assert np.isfinite(evaluate(compiled, WEIGHTS)["loss"])


@pytest.mark.parametrize("good_batches", [0, 1])
def test_failing_data_loses_nothing(compiled, good_batches):
    """Neither before the first step nor after one."""
    inputs = batch(compiled.input)
    weights, steps = compiled.get_weights(), int(compiled.optimizer.iterations)

    class Data(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            # Keras may fetch ahead of the step, so what is after the good ones fails.
            if index >= good_batches:
                raise OSError("the disk is gone")
            return inputs, LABELS, WEIGHTS

    with pytest.raises(Exception, match="the disk is gone"):
        compiled.fit(Data(), verbose=0, shuffle=False)
    after = compiled.get_weights()
    assert all(np.isfinite(value).all() for value in after)
    if int(compiled.optimizer.iterations) == steps:
        np.testing.assert_array_equal(after[0], weights[0])
    assert np.isfinite(evaluate(compiled, WEIGHTS)["loss"])


@pytest.mark.skipif(keras.config.backend() == "torch", reason="Keras has it not under torch")
def test_several_steps_in_one_execution(compiled):
    """The last execution of three batches, two at a time, is not full."""
    inputs, losses = batch(compiled.input), {}
    repeated = {key: np.concatenate([value] * 3) for key, value in inputs.items()}
    labels, weights = (
        {key: np.concatenate([value] * 3) for key, value in part.items()}
        for part in (LABELS, WEIGHTS)
    )
    start = compiled.get_weights()
    for steps in (1, 2):
        model = Joint(compiled.objectives)
        model.set_weights(start)
        model.compile_for(keras.optimizers.SGD(0.1), steps_per_execution=steps)
        model.fit(repeated, labels, sample_weight=weights, batch_size=3, shuffle=False, verbose=0)
        assert int(model.optimizer.iterations) == 3
        losses[steps] = evaluate(model, WEIGHTS)["loss"]
    compiled.set_weights(start)
    assert losses[1] == pytest.approx(losses[2], rel=1e-5)
