"""Multiple choice: contexts, and for each some choices of which one is right."""

from dataclasses import dataclass

from kctx.arguments import check_choice
from kctx.data.choice_formats import (
    copa_items,
    dialogue_items,
    hellaswag_items,
    json_line_items,
    mctest_items,
)
from kctx.data.example_files import clean
from kctx.data.held_out import split_by_context

FORMATS = {
    "jsonl": json_line_items,
    "dream": dialogue_items,
    "c3": dialogue_items,
    "copa": copa_items,
    "hellaswag": hellaswag_items,
    "mctest": mctest_items,
}


@dataclass(frozen=True)
class ChoiceExamples:
    """Contexts with their choices, in the order of the file.

    Attributes:
        contexts: list of str.
        questions: list of str, "" where there is none.
        answers: list of lists of str, what can be answered, without the question.
        labels: list of int, the place of the right one; None when the file was read without.
        places: list of str, where each stands in the file, for messages.
    """

    contexts: list
    questions: list
    answers: list
    labels: list | None
    places: list

    def __len__(self):
        return len(self.contexts)

    @property
    def choices(self):
        """list of lists of str: what a model reads after the context, the question first."""
        return [
            [f"{question} {answer}" if question else answer for answer in answers]
            for question, answers in zip(self.questions, self.answers, strict=True)
        ]

    def take(self, indices):
        """The examples at these places, in this order."""
        columns = (self.contexts, self.questions, self.answers, self.labels, self.places)
        return ChoiceExamples(*(None if c is None else [c[i] for i in indices] for c in columns))

    def split(self, every):
        """(the others, every so-manieth context), see `split_by_context`."""
        return split_by_context(self, every)


def read_choices(path, format="jsonl", *, labelled=True, encoding="utf-8"):
    """Reads multiple-choice examples; the number of choices may differ between them.

    Args:
        path: file name.
        format: "jsonl": an object a line with `context`, `choices` (list of texts), `label` (place
            of the right one from 0, or its text) and, if there is one, `question`; or the published
            forms of "dream", "c3", "copa" (XML), "hellaswag" (six lines an example) and "mctest"
            (TSV with the answers in a file `.ans` beside it).
        labelled: bool. False: choices to be made; labels are not looked at.
        encoding: default "utf-8"; a byte order mark is dropped.

    Returns:
        `ChoiceExamples`.

    Raises:
        ValueError: names the file and the place: another form, fewer than two choices, an empty
            choice, a label that is none of them; or there are no examples.
    """
    check_choice("format", format, tuple(FORMATS))
    rows = []
    for place, context, question, answers, label in FORMATS[format](path, encoding, labelled):
        for name, value in (("context", context), ("question", question)):
            if not isinstance(value, str):
                raise ValueError(f"{place}: the {name} must be a text. Received: {value!r}")
        if not isinstance(answers, list) or not all(isinstance(a, str) for a in answers):
            raise ValueError(f"{place}: the choices must be a list of texts. Received: {answers!r}")
        if len(answers) < 2:
            raise ValueError(f"{place}: there must be two choices or more. Received: {answers!r}")
        if not all(answer.strip() for answer in answers):
            raise ValueError(f"{place}: a choice is empty. Received: {answers!r}")
        answers = [clean(answer) for answer in answers]
        number = _number(place, answers, label) if labelled else None
        rows.append((clean(context), clean(question), answers, number, place))
    if not rows:
        raise ValueError(f"{path} holds no example.")
    contexts, questions, answers, labels, places = (list(c) for c in zip(*rows, strict=True))
    return ChoiceExamples(contexts, questions, answers, labels if labelled else None, places)


def _number(place, answers, label):
    """The place among the choices that a label means."""
    if label is None:
        raise ValueError(f"{place}: the label is missing.")
    if isinstance(label, str) and label in answers:
        return answers.index(label)
    if isinstance(label, int) and not isinstance(label, bool) and 0 <= label < len(answers):
        return label
    raise ValueError(
        f"{place}: the label must be one of the choices, or its place from 0 to "
        f"{len(answers) - 1}, an integer. Received: {label!r}; choices: {answers}"
    )
