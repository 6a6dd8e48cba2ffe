"""Tokenizer settings from the files beside a checkpoint."""

import json

import keras
import pytest

from kctx import convert
from kctx.convert.wordpiece_settings import has_uppercase, load_tokenizer
from kctx.heads import Classifier
from kctx.models import BERT
from kctx.presets import TextModel
from tests.convert.folders import (
    CLASSIFIER_SHAPES,
    CONFIG,
    VOCABULARY,
    dense,
    encoder_shapes,
    tensors_of,
    write_folder,
    write_vocabulary,
)

pytestmark = pytest.mark.once


def write(folder, name, value):
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


def fast(**normalizer):
    ids = {token: index for index, token in enumerate(VOCABULARY)}
    return {
        "model": {"type": "WordPiece", "vocab": ids, "max_input_chars_per_word": 50},
        "normalizer": {"type": "BertNormalizer", **normalizer},
    }


def test_guess_from_the_vocabulary(tmp_path):
    write_vocabulary(tmp_path)
    with pytest.warns(UserWarning, match="looks uncased, so lowercase=True"):
        tokenizer = load_tokenizer(tmp_path, "tensorflow")
    assert tokenizer.lowercase and tokenizer.strip_accents
    assert tokenizer.max_word_chars == 200
    write_vocabulary(tmp_path, [*VOCABULARY, "Paris"])
    with pytest.warns(UserWarning, match="looks cased, so lowercase=False"):
        tokenizer = load_tokenizer(tmp_path, "huggingface")
    assert not tokenizer.lowercase and not tokenizer.strip_accents
    assert tokenizer.max_word_chars == 100


def test_argument_decides_without_a_warning(tmp_path, recwarn):
    write_vocabulary(tmp_path)
    assert not load_tokenizer(tmp_path, "tensorflow", lowercase=False).lowercase
    write(tmp_path, "tokenizer_config.json", {"do_lower_case": True})
    tokenizer = load_tokenizer(tmp_path, "huggingface", lowercase=False, strip_accents=True)
    assert (tokenizer.lowercase, tokenizer.strip_accents) == (False, True)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [(["[UNK]", "[unused1]", "the", "##s", "好", "ß"], False), (["[UNK]", "##S"], True)],
)
def test_has_uppercase(vocabulary, expected):
    assert has_uppercase(vocabulary) is expected


def test_tokenizer_config(tmp_path):
    write_vocabulary(tmp_path, ["<pad>" if t == "[PAD]" else t for t in VOCABULARY])
    stored = {
        "do_lower_case": False,
        "strip_accents": None,
        "tokenize_chinese_chars": False,
        "pad_token": {"content": "<pad>", "special": True},
        "unk_token": "[UNK]",
    }
    write(tmp_path, "tokenizer_config.json", stored)
    tokenizer = load_tokenizer(tmp_path, "huggingface")
    assert (tokenizer.lowercase, tokenizer.strip_accents, tokenizer.split_cjk) == (False,) * 3
    assert tokenizer.padding_token == "<pad>" and tokenizer.padding_id == 0


def test_tokenizer_json_alone(tmp_path):
    write(tmp_path, "tokenizer.json", fast(lowercase=True, strip_accents=False))
    tokenizer = load_tokenizer(tmp_path, "huggingface")
    assert tokenizer.vocabulary == VOCABULARY
    assert (tokenizer.lowercase, tokenizer.strip_accents) == (True, False)
    assert tokenizer.max_word_chars == 50
    # The other file takes precedence, as it does there.
    write(tmp_path, "tokenizer_config.json", {"do_lower_case": False})
    assert not load_tokenizer(tmp_path, "huggingface").lowercase


