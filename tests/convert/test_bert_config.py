"""Fields of published configurations."""

import pytest

from kctx.convert.bert_config import bert_arguments, published_config
from kctx.models import BERT
from tests.convert.folders import CONFIG

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("published", "ours"),
    [
        ("gelu", "gelu_erf"),
        ("gelu_new", "gelu_tanh"),
        ("gelu_pytorch_tanh", "gelu_tanh"),
        ("relu", "relu"),
    ],
)
def test_activations(published, ours):
    assert bert_arguments({**CONFIG, "hidden_act": published}, "x")["activation"] == ours


def test_refusals():
    with pytest.raises(ValueError, match=r"`hidden_act` of x must .* Received: \'silu\'"):
        bert_arguments({**CONFIG, "hidden_act": "silu"}, "x")
    with pytest.raises(ValueError, match="of x lacks vocab_size, hidden_size"):
        bert_arguments(
            {k: CONFIG[k] for k in CONFIG if k not in ("vocab_size", "hidden_size")}, "x"
        )
    with pytest.raises(ValueError, match="position_embedding_type"):
        bert_arguments({**CONFIG, "position_embedding_type": "relative_key"}, "x")
    with pytest.raises(ValueError, match="decoder"):
        bert_arguments({**CONFIG, "is_decoder": True}, "x")
    with pytest.raises(ValueError, match="tied"):
        bert_arguments({**CONFIG, "tie_word_embeddings": False}, "x")


def test_defaults_of_absent_fields():
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers")
    sizes += ("num_attention_heads", "intermediate_size")
    config = {key: CONFIG[key] for key in sizes}
    arguments = bert_arguments({**config, "model_type": "bert"}, "x")
    assert arguments["max_sequence_length"] == 512
    assert arguments["num_segments"] == 2
    assert arguments["layer_norm_epsilon"] == 1e-12
    assert arguments["activation"] == "gelu_erf"
    assert arguments["dropout"] == arguments["attention_dropout"] == 0.1
    assert bert_arguments(config, "x")["num_segments"] == 16  # the original code's default


@pytest.mark.parametrize("activation", ["gelu_erf", "gelu_tanh", "relu"])
def test_round_trip(activation):
    arguments = {
        "vocabulary_size": 11,
        "num_layers": 1,
        "hidden_dim": 4,
        "num_heads": 2,
        "intermediate_dim": 6,
        "max_sequence_length": 7,
        "num_segments": 3,
        "activation": activation,
        "dropout": 0.25,
        "attention_dropout": 0.5,
        "layer_norm_epsilon": 1e-6,
    }
    assert bert_arguments(published_config(BERT(**arguments)), "x") == arguments


def test_activation_without_published_name():
    with pytest.raises(ValueError, match="Received: 'linear'"):
        published_config(BERT(11, 1, 4, 2, 6, activation="linear"))
