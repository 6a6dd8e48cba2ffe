"""BERT's configuration: fields of published files to and from our arguments."""

# The name in a published configuration -> ours.
ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "tanh": "tanh",
}
PUBLISHED_ACTIVATIONS = {
    "gelu_erf": "gelu",
    "gelu_tanh": "gelu_new",
    "relu": "relu",
    "tanh": "tanh",
}
# Field that must be there -> ours.
SIZES = {
    "vocab_size": "vocabulary_size",
    "num_hidden_layers": "num_layers",
    "hidden_size": "hidden_dim",
    "num_attention_heads": "num_heads",
    "intermediate_size": "intermediate_dim",
}
# Field -> ours, and the value that its absence means in the published code.
OPTIONAL = {
    "max_position_embeddings": ("max_sequence_length", 512),
    "hidden_dropout_prob": ("dropout", 0.1),
    "attention_probs_dropout_prob": ("attention_dropout", 0.1),
    "layer_norm_eps": ("layer_norm_epsilon", 1e-12),
}


def bert_arguments(config, path):
    """Arguments of `kctx.models.BERT` from a published configuration.

    The activation "gelu" means erf here: it was so when the original checkpoints were trained, and
    is so in Hugging Face's port; the original repository has read it as tanh since February 2019.

    Args:
        config: dict, contents of config.json or bert_config.json.
        path: what to name in messages.

    Raises:
        ValueError: fields are missing, or have values that our model has no equal for.
    """
    absent = [field for field in SIZES if field not in config]
    if absent:
        raise ValueError(f"The configuration of {path} lacks {', '.join(absent)}")
    activation = config.get("hidden_act", "gelu")
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"`hidden_act` of {path} must be one of {', '.join(ACTIVATIONS)}. "
            f"Received: {activation!r}"
        )
    positions = config.get("position_embedding_type", "absolute")
    if positions != "absolute":
        raise ValueError(
            f'`position_embedding_type` of {path} must be "absolute". Received: {positions!r}'
        )
    if config.get("is_decoder") or config.get("add_cross_attention"):
        raise ValueError(f"{path} is a decoder; supported are encoders, which see both sides.")
    if not config.get("tie_word_embeddings", True):
        raise ValueError(f"{path} has an output table of its own; supported are tied tables.")
    # Only the original code has another default for this one.
    segments = config.get("type_vocab_size", 2 if "model_type" in config else 16)
    return {
        **{ours: config[field] for field, ours in SIZES.items()},
        **{ours: config.get(field, default) for field, (ours, default) in OPTIONAL.items()},
        "num_segments": segments,
        "activation": ACTIVATIONS[activation],
    }


def published_config(encoder):
    """The fields of a Hugging Face configuration for a `kctx.models.BERT`.

    Raises:
        ValueError: the activation has no published name.
    """
    if encoder.activation not in PUBLISHED_ACTIVATIONS:
        raise ValueError(
            f"`activation` must be one of {', '.join(PUBLISHED_ACTIVATIONS)} to be saved in "
            f"Hugging Face's format. Received: {encoder.activation!r}"
        )
    return {
        "model_type": "bert",
        "hidden_act": PUBLISHED_ACTIVATIONS[encoder.activation],
        **{field: getattr(encoder, ours) for field, ours in SIZES.items()},
        **{field: getattr(encoder, ours) for field, (ours, _) in OPTIONAL.items()},
        "type_vocab_size": encoder.num_segments,
        "initializer_range": 0.02,
        "position_embedding_type": "absolute",
        "pad_token_id": 0,
        "tie_word_embeddings": True,
    }
