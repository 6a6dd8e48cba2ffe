"""Words in CoNLL's columns as requests to be tagged."""

import re


def sentences(file, name, fields, columns=()):
    """The sentences in a file, read one at a time.

    Args:
        file: text file: a word a line, cells separated by tabs if there is one in every line of a
            sentence, else by spaces, equally many in each; a blank line between sentences.
        name: str, what to call it in messages.
        fields: dict, of the task, which must take `words` and nothing more than a `predicate`.
        columns: numbers of the columns of the words and of the predicates. Default: 0, and 1 where
            the task takes a predicate.

    Yields:
        (dict by part, None): one for each sentence, or for each of its predicates.

    Raises:
        ValueError: names the file and the line.
    """
    from kctx.data.conll import column_blocks
    from kctx.data.predicates import NO_PREDICATE

    others = set(fields) - {"text", "words", "predicate"}
    if "words" not in fields or others:
        raise ValueError(f"Columns of words are for tagging. The task takes: {', '.join(fields)}")
    wanted = ["words", "predicate"] if "predicate" in fields else ["words"]
    places = list(columns) or [str(place) for place in range(len(wanted))]
    if len(places) != len(wanted) or not all(re.fullmatch("-?[0-9]+", x) for x in places):
        raise ValueError(
            f"--columns must be the numbers, from 0, of the columns of {' and '.join(wanted)}. "
            f"Received: {' '.join(places)}"
        )
    for block in column_blocks((line.rstrip("\r\n") for line in file), name, "auto"):
        found = []
        for line, row in block:
            if not all(-len(row) <= int(place) < len(row) for place in places):
                raise ValueError(
                    f"{name}, line {line}: no column {' or '.join(places)}, the line has "
                    f"{len(row)}: {row}"
                )
            cells = [row[int(place)] for place in places]
            if not all(cells):
                raise ValueError(f"{name}, line {line}: a cell is empty: {row}")
            found.append(cells)
        words, *marks = (list(column) for column in zip(*found, strict=True))
        if not marks:
            yield {"words": words}, None
            continue
        for place, mark in enumerate(marks[0]):
            if mark not in NO_PREDICATE:
                yield {"words": words, "predicate": place}, None
