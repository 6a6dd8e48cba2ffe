"""Loading Hugging Face folders."""

import json

import keras
import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from kctx import convert, heads
from kctx.heads import Classifier, Regressor, encoder_of
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from tests.convert.folders import (
    CLASSIFIER_SHAPES,
    CONFIG,
    MASKED_LM_SHAPES,
    NEXT_SENTENCE_SHAPES,
    dense,
    encoder_shapes,
    tensors_of,
    write_folder,
)

pytestmark = pytest.mark.once


def numpy_of(variable):
    return keras.ops.convert_to_numpy(variable)


def assert_encoder(encoder, tensors, prefix="bert."):
    """A few variables of each kind, the transposed ones among them."""
    expected = {
        "embeddings.word_embeddings.weight": encoder.token_embedding.embeddings,
        "embeddings.token_type_embeddings.weight": encoder.segment_embedding.embeddings,
        "embeddings.LayerNorm.bias": encoder.embedding_norm.beta,
        "encoder.layer.1.attention.self.key.bias": encoder.blocks[1].attention.key.bias,
        "encoder.layer.0.output.LayerNorm.weight": encoder.blocks[0].feed_forward_norm.gamma,
    }
    for name, variable in expected.items():
        np.testing.assert_array_equal(numpy_of(variable), tensors[prefix + name])
    inner = numpy_of(encoder.blocks[1].feed_forward.inner.kernel)
    np.testing.assert_array_equal(
        inner, tensors[f"{prefix}encoder.layer.1.intermediate.dense.weight"].T
    )


def test_encoder_with_every_variable(tmp_path):
    tensors = tensors_of(encoder_shapes())
    encoder, report = convert.load_encoder(write_folder(tmp_path / "m", tensors))
    assert isinstance(encoder, BERT)
    assert_encoder(encoder, tensors)
    assert len(report.matched) == len(tensors) == len(encoder.weights)
    assert {tensor.source for tensor in report.matched} == set(tensors)
    assert (report.missing, report.unexpected, report.skipped) == ([], [], [])
    assert report.family == "BERT"
    tensor = next(t for t in report.matched if t.source.endswith("0.intermediate.dense.weight"))
    assert tensor.target == "encoder.blocks.0.feed_forward.inner.kernel"
    assert tensor.shape == (8, 16)


def test_report_is_printed_as_a_table(tmp_path):
    tensors = tensors_of({**encoder_shapes(), **NEXT_SENTENCE_SHAPES})
    _, report = convert.load_encoder(write_folder(tmp_path / "m", tensors))
    text = str(report)
    assert "matched" in text and str(len(report.matched)) in text
    assert "cls.seq_relationship.weight" in text


def test_names_without_prefix_and_with_gamma_and_beta(tmp_path):
    """As BertModel alone is saved, and as the first checkpoints spelt their norms."""
    tensors = tensors_of(encoder_shapes())
    renamed = {}
    for name, value in tensors.items():
        name = name.removeprefix("bert.")
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma")
        renamed[name.replace("LayerNorm.bias", "LayerNorm.beta")] = value
    encoder, report = convert.load_encoder(write_folder(tmp_path / "m", renamed))
    assert_encoder(encoder, tensors)
    assert not report.missing and not report.unexpected


def test_options_and_configuration(tmp_path):
    config = {**CONFIG, "hidden_act": "gelu_new", "layer_norm_eps": 1e-5}
    config |= {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.3}
    folder = write_folder(tmp_path / "m", tensors_of(encoder_shapes()), config)
    encoder, _ = convert.load_encoder(folder)
    assert encoder.activation == "gelu_tanh"
    assert encoder.layer_norm_epsilon == 1e-5
    assert (encoder.dropout, encoder.attention_dropout) == (0.2, 0.3)
    assert encoder.num_segments == 3
    encoder, report = convert.load_encoder(
        folder, dropout=0.0, activation="relu", dtype="bfloat16", pooler=False, name="mine"
    )
    assert (encoder.dropout, encoder.activation, encoder.name) == (0.0, "relu", "mine")
    assert encoder.token_embedding.embeddings.dtype == "bfloat16"
    assert encoder.pooler is None
    assert report.unexpected == ["bert.pooler.dense.bias", "bert.pooler.dense.weight"]
    with pytest.raises(ValueError, match="Options must be .* Received: hidden_dim"):
        convert.load_encoder(folder, hidden_dim=16)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_half_precision_files(tmp_path, dtype):
    tensors = {k: v.astype(dtype) for k, v in tensors_of(encoder_shapes()).items()}
    encoder, _ = convert.load_encoder(write_folder(tmp_path / "m", tensors))
    assert encoder.token_embedding.embeddings.dtype == "float32"
    assert_encoder(encoder, {name: value.astype("float32") for name, value in tensors.items()})


