"""No argument of a layer or head gets lost in its configuration."""

import inspect

import keras
import pytest

from kctx import heads, layers

ALLOWED = layers.tag_transitions(["O", "B-X"], "BIO")
# Every argument of its own, at a value that is not the default.
ARGUMENTS = {
    layers.FeedForward: {"intermediate_dim": 3, "activation": "relu", "initializer": "ones"},
    layers.GatherPositions: {},
    layers.MaskedLMHead: {"activation": "relu", "layer_norm_epsilon": 0.5, "initializer": "ones"},
    layers.MultiHeadAttention: {"num_heads": 3, "dropout": 0.25, "initializer": "ones"},
    layers.OutputBias: {},
    layers.Pooling: {"kind": "max"},
    layers.PositionEmbedding: {"max_sequence_length": 3, "initializer": "ones"},
    layers.SubwordEmbedding: {
        "input_dim": 5,
        "output_dim": 3,
        "embeddings_initializer": "ones",
    },
    layers.PostNormBlock: {
        "num_heads": 3,
        "intermediate_dim": 5,
        "activation": "relu",
        "dropout": 0.25,
        "attention_dropout": 0.5,
        "layer_norm_epsilon": 0.5,
        "initializer": "ones",
    },
    layers.TokenEmbedding: {"input_dim": 3, "output_dim": 5, "reverse_dtype": "float16"},
    heads.Classifier: {"num_classes": 3, "dropout": 0.25, "pooling": "max"},
    heads.Regressor: {"dropout": 0.25, "pooling": "max"},
    layers.CRF: {"num_tags": 2, "allowed": ALLOWED},
    heads.Tagger: {"num_tags": 2, "dropout": 0.25, "allowed": ALLOWED},
    heads.RoleTagger: {
        "num_tags": 2,
        "indicator_dim": 3,
        "hidden_dim": 5,
        "dropout": 0.25,
        "allowed": ALLOWED,
    },
    heads.Span: {"dropout": 0.25},
    heads.ChoiceScorer: {"dropout": 0.25, "pooling": "max"},
    heads.BiEncoder: {"pooling": "max", "dropout": 0.3},
    heads.MentionRanker: {"hidden_dim": 3, "feature_dim": 5, "dropout": 0.25},
}


def own_arguments(layer):
    """Names of the constructor's arguments where the class defines one."""
    if "__init__" not in vars(layer):
        return set()
    return {
        parameter.name
        for parameter in inspect.signature(layer.__init__).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD and parameter.name != "self"
    }


def test_all_are_here():
    public = {
        value
        for module in (layers, heads)
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, keras.layers.Layer)
    }
    assert {layer for layer in public if own_arguments(layer)} <= set(ARGUMENTS)


@pytest.mark.parametrize("layer", ARGUMENTS, ids=lambda layer: layer.__name__)
def test_configuration_holds_all(layer):
    arguments = ARGUMENTS[layer]
    assert set(arguments) == own_arguments(layer)
    made = layer(**arguments, name="mine", dtype="mixed_bfloat16", trainable=False)
    config = made.get_config()
    for name, value in arguments.items():
        if name.endswith("initializer"):
            assert config[name]["class_name"] == "Ones"
        else:
            assert config[name] == value
    assert (config["name"], config["trainable"]) == ("mine", False)
    assert layer.from_config(config).get_config() == config
