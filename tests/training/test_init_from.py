"""Weights from a preset: the right ones, all of them, or none."""

import json

import keras
import numpy as np
import pytest

from kctx import presets
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from kctx.training import init_from


def make_encoder(layers=2, **options):
    encoder = BERT(30, layers, 8, 2, 16, **{"max_sequence_length": 12, **options})
    for weight in encoder.weights:
        weight.assign(np.random.default_rng(1).normal(size=weight.shape))
    return encoder


def make_joint(**options):
    encoder = make_encoder(**options)
    return Joint([MaskedLM(encoder), NextSentence(encoder)])


def start(model):
    """A model with other weights than those of the presets, and these weights."""
    for weight in model.weights:
        weight.assign(np.random.default_rng(2).normal(size=weight.shape))
    return model, model.get_weights()


def assert_equal(weights, expected):
    for mine, theirs in zip(weights, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_whole_model(tmp_path):
    saved = make_joint()
    presets.save(tmp_path, saved)
    model, _ = start(make_joint())
    model.compile_for(keras.optimizers.Adam(0.1))
    model.optimizer.build(model.trainable_variables)
    assert init_from(model, tmp_path) == tmp_path / "model.weights.h5"
    assert_equal(model.get_weights(), saved.get_weights())
    assert model.optimizer is not None and int(model.optimizer.iterations) == 0


def test_encoder_alone(tmp_path):
    saved = make_encoder()
    presets.save(tmp_path, saved)
    model, before = start(make_joint())
    init_from(model, tmp_path)
    assert_equal(model.encoder.get_weights(), saved.get_weights())
    heads = len(model.weights) - len(saved.weights)
    changed = [not np.array_equal(*pair) for pair in zip(model.get_weights(), before, strict=True)]
    assert heads > 0 and sum(changed) == len(saved.weights)


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        (lambda: make_encoder(layers=3), "another configuration: it holds"),
        (lambda: make_encoder(layers=1), "another configuration: it holds"),
        (lambda: make_joint(layers=3), "another configuration: it holds"),
        (lambda: make_joint(max_sequence_length=13), r"the file has more: \[\(13, 8\)\];"),
        (
            lambda: MaskedLM(make_encoder()),
            "must hold a preset of a kctx>Joint or a kctx>BERT. Received: .* a kctx>MaskedLM",
        ),
    ],
)
def test_another_model_changes_nothing(tmp_path, saved, message):
    presets.save(tmp_path, saved())
    model, before = start(make_joint())
    with pytest.raises(ValueError, match=message):
        init_from(model, tmp_path)
    assert_equal(model.get_weights(), before)


@pytest.mark.once
def test_an_error_in_the_middle_changes_nothing(tmp_path, monkeypatch):
    presets.save(tmp_path, make_encoder())
    model, before = start(make_encoder())

    def half(self, path):
        self.weights[0].assign(0 * self.weights[0])
        raise OSError("the disk is gone")

    monkeypatch.setattr(keras.Model, "load_weights", half)
    with pytest.raises(ValueError, match=r"does not fit the model.*the disk is gone"):
        init_from(model, tmp_path)
    assert_equal(model.get_weights(), before)


@pytest.mark.once
def test_folder_without_configuration(tmp_path):
    presets.save(tmp_path / "p", make_encoder())
    (tmp_path / "p" / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="config.json"):
        init_from(make_encoder(), tmp_path / "p")
    (tmp_path / "p" / "config.json").write_text(json.dumps({"a": 1}), encoding="utf-8")
    with pytest.raises(ValueError, match="must hold a preset of a kctx>BERT. Received: .* a None"):
        init_from(make_encoder(), tmp_path / "p")
