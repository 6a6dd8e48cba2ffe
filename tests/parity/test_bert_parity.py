"""BERT against stored outputs of the public PyTorch implementation, and against golden values.

The references are loaded as a user loads a checkpoint, so the tables of names are tested with them.
"""

from pathlib import Path

import keras
import numpy as np
import pytest
from safetensors.numpy import save_file

from kctx import convert
from kctx.convert.assign import resolve
from kctx.convert.bert_names import MASKED_LM_ROWS, NEXT_SENTENCE_ROWS, encoder_rows
from kctx.heads import encoder_of
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from tests.parity.weight_filler import filler

HERE = Path(__file__).resolve().parent
TOLERANCE = 1e-5
BATCHES = ("short", "full")
INPUTS = ("token_ids", "segment_ids", "padding_mask")


def numpy_of(outputs):
    return keras.tree.map_structure(keras.ops.convert_to_numpy, outputs)


def reference(name):
    with np.load(HERE / f"bert_{name}.npz") as stored:
        return dict(stored)


def write_folder(folder, arrays, *families):
    """A Hugging Face folder of the reference weights whose names start with one of `families`."""
    folder.mkdir()
    tensors = {
        key.removeprefix("weights/"): value
        for key, value in arrays.items()
        if key.startswith(tuple(f"weights/{family}" for family in families))
    }
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(str(arrays["config"]), encoding="utf-8")
    return folder


def batch_of(arrays, batch):
    return {key: arrays[f"{batch}/{key}"] for key in INPUTS}


def all_positions(inputs):
    batch, length = inputs["token_ids"].shape
    return {**inputs, "mask_positions": np.tile(np.arange(length, dtype="int32"), (batch, 1))}


def assert_equal(found, expected, mask=None):
    """Within the tolerance, at real positions only where there is a mask."""
    assert found.shape == expected.shape
    if mask is not None:
        found, expected = found[mask], expected[mask]
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def check_encoder(encoder, arrays, batch):
    inputs = batch_of(arrays, batch)
    outputs = numpy_of(encoder(inputs))
    expected = arrays[f"{batch}/hidden_states"]
    assert len(outputs["hidden_states"]) == len(expected) == encoder.num_layers + 1
    for found, hidden in zip(outputs["hidden_states"], expected, strict=True):
        assert_equal(found, hidden, inputs["padding_mask"])
    if encoder.pooler is not None:
        assert_equal(outputs["pooled_output"], arrays[f"{batch}/pooled_output"])


@pytest.mark.parametrize("activation", ["erf", "tanh", "relu"])
def test_pretraining(activation, tmp_path):
    arrays = reference(activation)
    folder = write_folder(tmp_path / "model", arrays, "bert.", "cls.")
    model, report = convert.load_model(folder)
    assert isinstance(model, Joint)
    assert not report.missing and not report.unexpected
    for batch in BATCHES:
        inputs = batch_of(arrays, batch)
        assert (inputs["segment_ids"] == 2).any() and not inputs["padding_mask"].all()
        check_encoder(model.encoder, arrays, batch)
        outputs = numpy_of(model(all_positions(inputs)))
        assert_equal(
            outputs["masked_lm"], arrays[f"{batch}/masked_lm"], mask=inputs["padding_mask"]
        )
        assert_equal(outputs["next_sentence"], arrays[f"{batch}/next_sentence"])


@pytest.mark.parametrize("activation", ["erf", "tanh", "relu"])
def test_classification(activation, tmp_path):
    arrays = reference(activation)
    folder = write_folder(tmp_path / "model", arrays, "bert.", "classifier.")
    model, report = convert.load_model(folder)
    assert not report.missing and not report.unexpected
    for batch in BATCHES:
        check_encoder(encoder_of(model), arrays, batch)
        logits = numpy_of(model(batch_of(arrays, batch)))
        assert_equal(logits, arrays[f"{batch}/classification"])


def test_activations_are_told_apart(tmp_path):
    """The tolerance is fine enough to see erf and tanh differ, so the other tests can fail."""
    arrays = reference("erf")
    folder = write_folder(tmp_path / "model", arrays, "bert.")
    encoder, _ = convert.load_encoder(folder, activation="gelu_tanh")
    outputs = numpy_of(encoder(batch_of(arrays, "full")))
    difference = np.abs(outputs["pooled_output"] - arrays["full/pooled_output"]).max()
    assert difference > 10 * TOLERANCE


