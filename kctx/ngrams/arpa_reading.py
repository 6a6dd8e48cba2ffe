"""Reading ARPA files by the rules of KenLM, with the line of what is wrong."""

import gzip
import math
import re
import warnings
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from kctx.ngrams.arpa_joining import joined
from kctx.ngrams.arpa_lines import Lines
from kctx.words import to_text

MAX_ARPA_ORDER = 6
_SPACES = bytes.maketrans(b"\t\n\r", b"   ")
_FIELDS = re.compile(rb"[^ \t\r\n]+")


def read_tables(path, progress=True, positive="error"):
    """Back-off tables from an ARPA file.

    Only blank lines and lines that begin with `#` may come before `\\data\\`. Fields are set apart
    by spaces and tabs; lines may end with CR LF. A file without `<unk>` gets one with log10 p of
    -100 and a warning, one without `</s>` or `<s>` is refused.

    Args:
        path: str or `pathlib.Path`; names that end with `.gz` are unpacked.
        progress: bool, whether to show a progress bar. Default True.
        positive: "error" for positive log probabilities (the default), or "zero" to read them as 0
            with a warning.

    Returns:
        `BackoffTables`.

    Raises:
        ValueError: what breaks the rules; names the file and the line.
        FileNotFoundError: no such file.
    """
    if positive not in ("error", "zero"):
        raise ValueError(f'`positive` must be "error" or "zero". Received: {positive!r}')
    path = Path(path)
    columns = [TextColumn("Reading n-grams"), BarColumn(), DownloadColumn(), TimeRemainingColumn()]
    packed = str(path).endswith(".gz")
    with open(path, "rb") as file, Progress(*columns, disable=not progress) as bar:
        task = bar.add_task("bytes", total=path.stat().st_size)
        source = gzip.GzipFile(fileobj=file) if packed else file
        lines = Lines(path, source, lambda: bar.update(task, completed=file.tell()))
        sizes = _counts(lines)
        if not packed and 2 * sum(sizes) > path.stat().st_size:
            raise ValueError(
                f"{path} announces {sum(sizes):,} n-grams, more than its {path.stat().st_size:,} "
                "bytes can hold"
            )
        index, sections = {}, []
        for order, size in enumerate(sizes, 1):
            sections.append(_section(lines, order, size, order == len(sizes), index, positive))
        _end(lines)
    return joined(path, list(index), sections)


class Section:
    """The n-grams of one order as they stand in the file.

    Attributes:
        line: int, number of the first line; the n-grams follow line by line.
        rows: (n, order) int32 word ids.
        probabilities: (n,) float32.
        backoffs: (n,) float32.
    """

    def __init__(self, line, rows, probabilities, backoffs):
        self.line = line
        self.rows = rows
        self.probabilities = probabilities
        self.backoffs = backoffs


def _counts(lines):
    """Number of n-grams of each order, from the head of the file."""
    line = lines.next()
    while line is not None and (not line.strip() or line.startswith(b"#")):
        line = lines.next()
    if line is None:
        raise ValueError(f"{lines.path} is empty: an ARPA file begins with \\data\\")
    if line != b"\\data\\":
        hint = ""
        if line.startswith(b"\x1f\x8b"):
            hint = "; the file is packed, its name must end with .gz"
        elif line.startswith(b"mmap lm http://kheafield.com/code"):
            hint = "; this is a binary file of KenLM, which only KenLM reads"
        raise lines.error(f"expected \\data\\. Received: {to_text(line[:60])!r}{hint}")
    sizes = []
    while (line := lines.next()) is not None and line.strip():
        found = re.fullmatch(rb"ngram (\d{1,18})=\s*(\d{1,18})\s*", line)
        if found is None:
            raise lines.error(f"expected `ngram N=count`. Received: {to_text(line[:60])!r}")
        if int(found[1]) != len(sizes) + 1:
            raise lines.error(
                f"counts must go up from order 1; expected order {len(sizes) + 1}. Received: "
                f"{to_text(line)!r}"
            )
        sizes.append(int(found[2]))
    if not 1 <= len(sizes) <= MAX_ARPA_ORDER:
        raise lines.error(f"the order must be from 1 to {MAX_ARPA_ORDER}. Received: {len(sizes)}")
    return sizes


