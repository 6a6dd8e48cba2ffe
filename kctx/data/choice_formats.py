"""The forms in which multiple-choice sets are published.

Each function yields (place, context, question, answers, label): where it stands in the file, for
messages; the label is the place of the right answer, or its text, or None without `labelled`.
"""

from pathlib import Path
from xml.parsers import expat

from kctx.data.example_files import json_objects, lines_of, parsed_json, read_text

_COPA_QUESTIONS = {"cause": "What was the cause?", "effect": "What happened as a result?"}


def json_line_items(path, encoding, labelled):
    """JSONL with `context`, `choices`, `label` and perhaps `question`."""
    for line, item in json_objects(read_text(path, encoding), path):
        place = f"{path}, line {line}"
        absent = [key for key in ("context", "choices") if item.get(key) is None]
        if absent:
            raise ValueError(f"{place}: no value for {absent[0]!r}. Its keys: {sorted(item)}")
        question = item.get("question")
        question = "" if question is None else question
        yield place, item["context"], question, item["choices"], item.get("label")


def dialogue_items(path, encoding, labelled):
    """DREAM and C3: `[[turns], [{question, choice, answer}], id]`, the answer as text."""
    content = parsed_json(read_text(path, encoding), path)
    if not isinstance(content, list):
        raise ValueError(f"{path}: expected a list of dialogues, as DREAM and C3 have.")
    for number, entry in enumerate(content, 1):
        place = f"{path}, dialogue {number}"
        fits = isinstance(entry, list) and len(entry) >= 2
        if not fits or not all(isinstance(part, list) for part in entry[:2]):
            raise ValueError(f"{place}: expected [[turns], [questions], id].")
        turns, questions = entry[:2]
        if not all(isinstance(turn, str) for turn in turns):
            raise ValueError(f"{place}: the turns must be texts.")
        for question_number, item in enumerate(questions, 1):
            inner = f"{place}, question {question_number}"
            if not isinstance(item, dict):
                raise ValueError(f"{inner}: expected an object with question, choice and answer.")
            answers, answer = item.get("choice"), item.get("answer")
            yield inner, "\n".join(turns), item.get("question"), answers, answer


def hellaswag_items(path, encoding, labelled):
    """Six lines an example: context, place of the right ending, four endings."""
    lines = lines_of(read_text(path, encoding))
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) % 6:
        raise ValueError(
            f"{path}: expected six lines an example. Received: {len(lines)} lines, the last "
            f"example begins on line {len(lines) // 6 * 6 + 1}."
        )
    for first in range(0, len(lines), 6):
        context, label, *endings = lines[first : first + 6]
        place = f"{path}, line {first + 1}"
        if labelled and label.strip() not in ("0", "1", "2", "3"):
            raise ValueError(f"{place}: the label must be 0, 1, 2 or 3. Received: {label!r}")
        yield place, context, "", endings, int(label) if labelled else None


def mctest_items(path, encoding, labelled):
    """Stories with four questions of four answers each; the letters in a file beside it."""
    letters = iter(())
    if labelled:
        beside = Path(path).with_suffix(".ans")
        if not beside.is_file():
            raise ValueError(f"The answers of {path} must be in {beside}, which is missing.")
        letters = iter(
            [row.split() for row in lines_of(read_text(beside, encoding)) if row.strip()]
        )
    for number, line in enumerate(lines_of(read_text(path, encoding)), 1):
        if not line.strip():
            continue
        cells = line.split("\t")
        place = f"{path}, line {number}"
        if len(cells) != 23:
            raise ValueError(f"{place}: expected 23 columns, as MCTest has. Received: {len(cells)}")
        row = next(letters, None)
        if labelled and (row is None or len(row) != 4 or not set(row) <= set("ABCD")):
            raise ValueError(f"{place}: expected four letters A to D beside it. Received: {row}")
        cells = [cell.replace("\\newline", "\n").replace("\\tab", "\t") for cell in cells]
        for question in range(4):
            text, *answers = cells[3 + 5 * question : 8 + 5 * question]
            label = "ABCD".index(row[question]) if labelled else None
            # "one: " and "multiple: " say how many sentences hold the answer.
            text = text.removeprefix("one: ").removeprefix("multiple: ")
            yield f"{place}, question {question + 1}", cells[2], text.strip(), answers, label
    if next(letters, None) is not None:
        raise ValueError(f"{beside} holds more rows than {path} holds stories.")


def copa_items(path, encoding, labelled):
    """COPA's XML: a premise and two alternatives for its cause or its effect."""
    for line, attributes, texts in _xml_items(path, encoding):
        place = f"{path}, line {line}"
        absent = [name for name in ("p", "a1", "a2") if name not in texts]
        if absent or attributes.get("asks-for") not in _COPA_QUESTIONS:
            raise ValueError(
                f"{place}: expected an item with asks-for cause or effect, p, a1 and a2. Received: "
                f"{attributes}, {sorted(texts)}"
            )
        label = attributes.get("most-plausible-alternative")
        if labelled and label not in ("1", "2"):
            raise ValueError(f"{place}: the alternative must be 1 or 2. Received: {label!r}")
        question = _COPA_QUESTIONS[attributes["asks-for"]]
        answers = [texts["a1"], texts["a2"]]
        yield place, texts["p"], question, answers, int(label) - 1 if labelled else None


def _xml_items(path, encoding):
    """(line, attributes, dict of child to text) of each <item>.

    A file may name a DTD, which is not read. Entities are refused: declared ones can grow without
    bound, or name other files; others are text that is not there. So are elements within a child,
    whose text would be lost.
    """
    items, inside = [], []

    def start(name, attributes):
        if len(inside) > 1 and inside[-2] == "item":
            line = parser.CurrentLineNumber
            raise ValueError(f"{path}, line {line}: <{name}> is too deep within an <item>.")
        if name == "item":
            items.append((parser.CurrentLineNumber, attributes, {}))
        inside.append(name)

    def end(name):
        inside.pop()

    def text(data):
        if items and len(inside) > 1 and inside[-2] == "item":
            texts = items[-1][2]
            texts[inside[-1]] = texts.get(inside[-1], "") + data

    def refuse(*declaration):
        raise ValueError(f"{path}: XML that declares entities is not read.")

    def skipped(name, _):
        line = parser.CurrentLineNumber
        raise ValueError(f"{path}, line {line}: the entity &{name}; is not known.")

    content = read_text(path, encoding)
    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = refuse
    parser.SkippedEntityHandler = skipped
    try:
        parser.Parse(content.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise ValueError(f"{path}: not XML ({error}).") from error
    return items