def test_pretraining_heads(tmp_path):
    shapes = {**encoder_shapes(), **MASKED_LM_SHAPES, **NEXT_SENTENCE_SHAPES}
    tensors = tensors_of(shapes)
    copies = {
        "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"],
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"],
        "bert.embeddings.position_ids": np.arange(12)[None],
    }
    folder = write_folder(tmp_path / "m", {**tensors, **copies})
    model, report = convert.load_model(folder)
    assert isinstance(model, Joint)
    assert [type(objective) for objective in model.objectives] == [MaskedLM, NextSentence]
    masked_lm, next_sentence = model.objectives
    np.testing.assert_array_equal(
        numpy_of(masked_lm.head.transform.kernel),
        tensors["cls.predictions.transform.dense.weight"].T,
    )
    np.testing.assert_array_equal(
        numpy_of(masked_lm.output_bias.bias), tensors["cls.predictions.bias"]
    )
    np.testing.assert_array_equal(
        numpy_of(next_sentence.classifier.kernel), tensors["cls.seq_relationship.weight"].T
    )
    assert sorted(report.skipped) == sorted(copies)
    assert not report.unexpected

    _, report = convert.load_encoder(folder)
    assert sorted(report.unexpected) == sorted({**MASKED_LM_SHAPES, **NEXT_SENTENCE_SHAPES})


def test_masked_lm_alone_and_without_pooler(tmp_path):
    tensors = tensors_of({**encoder_shapes(pooler=False), **MASKED_LM_SHAPES})
    model, report = convert.load_model(write_folder(tmp_path / "m", tensors))
    assert isinstance(model, MaskedLM)
    assert model.encoder.pooler is None
    assert len(report.matched) == len(tensors)


def test_bias_under_the_name_of_the_decoder_only(tmp_path):
    tensors = tensors_of({**encoder_shapes(pooler=False), **MASKED_LM_SHAPES})
    bias = tensors.pop("cls.predictions.bias")
    tensors["cls.predictions.decoder.bias"] = bias
    model, report = convert.load_model(write_folder(tmp_path / "m", tensors))
    np.testing.assert_array_equal(numpy_of(model.output_bias.bias), bias)
    assert not report.skipped


def test_next_sentence_alone(tmp_path):
    tensors = tensors_of({**encoder_shapes(), **NEXT_SENTENCE_SHAPES})
    model, _ = convert.load_model(write_folder(tmp_path / "m", tensors))
    assert isinstance(model, NextSentence)


def test_output_table_that_is_not_tied(tmp_path):
    tensors = tensors_of({**encoder_shapes(), **MASKED_LM_SHAPES})
    tensors["cls.predictions.decoder.weight"] = np.zeros((30, 8), "float32")
    with pytest.raises(ValueError, match="not tied"):
        convert.load_model(write_folder(tmp_path / "m", tensors))


def test_classification(tmp_path):
    tensors = tensors_of({**encoder_shapes(), **CLASSIFIER_SHAPES})
    config = {**CONFIG, "classifier_dropout": 0.4}
    model, report = convert.load_model(write_folder(tmp_path / "m", tensors, config))
    head = model.layers[-1]
    assert isinstance(head, Classifier)
    assert (head.num_classes, head.dropout, head.pooling) == (3, 0.4, "pooled")
    np.testing.assert_array_equal(numpy_of(head.dense.kernel), tensors["classifier.weight"].T)
    assert_encoder(encoder_of(model), tensors)
    assert len(report.matched) == len(tensors)