def _section(lines, order, size, highest, index, positive):
    header = lines.next_filled()
    if header != b"\\%d-grams:" % order:
        shown = "the end of the file" if header is None else repr(to_text(header[:60]))
        raise lines.error(f"expected \\{order}-grams:. Received: {shown}")
    first, left, parts = lines.number + 1, size, []
    while left:
        start = lines.number + 1
        data, count = lines.many(left)
        if not count:
            raise lines.error(f"the file ends {left:,} n-grams short of {size:,} of order {order}")
        parts.append(_parsed(lines, data, start, count, order, highest, index))
        left -= count
    if parts:
        rows, p, b = (np.concatenate(part) for part in zip(*parts, strict=True))
    else:
        rows, p, b = (
            np.zeros((0, order), np.int32),
            np.zeros(0, np.float32),
            np.zeros(0, np.float32),
        )
    _check_numbers(lines, first, p, b, positive)
    return Section(first, rows, p, b)


def _parsed(lines, data, start, count, order, highest, index):
    """(rows, probabilities, backoffs) of whole lines."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == 10)
    separators = np.flatnonzero((codes == 32) | (codes == 9))
    fields = np.diff(np.searchsorted(separators, ends), prepend=0) + 1
    backed = fields == order + 2
    regular = ((fields == order + 1) | backed).all() and b"\r" not in data
    tokens = data.translate(_SPACES).split(b" ") if regular else []
    if not regular or b"" in tokens[:-1]:
        tokens, fields = _irregular(lines, data, start, order)
        backed = fields == order + 2
    if not backed.any() or backed.all():
        step = order + 1 + int(backed.all())
        texts = [tokens[place : count * step : step] for place in range(step)]
    else:
        begins = np.cumsum(fields) - fields
        texts = [[tokens[at] for at in (begins + place).tolist()] for place in range(order + 1)]
        behind = (begins + order + 1).tolist()
        texts.append(
            [tokens[at] if b else b"0" for at, b in zip(behind, backed.tolist(), strict=True)]
        )
    p = _floats(lines, texts[0], start, "log probability")
    b = np.zeros(count, np.float32)
    if len(texts) == order + 2:
        b = _floats(lines, texts[-1], start, "back-off weight")
        if highest and b.any():
            line = start + int(np.flatnonzero(b)[0])
            raise lines.error("n-grams of the highest order have no back-off weight", line)
    rows = np.empty((count, order), np.int32)
    for k in range(order):
        words = texts[k + 1]
        if order == 1:
            known = len(index)
            for place, word in enumerate(words):
                if index.setdefault(word, known + place) != known + place:
                    message = f"the word {to_text(word)!r} is listed twice"
                    raise lines.error(message, start + place)
        try:
            rows[:, k] = np.fromiter(map(index.__getitem__, words), np.int32, count)
        except KeyError:
            place = next(i for i, word in enumerate(words) if word not in index)
            raise lines.error(
                f"the word {to_text(words[place])!r} is not listed as a unigram", start + place
            ) from None
    return rows, p, b


def _irregular(lines, data, start, order):
    """Tokens and their number in each line, for lines with repeated separators."""
    tokens, fields = [], []
    for place, line in enumerate(data.split(b"\n")[:-1]):
        found = _FIELDS.findall(line)
        if len(found) not in (order + 1, order + 2):
            raise lines.error(
                f"expected a log probability, {order} words and at most a back-off weight. "
                f"Received: {to_text(line[:80])!r}",
                start + place,
            )
        tokens += found
        fields.append(len(found))
    return tokens, np.array(fields)


def _floats(lines, texts, start, what):
    try:
        values = np.fromiter(map(float, texts), np.float64, len(texts))
    except ValueError:
        for place, text in enumerate(texts):
            try:
                float(text)
            except ValueError:
                raise lines.error(
                    f"the {what} must be a number. Received: {to_text(text[:60])!r}", start + place
                ) from None
        raise
    with np.errstate(over="ignore"):
        stored = values.astype(np.float32)
    bad = np.isnan(values) | (values == math.inf)
    if what != "log probability":
        bad |= np.isinf(stored)
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise lines.error(
            f"the {what} must be finite. Received: {to_text(texts[place])}", start + place
        )
    return stored


def _check_numbers(lines, first, p, b, positive):
    above = np.flatnonzero(p > 0)
    if len(above):
        place = int(above[0])
        message = f"the log probability {p[place]:.6g} is positive"
        if positive == "error":
            raise lines.error(f'{message}; positive="zero" reads such as 0', first + place)
        warnings.warn(
            f"{lines.path} line {first + place}: {message}, as are {len(above) - 1} more of its "
            "order; read as 0",
            stacklevel=5,
        )
        p[above] = 0.0


def _end(lines):
    line = lines.next_filled()
    if line != b"\\end\\":
        shown = "the end of the file" if line is None else repr(to_text(line[:60]))
        raise lines.error(f"expected \\end\\. Received: {shown}")
    line = lines.next_filled()
    if line is not None:
        raise lines.error(f"nothing may follow \\end\\. Received: {to_text(line[:60])!r}")
