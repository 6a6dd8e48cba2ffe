"""kctx predict"""

import dataclasses
import itertools
from pathlib import Path
from typing import Literal

import tyro

from kctx_cli.columns import sentences
from kctx_cli.requests import (
    check_output,
    format_of,
    opened,
    parsed_options,
    read_requests,
    written,
)


@dataclasses.dataclass(frozen=True)
class Predict:
    """Answers every request in a file, in JSON lines, one for each request and in their order.

        kctx predict PRESET texts.txt > answers.jsonl
        echo "a fine film" | kctx predict PRESET
        kctx predict PRESET pairs.tsv --columns premise hypothesis --output answers.jsonl
        kctx predict PRESET squad.jsonl --option no_answer_threshold=-1.5
        kctx predict PRESET sentences.conll --columns 0

    What is asked, by task; in JSON lines and in the first row of TSV and CSV by these names:
    classification, regression: text, and text_pair, which models taught on pairs need. tagging:
    text, or words (a list, in JSON lines), and predicate, the number of a word, where roles are
    tagged. span: question, context. multiple_choice: context, choices (a list, in JSON lines).
    similarity: text, text_b. coreference: text or words, mentions ([[start, end], ...], in JSON
    lines). masked_lm, embedding: text. Files are read as they are answered, so they may be of any
    size.

    Words to be tagged may also stand in columns (conll), one a line with a blank line between
    sentences: column 0, or the one of --columns. A second column, for roles, marks predicates ("-"
    elsewhere); a sentence is answered once for each.
    """

    preset: tyro.conf.Positional[Path]
    """preset folder, or a folder in Hugging Face's format"""
    input: tyro.conf.Positional[str] = "-"
    """file of requests, - for stdin: txt (one text a line), tsv, csv or jsonl"""
    output: str = "-"
    """file of answers, - for stdout; it appears when it is whole"""
    format: Literal["auto", "txt", "tsv", "csv", "jsonl", "conll"] = "auto"
    """format of the input; auto: by its ending, txt for stdin"""
    columns: tuple[str, ...] = ()
    """names or numbers (from 0) of the columns, or keys, that hold the parts of a request; default:
    by the names above, or, where the first row of TSV or CSV has others, the first columns for the
    parts that are needed, and that row is answered as well; choices are all columns behind"""
    option: tuple[str, ...] = ()
    """options of the task, as name=value: stride=64, no_answer_threshold=null, split=characters"""
    batch_size: int = 32
    """rows that the model sees at a time"""
    with_input: bool = False
    """repeat the request in each answer"""
    dtype: str | None = None
    """dtype policy, for instance mixed_bfloat16; default: as trained"""
    progress: bool = True
    """show how many were answered, on a terminal"""

    def run(self):
        from kctx.presets.progress import tracked
        from kctx_cli.loading import load_text_model

        check_output(self.input, self.output)
        options = parsed_options(self.option)
        text_model = load_text_model(self.preset, self.dtype)
        task = text_model.asked(**options)
        with opened(self.input) as file, written(self.output) as write:
            asked, kept = itertools.tee(self.requests(file, task))
            shown = None if self.progress else False
            with tracked(shown, None, "answers") as advance:
                answers = text_model.predict_stream(
                    (request for request, _ in asked), self.batch_size, **options
                )
                for answer, (request, identity) in zip(answers, kept, strict=True):
                    before = {} if identity is None else {"id": identity}
                    write({**before, **(request if self.with_input else {}), **answer})
                    advance(1)

    def requests(self, file, task):
        """The requests in a file: (dict by part, identity), one by one."""
        format = format_of(self.input, self.format)
        fields = dict(task.fields)
        if format == "conll":
            name = "stdin" if self.input == "-" else self.input
            yield from sentences(file, name, fields, self.columns)
            return
        if "words" in fields and (format != "jsonl" or self.columns):
            del fields["words"]  # another way to ask, not another part
        required = [name for name, field in fields.items() if field.required]
        optional = [name for name, field in fields.items() if not field.required]
        many = next((name for name, field in fields.items() if len(field.axes) > 1), None)
        if format == "jsonl" and "words" in fields:
            required.remove("words")
            optional, many = ["words", *optional], None
        if format != "jsonl" and many is not None and fields[many].dtype != "string":
            raise ValueError(
                f"`{many}` are lists of numbers: give requests in JSON lines. Received: {format}"
            )
        name = "stdin" if self.input == "-" else self.input
        found = read_requests(file, name, format, required, optional, self.columns, many)
        numbers = [name for name, field in fields.items() if field.dtype != "string"]
        for number, (request, identity) in enumerate(found, 1):
            for part in numbers:
                if isinstance(request.get(part), str):
                    request[part] = whole_number(request[part], f"{name}, request {number}", part)
            yield request, identity


def whole_number(text, where, part):
    """An int, or an error that says where none was."""
    try:
        return int(text)
    except ValueError as error:
        raise ValueError(f"{where}: `{part}` must be a whole number. Received: {text!r}") from error
