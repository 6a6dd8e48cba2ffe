"""What a preset is for, and whether its parts fit together."""

from typing import NamedTuple

from kctx.arguments import check_choice
from kctx.data.tokenizer_checks import check_vocabulary_size
from kctx.heads import encoder_of
from kctx.layers import PositionEmbedding, SegmentEmbedding, SubwordEmbedding, TokenEmbedding
from kctx.tasks import TASKS, task_of

# Layers that look up ids -> the input that these come from.
TABLES = {
    TokenEmbedding: "token_ids",
    SegmentEmbedding: "segment_ids",
    SubwordEmbedding: "subword_ids",
}


class InputLimits(NamedTuple):
    """What a model can take.

    Attributes:
        ids: dict: name of an input of ids -> rows of its table. Inputs that are not there are not
            checked.
        length: int, most tokens of a row, or None where there is no limit.
    """

    ids: dict
    length: int | None


def check_task(model, task, labels):
    """The task and the labels of a model, completed, or an error.

    Args:
        model: keras.Model.
        task: str, a key of `kctx.tasks.TASKS`, or None: told by the head, or by an output
            `next_sentence`.
        labels: list of str, or None: "0", "1", ... for tasks that have some.

    Returns:
        (task, labels), or (None, None) where nothing but the names of its outputs tells what an
        encoder or a pretrained model is for; labels is None but for classification and tagging.

    Raises:
        ValueError: unknown task, or one that the model does not do; labels that do not fit the
            outputs.
    """
    if task is None:
        task = task_of(model, labels)
        if task in (None, "masked_lm", "embedding"):
            return None, None
    check_choice("task", task, tuple(TASKS))
    return task, TASKS[task].check_labels(model, labels)


def find_encoder(model):
    """The encoder that is a part of a model, or None where none, or several are."""
    try:
        return encoder_of(model)
    except ValueError:
        return None


def input_limits(model):
    """`InputLimits` of a model.

    Told by its encoder, or by its layers where the encoder is no part by itself.
    """
    encoder = find_encoder(model)
    if encoder is not None:
        ids = encoder.id_limits() if hasattr(encoder, "id_limits") else {}
        return InputLimits(ids, getattr(encoder, "max_sequence_length", None))
    layers = {type(layer): layer for layer in model.layers}
    return InputLimits(
        {name: layers[kind].input_dim for kind, name in TABLES.items() if kind in layers},
        getattr(layers.get(PositionEmbedding), "max_sequence_length", None),
    )


def check_preprocessor(model, preprocessor):
    """Raises unless the ids and lengths that the preprocessor makes lie in the model's tables."""
    limits = input_limits(model)
    check_vocabulary_size(preprocessor.tokenizer, limits.ids.get("token_ids"))
    for name, made in preprocessor.inputs.items():
        limit = limits.ids.get(name)
        if limit is not None and made.count is not None and made.count > limit:
            raise ValueError(
                f"`preprocessor` makes `{name}` of up to {made.count - 1}, but the table of the "
                f"model has {limit} rows."
            )
    if limits.length is not None and preprocessor.sequence_length > limits.length:
        raise ValueError(
            f"`preprocessor.sequence_length` is {preprocessor.sequence_length}, more than the "
            f"{limits.length} positions of the model."
        )
