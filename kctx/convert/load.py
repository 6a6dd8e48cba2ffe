"""Published checkpoints, and our own presets, as models."""

from kctx import presets
from kctx.convert.assign import Part, assign
from kctx.convert.families import FAMILIES, detect_family
from kctx.convert.published_heads import attach_heads
from kctx.convert.report import Report, Tensor
from kctx.convert.source import is_preset, open_source
from kctx.presets.task import find_encoder


def load_encoder(path, allow_missing=(), **options):
    """Loads the encoder of a checkpoint; heads that it holds are left aside.

    Formats: a Hugging Face folder (config.json with model.safetensors, its shards, or
    pytorch_model.bin), a TensorFlow 1 checkpoint (its folder or its prefix, with bert_config.json
    beside it), a preset folder of ours. Families: BERT.

    Args:
        path: str or `pathlib.Path`.
        allow_missing: list of str, patterns (as of `fnmatch`) of variables or tensors that may be
            missing and keep their random start. Default: none. A preset always holds them all.
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
        loaded, report = load_preset_folder(path, options, allow_missing)
        return loaded.encoder, report
    source, family, report, standard = _open(path)
    encoder, part = _encoder(source, family, standard, options)
    assign([part], source.checkpoint, standard, report, allow_missing, family.tied)
    return encoder, report


def load_model(path, allow_missing=(), **options):
    """Loads a checkpoint with the heads that it holds.

    The model is
    - `Joint([MaskedLM(encoder), NextSentence(encoder)])`, `MaskedLM(encoder)` or
      `NextSentence(encoder)` for a checkpoint with these heads of pretraining;
    - `heads.attach(encoder, Classifier(C))`, or `Regressor()`, for sequence classification;
    - `heads.attach(encoder, Tagger(C))` for token classification;
    - `heads.attach(encoder, Span())` for question answering;
    - `heads.attach_choices(encoder, ChoiceScorer())` for multiple choice;
    - the bare encoder else.

    What a head is for is told by `architectures` of the configuration, and by the names and shapes
    of its tensors where there are none, as in original checkpoints. Tensors of no known name are
    reported as unexpected.

    Arguments and errors: as `load_encoder`.

    Raises:
        ValueError: the configuration names a head that there is none for here.

    Returns:
        (model, `Report`)
    """
    if is_preset(path):
        loaded, report = load_preset_folder(path, options, allow_missing)
        return loaded.model, report
    source, family, report, standard = _open(path)
    encoder, part = _encoder(source, family, standard, options)
    model, head_parts = attach_heads(source, family, standard, encoder)
    parts = [part, *head_parts]
    assign(parts, source.checkpoint, standard, report, allow_missing, family.tied)
    return model, report


def _open(path):
    """(`Source`, `Family`, `Report`, dict: spelling of the family's rows -> name in the file)."""
    source = open_source(path)
    checkpoint = source.checkpoint
    name = detect_family(checkpoint.shapes, source.config, path)
    family = FAMILIES[name]
    report = Report(str(path), checkpoint.file_format, name)
    standard = family.standard_names(checkpoint.shapes, checkpoint.layout)
    return source, family, report, standard


def _encoder(source, family, standard, options):
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
    arguments = family.arguments(source.config, source.folder)
    arguments = {"pooler": has_pooler, **arguments, **options}
    encoder = family.model(**arguments)
    rows = family.encoder_rows(encoder.num_layers, arguments["pooler"])
    return encoder, Part("encoder", encoder, rows)


def load_preset_folder(path, options, allow_missing=()):
    """A preset of ours: (`TextModel`, `Report`)."""
    if allow_missing:
        raise ValueError(
            "`allow_missing` cannot apply to a preset, which lacks nothing. "
            f"Received: {list(allow_missing)}"
        )
    if set(options) - {"dtype"}:
        raise ValueError(
            "A preset has its own configuration; the only option is `dtype`. "
            f"Received: {', '.join(sorted(options))}"
        )
    loaded = presets.load(path, **options)
    encoder = find_encoder(loaded.model) or loaded.model
    report = Report(str(path), "preset", type(encoder).__name__)
    report.matched = [Tensor(v.path, v.path, tuple(v.shape)) for v in loaded.model.weights]
    return loaded, report