def test_one_class_is_regression(tmp_path):
    tensors = tensors_of({**encoder_shapes(), **dense("classifier", 8, 1)})
    model, _ = convert.load_model(write_folder(tmp_path / "m", tensors))
    assert isinstance(model.layers[-1], Regressor)


SPAN_SHAPES = dense("qa_outputs", 8, 2)


@pytest.mark.parametrize(
    ("architecture", "pooler", "shapes", "kind"),
    [
        ("BertForTokenClassification", False, CLASSIFIER_SHAPES, heads.Tagger),
        ("BertForTokenClassification", True, CLASSIFIER_SHAPES, heads.Tagger),
        (None, False, CLASSIFIER_SHAPES, heads.Tagger),
        ("BertForMultipleChoice", True, dense("classifier", 8, 1), heads.ChoiceScorer),
        ("BertForSequenceClassification", True, dense("classifier", 8, 1), heads.Regressor),
        ("BertForQuestionAnswering", False, SPAN_SHAPES, heads.Span),
        (None, True, SPAN_SHAPES, heads.Span),
    ],
)
def test_heads_are_told_by_architecture_and_names(tmp_path, architecture, pooler, shapes, kind):
    tensors = tensors_of({**encoder_shapes(pooler), **shapes})
    config = {**CONFIG, "architectures": architecture and [architecture], "classifier_dropout": 0.4}
    model, report = convert.load_model(write_folder(tmp_path / "m", tensors, config))
    head = heads.head_of(model)
    assert type(head) is kind
    assert head.dropout == (0.0 if kind is heads.Span else 0.4)
    (kernel,) = (tensors[name] for name in shapes if name.endswith("weight"))
    np.testing.assert_array_equal(numpy_of(head.dense.kernel), kernel.T)
    assert len(report.matched) == len(tensors) and not report.unexpected
    assert_encoder(encoder_of(model), tensors)


def test_heads_that_there_are_none_for(tmp_path):
    tensors = tensors_of({**encoder_shapes(), **dense("projection", 8, 4)})
    config = {**CONFIG, "architectures": ["BertForImageRetrieval"]}
    folder = write_folder(tmp_path / "m", tensors, config)
    with pytest.raises(ValueError, match="is a BertForImageRetrieval, and there is no such head"):
        convert.load_model(folder)
    encoder, report = convert.load_encoder(folder)
    assert isinstance(encoder, BERT)
    assert report.unexpected == ["projection.bias", "projection.weight"]


def test_a_head_without_the_pooler_it_needs_is_left_aside(tmp_path):
    tensors = tensors_of({**encoder_shapes(), **CLASSIFIER_SHAPES})
    config = {**CONFIG, "architectures": ["BertForSequenceClassification"]}
    folder = write_folder(tmp_path / "m", tensors, config)
    model, report = convert.load_model(folder, pooler=False)
    assert isinstance(model, BERT)
    assert [name for name in report.unexpected if "pooler" not in name] == [
        "classifier.bias",
        "classifier.weight",
    ]


def test_shards(tmp_path):
    tensors = tensors_of(encoder_shapes())
    folder = write_folder(tmp_path / "m", tensors)
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    index = {}
    for number, part in enumerate((names[:10], names[10:]), 1):
        file = f"model-0000{number}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, folder / file)
        index |= dict.fromkeys(part, file)
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": index}), encoding="utf-8")
    encoder, report = convert.load_encoder(folder)
    assert_encoder(encoder, tensors)
    assert len(report.matched) == len(tensors)

    (folder / "model-00002-of-00002.safetensors").rename(folder / "elsewhere")
    with pytest.raises(FileNotFoundError, match="not there: model-00002-of-00002.safetensors"):
        convert.load_encoder(folder)
    save_file({"x": np.zeros(1)}, folder / "model-00002-of-00002.safetensors")
    with pytest.raises(ValueError, match="names tensors that none of its shards holds"):
        convert.load_encoder(folder)


# What must be refused


