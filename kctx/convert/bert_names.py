"""Names of BERT's tensors: ours, those of Hugging Face and those of the original checkpoints."""

from typing import NamedTuple


class Row(NamedTuple):
    """One variable: our attribute path, and the name and the layout of it elsewhere.

    A kernel here is (inputs, outputs); where it is stored as (outputs, inputs) the row says
    transposed.
    """

    target: str
    huggingface: str
    tensorflow: str
    huggingface_transposed: bool = False
    tensorflow_transposed: bool = False


def _slashed(name):
    """bert.encoder.layer.0.output -> bert/encoder/layer_0/output"""
    return name.replace(".layer.", ".layer_").replace(".", "/")


def _dense(target, name):
    return [
        Row(f"{target}.kernel", f"{name}.weight", f"{_slashed(name)}/kernel", True),
        Row(f"{target}.bias", f"{name}.bias", f"{_slashed(name)}/bias"),
    ]


def _norm(target, name):
    return [
        Row(f"{target}.gamma", f"{name}.weight", f"{_slashed(name)}/gamma"),
        Row(f"{target}.beta", f"{name}.bias", f"{_slashed(name)}/beta"),
    ]


def _table(target, name):
    return [Row(f"{target}.embeddings", f"{name}.weight", _slashed(name))]


def encoder_rows(num_layers, pooler):
    """All variables of a `kctx.models.BERT`."""
    rows = [
        *_table("token_embedding", "bert.embeddings.word_embeddings"),
        *_table("position_embedding", "bert.embeddings.position_embeddings"),
        *_table("segment_embedding", "bert.embeddings.token_type_embeddings"),
        *_norm("embedding_norm", "bert.embeddings.LayerNorm"),
    ]
    for index in range(num_layers):
        ours, theirs = f"blocks.{index}", f"bert.encoder.layer.{index}"
        rows += [
            *_dense(f"{ours}.attention.query", f"{theirs}.attention.self.query"),
            *_dense(f"{ours}.attention.key", f"{theirs}.attention.self.key"),
            *_dense(f"{ours}.attention.value", f"{theirs}.attention.self.value"),
            *_dense(f"{ours}.attention.output_dense", f"{theirs}.attention.output.dense"),
            *_norm(f"{ours}.attention_norm", f"{theirs}.attention.output.LayerNorm"),
            *_dense(f"{ours}.feed_forward.inner", f"{theirs}.intermediate.dense"),
            *_dense(f"{ours}.feed_forward.outer", f"{theirs}.output.dense"),
            *_norm(f"{ours}.feed_forward_norm", f"{theirs}.output.LayerNorm"),
        ]
    if pooler:
        rows += _dense("pooler", "bert.pooler.dense")
    return rows


# Variables of a `kctx.objectives.MaskedLM` beyond its encoder's.
MASKED_LM_ROWS = [
    *_dense("head.transform", "cls.predictions.transform.dense"),
    *_norm("head.transform_norm", "cls.predictions.transform.LayerNorm"),
    Row("output_bias.bias", "cls.predictions.bias", "cls/predictions/output_bias"),
]

# Variables of a `kctx.objectives.NextSentence` beyond its encoder's.
NEXT_SENTENCE_ROWS = [
    Row(
        "classifier.kernel",
        "cls.seq_relationship.weight",
        "cls/seq_relationship/output_weights",
        True,
        True,
    ),
    Row("classifier.bias", "cls.seq_relationship.bias", "cls/seq_relationship/output_bias"),
]

# Variables of a `kctx.heads.Classifier` or `ChoiceScorer` on the pooled output, or of a `Tagger`.
CLASSIFIER_ROWS = [
    Row("dense.kernel", "classifier.weight", "output_weights", True, True),
    Row("dense.bias", "classifier.bias", "output_bias"),
]

# Variables of a `kctx.heads.Span`.
SPAN_ROWS = [
    Row("dense.kernel", "qa_outputs.weight", "cls/squad/output_weights", True, True),
    Row("dense.bias", "qa_outputs.bias", "cls/squad/output_bias"),
]

# A second copy of the token table, which some files hold, and the table.
TIED = ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight")


def standard_names(names, layout):
    """Spelling of this file -> name in the checkpoint.

    Undoes what differs between files of one layout: no `bert` prefix (a bare encoder), LayerNorm's
    `gamma` and `beta`, and the bias of the masked-LM head under the name of the decoder.
    """
    separator = {"huggingface": ".", "tensorflow": "/"}[layout]
    prefix = f"bert{separator}"
    prefixed = any(name.startswith(prefix) for name in names)
    standard = {}
    for name in names:
        spelling = name
        if layout == "huggingface":
            for theirs, usual in (("gamma", "weight"), ("beta", "bias")):
                if name.endswith(f"LayerNorm.{theirs}"):
                    spelling = name.removesuffix(theirs) + usual
        first = spelling.split(separator)[0]
        if not prefixed and first in ("embeddings", "encoder", "pooler"):
            spelling = prefix + spelling
        standard[spelling] = name
    if "cls.predictions.decoder.bias" in standard:
        standard.setdefault("cls.predictions.bias", standard["cls.predictions.decoder.bias"])
    return standard
