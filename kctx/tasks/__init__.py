"""What a model is asked and what it answers: one file per task.

A task turns raw requests into a model's inputs, and its outputs into answers in words of its own,
in presets and in exported graphs alike.
"""

from kctx.arguments import check_choice
from kctx.heads import head_of
from kctx.tasks.classification import Classification
from kctx.tasks.coreference import Coreference
from kctx.tasks.embedding import POOLINGS, Embedding, pooled_encoder
from kctx.tasks.field import Field
from kctx.tasks.masked_lm import MaskedLM
from kctx.tasks.multiple_choice import MultipleChoice
from kctx.tasks.regression import Regression
from kctx.tasks.similarity import Similarity
from kctx.tasks.span import Span
from kctx.tasks.tagging import Tagging
from kctx.tasks.task import Task
from kctx.tasks.word_embedding import WordEmbedding

# In the order in which a model is asked whether it is one.
TASKS = {
    task.name: task
    for task in (
        MaskedLM,
        Embedding,
        Classification,
        Regression,
        Tagging,
        Span,
        MultipleChoice,
        Similarity,
        Coreference,
    )
}


def task_of(model, labels=None):
    """What a model answers, told by its head, by labels, or by the names of its outputs.

    Args:
        model: keras.Model.
        labels: list of str, names of classes, or None.

    Returns:
        str, a key of `TASKS`; None where nothing tells.
    """
    if labels is not None and head_of(model) is None:
        return Classification.name
    return next((name for name, task in TASKS.items() if task.tells(model)), None)


def make_task(name, model, preprocessor, labels=None, options=None):
    """The `Task` of that name.

    Raises:
        ValueError: unknown name, or an option or a label that does not fit.
    """
    check_choice("task", name, tuple(TASKS))
    return TASKS[name](model, preprocessor, labels, **(options or {}))


__all__ = [
    "POOLINGS",
    "TASKS",
    "Classification",
    "Coreference",
    "Embedding",
    "Field",
    "MaskedLM",
    "MultipleChoice",
    "Regression",
    "Similarity",
    "Span",
    "Tagging",
    "Task",
    "WordEmbedding",
    "make_task",
    "pooled_encoder",
    "task_of",
]
