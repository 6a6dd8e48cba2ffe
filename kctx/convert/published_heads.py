"""The heads of published checkpoints as ours."""

from kctx.convert.assign import Part
from kctx.heads import (
    ChoiceScorer,
    Classifier,
    Regressor,
    Span,
    Tagger,
    attach,
    attach_choices,
)
from kctx.objectives import Joint, MaskedLM, NextSentence

# Kinds of models in `architectures`, as "BertForMaskedLM", that can be loaded; "Model" is bare.
KINDS = (
    "Model",
    "PreTraining",
    "MaskedLM",
    "NextSentencePrediction",
    "SequenceClassification",
    "TokenClassification",
    "QuestionAnswering",
    "MultipleChoice",
)


def attach_heads(source, family, standard, encoder):
    """The model with the heads of the checkpoint, not yet loaded, and their parts."""

    def holds(rows):
        return bool(rows) and getattr(rows[0], source.checkpoint.layout) in standard

    parts = []
    if holds(family.masked_lm_rows):
        parts.append(Part("masked_lm", MaskedLM(encoder), family.masked_lm_rows))
    if holds(family.next_sentence_rows) and encoder.pooler is not None:
        parts.append(Part("next_sentence", NextSentence(encoder), family.next_sentence_rows))
    if parts:
        objectives = [part.root for part in parts]
        return (objectives[0] if len(parts) == 1 else Joint(objectives)), parts
    kind = head_kind(source.config, source.folder)
    has_pooler = any("pooler" in name for name in standard)
    dropout = source.config.get("classifier_dropout")
    dropout = encoder.dropout if dropout is None else dropout
    rows, attached = family.classifier_rows, attach
    if holds(family.span_rows):
        rows, head = family.span_rows, Span()
    elif not holds(rows):
        return encoder, []
    else:
        kernel = standard[getattr(rows[0], source.checkpoint.layout)]
        num_classes = source.checkpoint.shapes[kernel][0]
        if kind == "TokenClassification" or (kind is None and not has_pooler):
            head = Tagger(num_classes, dropout)
        elif encoder.pooler is None:
            return encoder, []
        elif kind == "MultipleChoice":
            head, attached = ChoiceScorer(dropout, pooling="pooled"), attach_choices
        elif num_classes == 1:
            head = Regressor(dropout, pooling="pooled")
        else:
            head = Classifier(num_classes, dropout, pooling="pooled")
    return attached(encoder, head), [Part(head.name, head, rows)]


def head_kind(config, path):
    """What a model is for: one of `KINDS`, or None where its configuration does not say.

    Raises:
        ValueError: something else, named in the message.
    """
    names = architectures(config)
    kind = next((kind for name in names for kind in KINDS if name.endswith(kind)), None)
    if kind is None and any("For" in name for name in names):
        raise ValueError(
            f"{path} is a {', '.join(names)}, and there is no such head here: there are those for "
            f"{', '.join(KINDS[1:])}. `kctx.convert.load_encoder` loads the encoder alone."
        )
    return kind


def architectures(config):
    """The list `architectures` of a Hugging Face configuration, which may be null."""
    return config.get("architectures") or []
