"""Published checkpoints, and our own presets, as models."""

from kctx import presets
from kctx.convert.assign import Part, assign
from kctx.convert.bert_config import bert_arguments
from kctx.convert.bert_names import (
    CLASSIFIER_ROWS,
    MASKED_LM_ROWS,
    NEXT_SENTENCE_ROWS,
    encoder_rows,
    standard_names,
)
from kctx.convert.families import detect_family
from kctx.convert.report import Report, Tensor
from kctx.convert.source import is_preset, open_source
from kctx.heads import Classifier, Regressor, attach
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence


def load_encoder(path, allow_missing=(), **options):
    """Loads the encoder of a checkpoint; heads that it holds are left aside.

    Formats: a Hugging Face folder (config.json with model.safetensors, its shards, or
    pytorch_model.bin), a TensorFlow 1 checkpoint (its folder or its prefix, with bert_config.json
    beside it), a preset folder of ours. Families: BERT.

    Args:
        path: str or `pathlib.Path`.
        allow_missing: list of str, patterns (as of `fnmatch`) of variables or tensors that may be
            missing and keep their random start. Default: none.
        **options: arguments of the encoder that differ from the configuration: `dropout`,
            `attention_dropout`, `activation`, `dtype`, `name`; `pooler=False` leaves the pooler
            away. Default of `pooler`: as the checkpoint has it.

    Returns:
        (encoder, `Report`)

    Raises:
        FileNotFoundError: files are missing.
        ValueError: another family, broken files, wrong shapes, missing tensors, unknown options.
    """
    if is_preset(path):
        loaded, report = load_preset_folder(path, options)
        return loaded.encoder, report
    source, report, standard = _open(path)
    encoder, part = _encoder(source, standard, options)
    assign([part], source.checkpoint, standard, report, allow_missing)
    return encoder, report


def load_model(path, allow_missing=(), **options):
    """Loads a checkpoint with the heads that it holds.

    The model is
    - `Joint([MaskedLM(encoder), NextSentence(encoder)])`, `MaskedLM(encoder)` or
      `NextSentence(encoder)` for a checkpoint with these heads of pretraining;
    - `heads.attach(encoder, Classifier(C))`, or `Regressor()`, for sequence classification;
    - the bare encoder else. Heads of other kinds are reported as unexpected.

    Arguments and errors: as `load_encoder`.

    Returns:
        (model, `Report`)
    """
    if is_preset(path):
        loaded, report = load_preset_folder(path, options)
        return loaded.model, report
    source, report, standard = _open(path)
    encoder, part = _encoder(source, standard, options)
    model, head_parts = _heads(source, standard, encoder)
    assign([part, *head_parts], source.checkpoint, standard, report, allow_missing)
    return model, report


def _open(path):
    source = open_source(path)
    checkpoint = source.checkpoint
    family = detect_family(checkpoint.shapes, source.config, path)
    report = Report(str(path), checkpoint.file_format, family)
    return source, report, standard_names(checkpoint.shapes, checkpoint.layout)


def _encoder(source, standard, options):
    """The encoder, not yet loaded, and its part."""
    if not source.config:
        raise FileNotFoundError(f"{source.folder} has no bert_config.json beside its checkpoint")
    unknown = set(options) - {
        "dropout",
        "attention_dropout",
        "activation",
        "dtype",
        "name",
        "pooler",
    }
    if unknown:
        raise ValueError(
            "Options must be `dropout`, `attention_dropout`, `activation`, `dtype`, `name` or "
            f"`pooler`. Received: {', '.join(sorted(unknown))}"
        )
    has_pooler = any("pooler" in name for name in standard)
    arguments = {"pooler": has_pooler, **bert_arguments(source.config, source.folder), **options}
    encoder = BERT(**arguments)
    return encoder, Part("encoder", encoder, encoder_rows(encoder.num_layers, arguments["pooler"]))


def _heads(source, standard, encoder):
    """The model with the heads of the checkpoint, not yet loaded, and their parts."""

    def holds(row):
        return getattr(row, source.checkpoint.layout) in standard

    parts = []
    if holds(MASKED_LM_ROWS[0]):
        parts.append(Part("masked_lm", MaskedLM(encoder), MASKED_LM_ROWS))
    if holds(NEXT_SENTENCE_ROWS[0]) and encoder.pooler is not None:
        parts.append(Part("next_sentence", NextSentence(encoder), NEXT_SENTENCE_ROWS))
    if parts:
        objectives = [part.root for part in parts]
        return (objectives[0] if len(parts) == 1 else Joint(objectives)), parts
    # Tagging and multiple choice give their heads the same name; the first has no pooler.
    multiple_choice = any("MultipleChoice" in name for name in architectures(source.config))
    if holds(CLASSIFIER_ROWS[0]) and encoder.pooler is not None and not multiple_choice:
        kernel = standard[getattr(CLASSIFIER_ROWS[0], source.checkpoint.layout)]
        num_classes = source.checkpoint.shapes[kernel][0]
        dropout = source.config.get("classifier_dropout")
        dropout = encoder.dropout if dropout is None else dropout
        head = Classifier(num_classes, dropout, pooling="pooled")
        if num_classes == 1:
            head = Regressor(dropout, pooling="pooled")
        return attach(encoder, head), [Part(head.name, head, CLASSIFIER_ROWS)]
    return encoder, []


def architectures(config):
    """The list `architectures` of a Hugging Face configuration, which may be null."""
    return config.get("architectures") or []


def load_preset_folder(path, options):
    """A preset of ours: (`TextModel`, `Report`)."""
    if set(options) - {"dtype"}:
        raise ValueError(
            "A preset has its own configuration; the only option is `dtype`. "
            f"Received: {', '.join(sorted(options))}"
        )
    loaded = presets.load(path, **options)
    report = Report(str(path), "preset", type(loaded.encoder).__name__)
    report.matched = [Tensor(v.path, v.path, tuple(v.shape)) for v in loaded.model.weights]
    return loaded, report