def test_refusals(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no vocab.txt nor tokenizer.json"):
        load_tokenizer(tmp_path, "huggingface")
    write(tmp_path, "tokenizer.json", {"model": {"type": "BPE", "vocab": {}}})
    with pytest.raises(ValueError, match="must hold a WordPiece tokenizer. Received: 'BPE'"):
        load_tokenizer(tmp_path, "huggingface")
    write(tmp_path, "tokenizer.json", {"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 7}}})
    with pytest.raises(ValueError, match="must have the ids 0 to 1"):
        load_tokenizer(tmp_path, "huggingface")


def preset_folder(tmp_path, shapes, config):
    folder = write_folder(tmp_path / "m", tensors_of({**encoder_shapes(), **shapes}), config)
    write(folder, "tokenizer_config.json", {"do_lower_case": True, "model_max_length": 10**30})
    return write_vocabulary(folder)


def test_labels_and_lengths(tmp_path):
    # Listed out of order, as dicts may be.
    config = {**CONFIG, "id2label": {"2": "neutral", "0": "bad", "1": "good"}}
    model, report = convert.load_preset(preset_folder(tmp_path, CLASSIFIER_SHAPES, config))
    assert model.labels == ["bad", "good", "neutral"]
    assert model.task == "classification"
    assert model.preprocessor.sequence_length == 12
    assert not report.missing
    answer = model.predict(["a good film"])[0]
    assert list(answer["scores"]) == model.labels

    write(tmp_path / "m", "tokenizer_config.json", {"model_max_length": 8})
    with pytest.warns(UserWarning, match="looks uncased"):
        model, _ = convert.load_preset(tmp_path / "m")
    assert model.preprocessor.sequence_length == 8
    model, _ = convert.load_preset(tmp_path / "m", lowercase=True, sequence_length=6)
    assert model.preprocessor.sequence_length == 6


def test_labels_that_do_not_fit(tmp_path):
    config = {**CONFIG, "id2label": {"0": "bad", "1": "good"}}
    with pytest.raises(ValueError, match="`id2label` of .* must name the classes 0 to 2"):
        convert.load_preset(preset_folder(tmp_path, CLASSIFIER_SHAPES, config))


def test_several_labels_to_a_text(tmp_path):
    config = {**CONFIG, "problem_type": "multi_label_classification"}
    with pytest.raises(ValueError, match="several labels to one text"):
        convert.load_preset(preset_folder(tmp_path, CLASSIFIER_SHAPES, config))


def test_regression(tmp_path):
    model, _ = convert.load_preset(preset_folder(tmp_path, dense("classifier", 8, 1), CONFIG))
    assert (model.task, model.labels) == ("regression", None)
    assert list(model.predict(["a film"])[0]) == ["score"]


def test_presets_of_ours(tmp_path):
    model, _ = convert.load_preset(preset_folder(tmp_path, CLASSIFIER_SHAPES, CONFIG))
    model.save(tmp_path / "ours")
    again, report = convert.load_preset(tmp_path / "ours")
    assert report.file_format == "preset" and report.family == "BERT"
    assert len(report.matched) == len(model.model.weights)
    texts = ["a good film", "the"]
    assert again.predict(texts) == model.predict(texts)
    bare, _ = convert.load_model(tmp_path / "ours")
    assert type(bare) is type(model.model)
    encoder, _ = convert.load_encoder(tmp_path / "ours", dtype="mixed_bfloat16")
    assert encoder.num_layers == 2 and encoder.dtype_policy.name == "mixed_bfloat16"
    with pytest.raises(ValueError, match="the only option is `dtype`. Received: dropout"):
        convert.load_encoder(tmp_path / "ours", dropout=0.5)


def test_settings_of_a_preset_of_ours(tmp_path):
    model, _ = convert.load_preset(preset_folder(tmp_path, CLASSIFIER_SHAPES, CONFIG))
    model.save(tmp_path / "ours")
    same, _ = convert.load_preset(tmp_path / "ours")
    assert same.preprocessor.tokenizer.lowercase and same.preprocessor.sequence_length == 12
    changed, _ = convert.load_preset(
        tmp_path / "ours", lowercase=False, strip_accents=True, sequence_length=7
    )
    tokenizer = changed.preprocessor.tokenizer
    assert (tokenizer.lowercase, tokenizer.strip_accents) == (False, True)
    assert changed.preprocessor.sequence_length == 7
    assert (changed.task, changed.labels) == (model.task, model.labels)
    with pytest.raises(ValueError, match="13, more than the 12 positions"):
        convert.load_preset(tmp_path / "ours", sequence_length=13)
    for load in (convert.load_preset, convert.load_model, convert.load_encoder):
        with pytest.raises(ValueError, match=r"`allow_missing` cannot apply.*\['\*'\]"):
            load(tmp_path / "ours", allow_missing=["*"])
    TextModel(model.model).save(tmp_path / "bare")
    with pytest.raises(ValueError, match="no preprocessor.*Received: {'lowercase': False}"):
        convert.load_preset(tmp_path / "bare", lowercase=False)


def test_preset_of_a_model_without_a_part_that_is_the_encoder(tmp_path):
    encoder = BERT(30, 1, 8, 2, 16, max_sequence_length=12)
    model = keras.Model(encoder.input, Classifier(2)(encoder.output))
    TextModel(model, None, "classification", ["a", "b"]).save(tmp_path / "ours")
    loaded, report = convert.load_preset(tmp_path / "ours")
    assert loaded.labels == ["a", "b"] and report.family == "Functional"
    with pytest.raises(ValueError, match="exactly one encoder"):
        convert.load_encoder(tmp_path / "ours")


def test_lengths_beyond_the_model(tmp_path):
    folder = preset_folder(tmp_path, CLASSIFIER_SHAPES, CONFIG)
    with pytest.raises(ValueError, match="13, more than the 12 positions"):
        convert.load_preset(folder, sequence_length=13)


def test_original_checkpoint(kctx_data):
    folder = kctx_data / "checkpoints" / "bert_tf1"
    with pytest.warns(UserWarning, match="looks uncased"):
        model, _ = convert.load_preset(folder)
    assert model.preprocessor.tokenizer.vocabulary_size == 15
    assert model.preprocessor.sequence_length == 16
    model, _ = convert.load_preset(folder, lowercase=False)
    assert not model.preprocessor.tokenizer.lowercase
