"""A checkpoint of another family is told by name."""

import pytest

from kctx import convert
from kctx.convert.families import FAMILIES, detect_family
from kctx.models import BERT
from tests.convert.folders import (
    CONFIG,
    encoder_shapes,
    tensors_of,
    write_folder,
    write_vocabulary,
)

pytestmark = pytest.mark.once

LAYER = "encoder.layer.0.attention.self.query.weight"
BARE = ["embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight", LAYER]
TF = ["bert/embeddings/word_embeddings", "bert/encoder/layer_0/attention/self/query/kernel"]

FOREIGN = [
    ("RoBERTa", [f"roberta.{name}" for name in BARE], {}),
    ("RoBERTa", BARE, {"model_type": "roberta"}),  # only the configuration tells
    ("RoBERTa", BARE, {"architectures": ["RobertaModel"]}),
    ("RoBERTa", BARE, {"model_type": "xlm-roberta"}),
    ("ALBERT", ["encoder.albert_layer_groups.0.albert_layers.0.ffn.weight"], {}),
    ("ALBERT", ["bert/encoder/transformer/group_0/inner_group_0/attention_1/self/key/bias"], {}),
    ("XLNet", ["transformer.layer.0.rel_attn.q"], {}),
    ("GPT-2", ["h.0.attn.c_attn.weight", "wte.weight"], {}),
    ("GPT-2", ["transformer.wte.weight"], {"model_type": "gpt2"}),
    ("GPT-1", ["tokens_embed.weight", "h.0.attn.c_attn.weight"], {}),
    ("NEZHA", [f"nezha.{LAYER}"], {}),
    ("NEZHA", TF, {}),  # no table of positions
    ("NEZHA", [*TF, "bert/embeddings/position_embeddings"], {"use_relative_position": True}),
    ("DistilBERT", ["distilbert.transformer.layer.0.attention.q_lin.weight"], {}),
    ("DistilBERT", ["transformer.layer.0.attention.q_lin.weight"], {}),
    ("ELECTRA", [f"electra.{LAYER}"], {}),
    ("ERNIE", [*BARE, "embeddings.task_type_embeddings.weight"], {}),
    ("DeBERTa", ["deberta.embeddings.word_embeddings.weight"], {"model_type": "deberta-v2"}),
    ("mega", BARE, {"model_type": "mega"}),
]


@pytest.mark.parametrize(("family", "names", "config"), FOREIGN)
def test_other_families(family, names, config):
    with pytest.raises(ValueError, match=f"is a {family} checkpoint.*Supported: BERT"):
        detect_family(names, config, "x")


@pytest.mark.parametrize(
    ("names", "config"),
    [
        (BARE, {}),
        (BARE, {"model_type": "bert"}),
        ([f"bert.{name}" for name in BARE], {"architectures": None}),
        ([*TF, "bert/embeddings/position_embeddings"], {}),
        ([*BARE, "fit_dense.weight"], {"architectures": ["BertModel"]}),
    ],
)
def test_bert(names, config):
    assert detect_family(names, config, "x") == "BERT"


def test_unknown_names():
    with pytest.raises(ValueError, match=r"not known. Supported: BERT.*\['a', 'b'\]"):
        detect_family(["b", "a"], {}, "x")
    with pytest.raises(ValueError, match="not known"):
        detect_family(["b", "a"], {"model_type": "bert"}, "x")


@pytest.mark.parametrize(
    ("folder", "family"),
    [("gpt2_tf1", "GPT-2"), ("xlnet_tf1_empty", "XLNet"), ("xlnet_tf1_pre", "XLNet")],
)
def test_published_checkpoints(kctx_data, folder, family):
    with pytest.raises(ValueError, match=f"{folder} is a {family} checkpoint"):
        convert.load_model(kctx_data / "checkpoints" / folder)


def test_a_family_is_a_row_of_the_table(tmp_path, monkeypatch):
    class Renamed(BERT):
        pass

    monkeypatch.setitem(FAMILIES, "RoBERTa", FAMILIES["BERT"]._replace(model=Renamed))
    config = {**CONFIG, "model_type": "roberta"}
    folder = write_vocabulary(write_folder(tmp_path / "m", tensors_of(encoder_shapes()), config))
    loaded, report = convert.load_preset(folder, lowercase=True)
    assert type(loaded.model) is Renamed and report.family == "RoBERTa"
    assert len(report.matched) == len(loaded.model.weights)


def test_roberta_folder(tmp_path):
    """All names of this one are BERT's."""
    tensors = tensors_of(encoder_shapes())
    tensors = {name.removeprefix("bert."): value for name, value in tensors.items()}
    folder = write_folder(tmp_path / "m", tensors, {**CONFIG, "model_type": "roberta"})
    with pytest.raises(ValueError, match="RoBERTa"):
        convert.load_encoder(folder)
