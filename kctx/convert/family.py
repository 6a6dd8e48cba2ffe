"""What is particular to one family of published checkpoints."""

from collections.abc import Callable
from typing import NamedTuple


class Family(NamedTuple):
    """How the checkpoints of a family become our models; one file each, such as `bert`.

    Attributes:
        model: class of the encoder.
        arguments: (configuration, path for messages) -> dict of arguments of `model`.
        encoder_rows: (number of layers, whether there is a pooler) -> list of rows of names.
        masked_lm_rows, next_sentence_rows, classifier_rows, span_rows: lists of rows of names,
            those of the variables that a head has beyond its encoder's. Empty: the family has no
            such head. `classifier_rows` are those of taggers and of choice scorers, too.
        standard_names: (names, layout) -> dict: spelling of the rows -> name in the checkpoint.
        tied: the spelling of a second copy of the token table, and that of the table.
        load_tokenizer: (folder, layout, **settings) -> tokenizer.
        preprocessor: class, called as (tokenizer, sequence_length=...).
    """

    model: type
    arguments: Callable
    encoder_rows: Callable
    masked_lm_rows: list
    next_sentence_rows: list
    classifier_rows: list
    span_rows: list
    standard_names: Callable
    tied: tuple
    load_tokenizer: Callable
    preprocessor: type
