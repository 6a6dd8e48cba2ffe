"""Which family a checkpoint belongs to, from its names and its configuration."""

import re

from kctx.convert import bert

# Family -> how it is loaded.
FAMILIES = {"BERT": bert.FAMILY}

# Family -> pattern that one of the names must match. First match wins; BERT's own names, which
# others share, come last.
PATTERNS = {
    "DistilBERT": r"(^|distilbert\.)transformer\.layer\.\d+\.attention\.q_lin|^distilbert\.",
    "ALBERT": r"albert_layer_groups|embedding_hidden_mapping_in|encoder/transformer/group_\d+",
    "XLNet": r"rel_attn[./]",
    "GPT-1": r"(^|\.)tokens_embed\.weight$",
    "GPT-2": r"(^|[./])h[./]?\d+[./]attn[./]c_attn|(^|[./])wte(\.weight)?$",
    "XLM": r"^(transformer\.)?attentions\.\d+\.q_lin",
    "T5": r"(^|\.)(encoder|decoder)\.block\.\d+\.layer\.\d+\.",
    "BART": r"(^|\.)(encoder|decoder)\.layers\.\d+\.self_attn",
    "ELECTRA": r"^electra[./]|discriminator_predictions|generator_predictions",
    "DeBERTa": r"^deberta\.|encoder\.rel_embeddings",
    "MPNet": r"^mpnet\.|relative_attention_bias",
    "NEZHA": r"^nezha\.|relative_positions_encoding|relative_positions_embeddings",
    "ERNIE": r"^ernie\.|task_type_embeddings",
    "RoBERTa": r"^(roberta|xlm_roberta|camembert)\.|^lm_head\.(dense|layer_norm)",
}
BERT_NAMES = r"attention[./]self[./]query[./](weight|kernel)|embeddings[./]word_embeddings"

# `model_type` of a Hugging Face configuration -> family.
MODEL_TYPES = {
    "bert": "BERT",
    "roberta": "RoBERTa",
    "xlm-roberta": "RoBERTa",
    "camembert": "RoBERTa",
    "albert": "ALBERT",
    "xlnet": "XLNet",
    "gpt2": "GPT-2",
    "openai-gpt": "GPT-1",
    "nezha": "NEZHA",
    "distilbert": "DistilBERT",
    "electra": "ELECTRA",
    "deberta": "DeBERTa",
    "deberta-v2": "DeBERTa",
    "mpnet": "MPNet",
    "ernie": "ERNIE",
    "t5": "T5",
    "bart": "BART",
    "xlm": "XLM",
}


def detect_family(names, config, path):
    """The family of a checkpoint.

    Some families share all their names with BERT (a bare RoBERTa encoder, say) and only the
    configuration tells; and some configurations say nothing, then only the names tell.

    Args:
        names: iterable of str, names of its tensors.
        config: dict, its configuration; empty if there is none.
        path: what to name in messages.

    Returns:
        str, a key of `FAMILIES`.

    Raises:
        ValueError: another family, named in the message, or none that is known.
    """
    names = list(names)
    family = _from_names(names) or _from_config(config)
    if family is None and any(re.search(BERT_NAMES, name) for name in names):
        family = "BERT"
        # The positions of NEZHA are a fixed function and have no table.
        if not any("position_embeddings" in name for name in names):
            family = "NEZHA"
    elif family == "BERT" and not any(re.search(BERT_NAMES, name) for name in names):
        family = None
    if family is None:
        raise ValueError(
            f"{path} is of a family that is not known. Supported: {', '.join(FAMILIES)}. "
            f"model_type={config.get('model_type')!r}; its first tensors are {sorted(names)[:5]}"
        )
    if family not in FAMILIES:
        raise ValueError(
            f"{path} is a {family} checkpoint, which cannot be loaded as another family. "
            f"Supported: {', '.join(FAMILIES)}."
        )
    return family


def _from_names(names):
    for family, pattern in PATTERNS.items():
        if any(re.search(pattern, name) for name in names):
            return family
    return None


def _from_config(config):
    """From `model_type`, or from the fields and architectures of older configurations."""
    if config.get("use_relative_position"):
        return "NEZHA"
    if "model_type" in config:
        return MODEL_TYPES.get(config["model_type"], str(config["model_type"]))
    for architecture in config.get("architectures") or []:
        for family in sorted(set(MODEL_TYPES.values()), key=len, reverse=True):
            if architecture.lower().startswith(family.lower().replace("-", "")):
                return family
    return None