def test_original_checkpoint(kctx_data):
    """A TensorFlow 1 checkpoint gives what its weights give in the other implementation."""
    expected = reference("tf1")
    model, report = convert.load_model(kctx_data / "checkpoints" / "bert_tf1")
    assert isinstance(model, Joint)
    assert not report.missing and not report.unexpected
    assert len(report.matched) == 46
    assert len(report.skipped) == 93  # the step, and two optimizer slots for each
    inputs = {key: expected[key] for key in INPUTS}
    encoded = numpy_of(model.encoder(inputs))
    for found, hidden in zip(encoded["hidden_states"], expected["hidden_states"], strict=True):
        assert_equal(found, hidden, inputs["padding_mask"])
    assert_equal(encoded["pooled_output"], expected["pooled_output"])
    outputs = numpy_of(model(all_positions(inputs)))
    assert_equal(outputs["masked_lm"], expected["masked_lm"], inputs["padding_mask"])
    assert_equal(outputs["next_sentence"], expected["next_sentence"])


# Golden values: weights from the filler, dropout 0.

TOKEN_IDS = np.array([[5, 6, 7, 8, 9], [3, 4, 2, 0, 0]], "int32")
GOLDEN_INPUTS = {
    "token_ids": TOKEN_IDS,
    "segment_ids": np.array([[0, 0, 1, 1, 1], [0] * 5], "int32"),
    "padding_mask": np.array([[1] * 5, [1, 1, 1, 0, 0]], bool),
}


def filled_model(activation):
    encoder = BERT(30, 2, 8, 2, 16, max_sequence_length=12, activation=activation, dropout=0.0)
    masked_lm, next_sentence = MaskedLM(encoder), NextSentence(encoder)
    parts = [
        (encoder, encoder_rows(2, pooler=True)),
        (masked_lm, MASKED_LM_ROWS),
        (next_sentence, NEXT_SENTENCE_ROWS),
    ]
    for root, rows in parts:
        for row in rows:
            variable = resolve(root, row.target)
            shape = tuple(variable.shape)
            if row.huggingface_transposed:
                variable.assign(filler(row.huggingface, shape[::-1]).T.astype("float32"))
            else:
                variable.assign(filler(row.huggingface, shape).astype("float32"))
    return Joint([masked_lm, next_sentence])


def assert_golden(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-6)


def test_weight_filler():
    np.testing.assert_allclose(
        filler("a", (3,)), [-0.13219615, -0.18281702, 0.11818797], rtol=0, atol=1e-8
    )


def test_golden_values_erf():
    model = filled_model("gelu_erf")
    encoded = numpy_of(model.encoder(GOLDEN_INPUTS))
    outputs = numpy_of(model(all_positions(GOLDEN_INPUTS)))
    embedded, last = encoded["hidden_states"][0], encoded["sequence_output"]
    assert_golden(embedded[0, 0, :4], [1.169800, 1.589573, -0.986950, 0.838481])
    assert_golden(last[0, 0, :4], [0.613535, 2.145202, -0.598159, -0.125112])
    assert_golden(last[1, 2, :4], [-1.187129, 0.724422, -0.654073, -0.297085])
    assert_golden(outputs["masked_lm"][0, 1, :4], [0.114348, 0.417204, 0.223018, 0.319620])
    assert_golden(outputs["next_sentence"], [[0.055882, 0.239301], [0.010700, 0.262676]])


def test_golden_loss():
    """Mean cross-entropy of three masked tokens plus that of the next sentence."""
    model = filled_model("gelu_erf")
    model.compile_for(keras.optimizers.SGD(0.0))
    inputs = {**GOLDEN_INPUTS, "mask_positions": np.array([[1, 3], [1, 0]], "int32")}
    labels = {
        "masked_lm": np.array([[6, 8], [4, 0]], "int32"),
        "next_sentence": np.array([0, 1], "int32"),
    }
    weights = {
        "masked_lm": np.array([[1, 1], [1, 0]], "float32"),
        "next_sentence": np.ones(2, "float32"),
    }
    loss = model.evaluate(inputs, labels, sample_weight=weights, verbose=0, return_dict=True)
    assert loss["loss"] == pytest.approx(4.187872, abs=3e-6)


def test_golden_values_tanh():
    model = filled_model("gelu_tanh")
    encoded = numpy_of(model.encoder(GOLDEN_INPUTS))
    outputs = numpy_of(model(all_positions(GOLDEN_INPUTS)))
    assert_golden(encoded["sequence_output"][0, 0, :4], [0.613546, 2.145192, -0.598185, -0.125101])
    assert_golden(outputs["masked_lm"][0, 1, :4], [0.114403, 0.417121, 0.223017, 0.319627])


def test_golden_values_relu():
    encoded = numpy_of(filled_model("relu").encoder(GOLDEN_INPUTS))
    assert_golden(encoded["sequence_output"][0, 0, :4], [0.568132, 2.168166, -0.555695, -0.174972])