def test_missing_tensors(tmp_path):
    tensors = tensors_of(encoder_shapes())
    del tensors["bert.encoder.layer.1.output.dense.bias"]
    del tensors["bert.pooler.dense.bias"]
    folder = write_folder(tmp_path / "m", tensors)
    with pytest.raises(
        ValueError, match=r"lacks 2 tensors: bert.encoder.layer.1.output.dense.bias"
    ):
        convert.load_encoder(folder)
    with pytest.raises(ValueError, match=r"lacks 1 tensors: bert.pooler.dense.bias"):
        convert.load_encoder(folder, allow_missing=["*.layer.1.output.*"])
    encoder, report = convert.load_encoder(
        folder, allow_missing=["encoder.pooler.*", "bert.encoder.layer.1.output.dense.bias"]
    )
    assert [tensor.target for tensor in report.missing] == [
        "encoder.blocks.1.feed_forward.outer.bias",
        "encoder.pooler.bias",
    ]
    assert_encoder(encoder, tensors)


def test_missing_layer(tmp_path):
    folder = write_folder(tmp_path / "m", tensors_of(encoder_shapes(layers=1)))
    with pytest.raises(ValueError, match="lacks 16 tensors"):
        convert.load_encoder(folder)


def test_layers_beyond_the_configuration_are_reported(tmp_path):
    folder = write_folder(tmp_path / "m", tensors_of(encoder_shapes(layers=3)))
    _, report = convert.load_encoder(folder)
    assert len(report.unexpected) == 16


def test_wrong_shape_names_tensor_and_both_shapes(tmp_path):
    folder = write_folder(
        tmp_path / "m", tensors_of(encoder_shapes()), {**CONFIG, "vocab_size": 31}
    )
    message = r"`bert.embeddings.word_embeddings.weight` .* \(30, 8\), but .* needs \(31, 8\)"
    with pytest.raises(ValueError, match=message):
        convert.load_encoder(folder)
    tensors = tensors_of(
        {**encoder_shapes(), "bert.encoder.layer.0.intermediate.dense.weight": (8, 16)}
    )
    folder = write_folder(tmp_path / "n", tensors)
    with pytest.raises(ValueError, match=r"has shape \(8, 16\), but .* needs \(16, 8\)"):
        convert.load_encoder(folder)


def test_missing_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="No folder"):
        convert.load_model(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match=r"has no config.json.*It holds: nothing"):
        convert.load_model(tmp_path / "empty")
    (tmp_path / "run" / "preset").mkdir(parents=True)
    (tmp_path / "run" / "preset" / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"It holds: preset\. Give .*preset, which has one"):
        convert.load_model(tmp_path / "run")
    folder = write_folder(tmp_path / "m", tensors_of(encoder_shapes()))
    (folder / "model.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no weights. Supported: model.safetensors"):
        convert.load_model(folder)


def test_broken_configuration(tmp_path):
    folder = write_folder(tmp_path / "m", tensors_of(encoder_shapes()))
    (folder / "config.json").write_text('{"model_type": "be', encoding="utf-8")
    with pytest.raises(ValueError, match=r"config.json is not valid JSON"):
        convert.load_model(folder)
    (folder / "config.json").write_bytes(b'{"model_type": "\xff"}')
    with pytest.raises(ValueError, match=r"config.json is not valid JSON"):
        convert.load_model(folder)
    (folder / "config.json").write_text("[]", encoding="utf-8")
    with pytest.raises(ValueError, match=r"must hold a dict. Received: list"):
        convert.load_model(folder)


def test_loading_changes_nothing_when_it_fails(tmp_path):
    """Errors come before the first variable is assigned; a reader that counts proves it."""
    from kctx.convert.assign import Part, assign
    from kctx.convert.bert_names import encoder_rows, standard_names
    from kctx.convert.report import Report

    class Counting:
        layout = "huggingface"
        shapes = {name: shape for name, shape in encoder_shapes().items() if "pooler" not in name}

        def read(self, name):
            raise AssertionError(name)

    encoder = BERT(30, 2, 8, 2, 16, max_sequence_length=12, num_segments=3)
    parts = [Part("encoder", encoder, encoder_rows(2, pooler=True))]
    standard = standard_names(Counting.shapes, "huggingface")
    with pytest.raises(ValueError, match="lacks 2 tensors"):
        assign(parts, Counting(), standard, Report("x", "x", "BERT"))
