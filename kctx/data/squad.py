"""Questions, contexts and answers in SQuAD's JSON, versions 1.1 and 2.0."""

from dataclasses import dataclass
from typing import NamedTuple

from kctx.arguments import check_choice
from kctx.data.example_files import clean, parsed_json, read_text
from kctx.data.held_out import split_by_context


class Answer(NamedTuple):
    """A stretch of a context, in code points: `context[start:end] == text`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class SpanExamples:
    """Questions on contexts, one entry for each question.

    Attributes:
        ids: list of str.
        questions, contexts: lists of str.
        answers: list of lists of `Answer`, those found in their context; empty where the context
            holds no answer. None when the file was read without answers.
        gold_texts: list of lists of str, all answers that the file gives, for the metrics; empty
            where there is none to give. None as `answers`.
        report: dict: "questions" int, in the file; "impossible" int, without an answer;
            "skipped" and "kept_unlocated" dict of reason to list of ids; "dropped_answers" list of
            ids that lost one of several answers; "realigned" list of ids; "duplicate_ids" list.
    """

    ids: list
    questions: list
    contexts: list
    answers: list | None
    gold_texts: list | None
    report: dict

    def __len__(self):
        return len(self.ids)

    def take(self, indices):
        """The examples at these places, in this order."""
        columns = (self.ids, self.questions, self.contexts, self.answers, self.gold_texts)
        return SpanExamples(
            *(None if c is None else [c[index] for index in indices] for c in columns), self.report
        )

    def split(self, every):
        """(the others, every so-manieth context), see `split_by_context`."""
        return split_by_context(self, every)

    def describe(self):
        """A line for each thing that the report has to say."""
        report = self.report
        lines = [f"{report['questions']:,} questions, {report['impossible']:,} without an answer"]
        for what in ("skipped", "kept_unlocated"):
            for reason, ids in report[what].items():
                lines.append(f"{what.replace('_', ' ')}: {len(ids):,} ({reason}): {_some(ids)}")
        for what in ("dropped_answers", "realigned", "duplicate_ids"):
            if report[what]:
                lines.append(
                    f"{what.replace('_', ' ')}: {len(report[what]):,}: {_some(report[what])}"
                )
        return "\n".join(lines)


def _some(ids, most=5):
    return ", ".join(ids[:most]) + (", ..." if len(ids) > most else "")


def read_squad(path, *, labelled=True, realign=False, unlocated="skip", encoding="utf-8"):
    """Reads a file in SQuAD's form.

    A question is kept with the answers that stand at their offset (counted in code points). One
    without any such, though the file gives answers, is skipped and reported with its id; so is
    one whose context is empty.

    Args:
        path: file name.
        labelled: bool. False: questions to be answered; answers are not looked at.
        realign: bool, whether an answer that is not at its offset is taken from where its text
            stands, if that occurs in the context just once. Default False.
        unlocated: "skip" leaves out questions whose answers were not found; "keep" keeps them for
            the metrics, with `gold_texts` but no `answers`, which cannot be trained on. Default
            "skip".
        encoding: default "utf-8"; a byte order mark is dropped.

    Returns:
        `SpanExamples`.

    Raises:
        ValueError: the file is no JSON or of another form (it names the place), or no question is
            left.
    """
    check_choice("unlocated", unlocated, ("skip", "keep"))
    content = parsed_json(read_text(path, encoding), path)
    rows = []
    report = {
        "questions": 0,
        "impossible": 0,
        "skipped": {},
        "kept_unlocated": {},
        "dropped_answers": [],
        "realigned": [],
        "duplicate_ids": [],
    }
    seen = set()
    for place, context, item in _questions(path, content):
        identity = _text(item, "id", place, (str, int))
        question = _text(item, "question", place)
        report["questions"] += 1
        if identity in seen:
            report["duplicate_ids"].append(identity)
        seen.add(identity)
        answers, texts, reason = [], [], None
        if labelled:
            answers, texts, reason = _answers(place, identity, context, item, realign, report)
        if not context.strip():
            answers, reason = [], "empty context"
        if reason is not None and labelled:
            where = "skipped" if unlocated == "skip" else "kept_unlocated"
            report[where].setdefault(reason, []).append(identity)
            if unlocated == "skip":
                continue
        report["impossible"] += labelled and not texts
        rows.append((identity, question, context, answers, texts))
    if not rows:
        skipped = {reason: len(ids) for reason, ids in report["skipped"].items()}
        raise ValueError(f"{path} holds no question to use. Skipped: {skipped or 'none'}")
    ids, questions, contexts, answers, texts = (list(column) for column in zip(*rows, strict=True))
    if not labelled:
        answers = texts = None
    return SpanExamples(ids, questions, contexts, answers, texts, report)


def _questions(path, content):
    """Yields (place, context, question's dict) in the order of the file."""
    for article_number, article in enumerate(_list(content, "data", path), 1):
        place = f"{path}, article {article_number}"
        for number, paragraph in enumerate(_list(article, "paragraphs", place), 1):
            inner = f"{place}, paragraph {number}"
            context = _text(paragraph, "context", inner)
            for question_number, item in enumerate(_list(paragraph, "qas", inner), 1):
                yield f"{inner}, question {question_number}", context, item


def _answers(place, identity, context, item, realign, report):
    """(answers found, texts of all answers, None or the reason why none can be used)."""
    impossible = item.get("is_impossible", False)
    if not isinstance(impossible, bool):
        raise ValueError(f"{place}: `is_impossible` must be a bool. Received: {impossible!r}")
    if impossible:
        return [], [], None
    given = item.get("answers") or []
    if not isinstance(given, list):
        raise ValueError(f"{place}: `answers` must be a list. Received: {type(given).__name__}")
    found, texts = [], []
    for entry in given:
        text = _text(entry, "text", place)
        start = entry.get("answer_start")
        if isinstance(start, bool) or not isinstance(start, int):
            raise ValueError(f"{place}: `answer_start` must be an integer. Received: {start!r}")
        if not text.strip():
            continue
        texts.append(text)
        if start < 0 or context[start : start + len(text)] != text:
            start = context.find(text)
            if not realign or start < 0 or start != context.rfind(text):
                continue
            if identity not in report["realigned"][-1:]:
                report["realigned"].append(identity)
        found.append(Answer(text, start, start + len(text)))
    if not texts:
        return [], [], "no answer given"
    if not found:
        return [], texts, "answer not at its offset"
    if len(found) < len(texts):
        report["dropped_answers"].append(identity)
    return found, texts, None


def _list(item, key, place):
    value = item.get(key) if isinstance(item, dict) else None
    if not isinstance(value, list):
        raise ValueError(f"{place}: expected an object with a list `{key}`, as SQuAD's files have.")
    return value


def _text(item, key, place, types=str):
    value = item.get(key) if isinstance(item, dict) else None
    if not isinstance(value, types) or isinstance(value, bool):
        raise ValueError(f"{place}: `{key}` must be a text. Received: {value!r}")
    return clean(str(value))
