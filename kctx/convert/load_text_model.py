"""Published checkpoints with their tokenizers, ready for raw text."""

from kctx.convert.families import FAMILIES
from kctx.convert.load import load_model, load_preset_folder
from kctx.convert.source import is_preset, open_source
from kctx.files import read_json
from kctx.heads import head_of
from kctx.presets import TextModel
from kctx.presets.task import check_preprocessor, input_limits


def load_preset(
    path, lowercase=None, strip_accents=None, sequence_length=None, allow_missing=(), **options
):
    """Loads a checkpoint with the heads that it holds, its tokenizer and its labels.

    Args:
        path: as of `load_encoder`.
        lowercase: bool. Default: as the folder says; an original checkpoint does not say, then it
            is guessed from the vocabulary with a warning.
        strip_accents: bool. Default: as the folder says, else as `lowercase`.
        sequence_length: int, most tokens of a text. Default: as many as the model has positions,
            or fewer where the folder's tokenizer says so; for a preset of ours, as saved.
        allow_missing, **options: as of `load_encoder`.

    Returns:
        (`kctx.presets.TextModel`, `Report`)

    Raises:
        FileNotFoundError: there is no vocabulary, or as `load_encoder`.
        ValueError: the vocabulary or `sequence_length` exceeds the model's tables, or a preset of
            ours has no preprocessor to be changed; or as `load_encoder`.
    """
    if is_preset(path):
        loaded, report = load_preset_folder(path, options, allow_missing)
        _change(loaded, path, sequence_length, lowercase=lowercase, strip_accents=strip_accents)
        return loaded, report
    model, report = load_model(path, allow_missing, **options)
    folder, config, checkpoint = open_source(path)
    family = FAMILIES[report.family]
    tokenizer = family.load_tokenizer(
        folder, checkpoint.layout, lowercase=lowercase, strip_accents=strip_accents
    )
    if sequence_length is None:
        sequence_length = _sequence_length(folder, input_limits(model).length)
    preprocessor = family.preprocessor(tokenizer, sequence_length=sequence_length)
    check_preprocessor(model, preprocessor)
    task, labels = _task(model, config, path)
    return TextModel(model, preprocessor, task, labels), report


def _change(text_model, path, sequence_length, **settings):
    """Gives the preprocessor of a preset another length, and its tokenizer other settings."""
    settings = {name: value for name, value in settings.items() if value is not None}
    changes = {} if sequence_length is None else {"sequence_length": sequence_length}
    if not settings and not changes:
        return
    preprocessor = text_model.preprocessor
    if preprocessor is None:
        raise ValueError(
            f"The preset {path} has no preprocessor that could be changed. "
            f"Received: {settings | changes}"
        )
    if settings:
        changes["tokenizer"] = preprocessor.tokenizer.with_options(**settings)
    text_model.preprocessor = preprocessor.with_options(**changes)
    check_preprocessor(text_model.model, text_model.preprocessor)


def _sequence_length(folder, length):
    """Positions of the model, or fewer where the folder's tokenizer was used with fewer."""
    if (folder / "tokenizer_config.json").is_file():
        # "No limit" is written as a number of 30 digits.
        length = min(
            length, read_json(folder / "tokenizer_config.json").get("model_max_length") or length
        )
    return int(length)


def _task(model, config, path):
    """The task, and the names of its classes, from a head and the configuration."""
    head = head_of(model)
    if head is None:
        return None, None
    if config.get("problem_type") == "multi_label_classification":
        raise ValueError(
            f"{path} gives several labels to one text, and its scores are independent of each "
            "other, which `TextModel.predict` does not do. Use `kctx.convert.load_model`."
        )
    num_labels = {"classification": "num_classes", "tagging": "num_tags"}.get(head.task)
    if num_labels is None:
        return head.task, None
    num_labels = getattr(head, num_labels)
    names = config.get("id2label") or {str(i): str(i) for i in range(num_labels)}
    names = {int(index): name for index, name in names.items()}
    if sorted(names) != list(range(num_labels)):
        raise ValueError(
            f"`id2label` of {path} must name the classes 0 to {num_labels - 1}. Received: {names}"
        )
    labels = [str(names[index]) for index in range(num_labels)]
    if len(set(labels)) < len(labels):
        raise ValueError(f"`id2label` of {path} must give different names. Received: {names}")
    return head.task, labels
