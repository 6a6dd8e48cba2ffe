"""Word vectors as text: a word and its numbers in each line.

With a first line `V D`: word2vec's text format and fastText's `.vec` (both end a line with a
space). Without: GloVe's `vectors.txt` (Pennington et al., 2014). The last D fields of a line are
the numbers and all before them is the word, for published files hold words with spaces.
"""

import codecs
import collections
import gzip
import re
import warnings

import numpy as np

from kctx.convert.byte_source import likely_rows, opened
from kctx.convert.collected_words import CollectedWords
from kctx.convert.word2vec_file import check_filled, check_header, parse_header
from kctx.files import is_gzipped, whole_file
from kctx.vectors.tables import chunks
from kctx.words import to_bytes, to_text

_LONGEST_LINE = 64 * 2**20
_LINES_LOOKED_AT = 100
_DECIMAL = re.compile(rb"[-+]?\d*\.\d+(e[-+]?\d+)?", re.IGNORECASE)
_ROWS_AT_ONCE = 1024


def is_number(field):
    """Whether bytes are a number."""
    try:
        float(field)
    except ValueError:
        return False
    return True


def infer_dim(lines):
    """The width that most of some lines have; None if they hold no numbers."""
    widths = collections.Counter()
    for line in lines:
        fields = line.split()
        numbers = 0
        while numbers + 1 < len(fields) and is_number(fields[-1 - numbers]):
            numbers += 1
        if fields:
            # A line may also begin with its first number, if its word is empty.
            widths[numbers + (line[:1] == b" " and numbers + 1 == len(fields))] += 1
    dim = widths.most_common(1)[0][0] if widths else 0
    return dim or None


def read(path, report, header=None, first=None, only=None, storage="float32", progress=False):
    """Reads a text file, gzipped or not; lines may end with CR LF.

    Args:
        report: `VectorsReport` to fill.
        header: bool, whether the first line holds the sizes. Default: found out.
        first, only, storage, progress: as `kctx.convert.load_vectors`.

    Returns:
        `Vectors`.

    Raises:
        ValueError: a row with another number of numbers than the others, or with something else in
            their place (its line is named); fewer or more rows than the header promises.
    """
    with opened(path, progress) as source:
        lines = _lines(source)
        some = next(lines, [])
        if some and header is not False:
            some[0] = without_mark(some[0])
        sizes = parse_header(some[0]) if some else None
        if header is None:
            header = sizes is not None and looks_like_header(some)
        if header:
            if sizes is None:
                shown = some[0][:40] if some else b""
                raise ValueError(f"{path} does not begin with a line of two sizes: {shown!r}")
            rows, dim = sizes
            check_header(path, rows, dim, 2 * dim + 1)
            some = some[1:]
        else:
            rows, dim = None, infer_dim(some[:_LINES_LOOKED_AT])
            if dim is None:
                raise ValueError(f"{path} holds no word vectors in line 1: {_shown(some)}")
        expected = _count_lines(path) if rows is None else likely_rows(path, rows, dim)
        if some and some[0].startswith(codecs.BOM_UTF8):
            warnings.warn(
                f"{path}: the byte order mark is read as a part of the first word, "
                f"{_shown(some)}. Remove it if an editor put it there.",
                stacklevel=2,
            )
        kept = CollectedWords(report, expected, dim, first, only, storage)
        number = 1 + header  # of the line that comes next
        found, blank = 0, None
        while True:
            filled = [line for line in some if line]
            if blank is not None and filled:
                raise ValueError(f"{path}: line {blank} is empty.")
            if len(filled) < len(some):
                blank = number + some.index(b"")
                if any(some[some.index(b"") :]):
                    raise ValueError(f"{path}: line {blank} is empty.")
            if filled:
                if rows is not None and found + len(filled) > rows:
                    raise ValueError(
                        f"{path}: the header promises {rows} rows, but line "
                        f"{number + rows - found} is a further one."
                    )
                words, values = parse_rows(filled, dim, path, number, report)
                kept.add(words, values)
                found += len(filled)
            if kept.is_full:
                return kept.vectors()
            number += len(some)
            some = next(lines, None)
            if some is None:
                break
    if rows is not None and found < rows:
        raise ValueError(
            f"{path} is truncated or its header is wrong: the header promises {rows} rows, and "
            f"the file ends after {found}."
        )
    return kept.vectors()


def without_mark(line):
    """A first line without a byte order mark before its two sizes; a word may begin with one."""
    rest = line.removeprefix(codecs.BOM_UTF8)
    return line if parse_header(rest) is None else rest


def looks_like_header(lines):
    """Whether a first line of two integers is a header, and no row of one number."""
    _, dim = parse_header(lines[0])
    rows = [line for line in lines[1:_LINES_LOOKED_AT] if line]
    # Only where the next rows have one number each does a row look like a header.
    return not rows or dim != 1 or infer_dim(rows) == 1


def parse_rows(lines, dim, path, number, report):
    """Words (list of bytes) and numbers (n, dim) float32 of lines without their ends.

    Args:
        number: int, of the first line, for errors.
        report: `VectorsReport`, for words with spaces.
    """
    parts = [line.partition(b" ") for line in lines]
    rests = [rest.removesuffix(b" ") for _, _, rest in parts]
    numbers = b" ".join(rests)
    plain = b"  " not in numbers and b"\t" not in numbers
    if plain and all(rest.count(b" ") == dim - 1 for rest in rests):
        # By far the most common: one word, D numbers, nothing else.
        values = _floats(numbers)
        if len(values) == len(lines) * dim:
            return [word for word, _, _ in parts], values.reshape(-1, dim)
    words, values = [], np.empty((len(lines), dim), np.float32)
    for index, line in enumerate(lines):
        word, fields = _cut(line, dim)
        try:
            values[index] = [float(field) for field in fields or [b""]]
        except ValueError:
            fields = None
        if fields is None or len(fields) != dim or _extra(word):
            have = len(fields or []) + _extra(word)
            raise ValueError(
                f"{path}: line {number + index} does not hold a word and {dim} numbers"
                f"{'' if have in (0, dim) else f', but {have}'}: {_shown([line])}"
            )
        if b" " in word:
            report.with_spaces.append(to_text(word))
        words.append(word)
    return words, values


def _cut(line, dim):
    """The word and the last `dim` fields of a line, or None for them."""
    parts = line.removesuffix(b" ").rsplit(b" ", dim)
    if len(parts) == dim + 1 and all(parts[1:]):
        return parts[0], parts[1:]
    parts = line.rsplit(None, dim)  # several spaces, or tabs
    if len(parts) == dim + 1:
        return parts[0], parts[1:]
    return b"", parts[1:] if all(is_number(part) for part in parts[1:]) else None


def _extra(word):
    """How many numbers with a decimal point stand in a word behind its first part."""
    if b" " not in word and b"\t" not in word:
        return 0
    return sum(_DECIMAL.fullmatch(part) is not None for part in word.split()[1:])


def _floats(text):
    """(N,) float32 of numbers in text, up to the first thing that is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return np.fromstring(text, np.float32, sep=" ")
        except ValueError:
            return np.empty(0, np.float32)


def _lines(source):
    """Lists of lines, without their ends; the last line of a file may be empty."""
    rest = b""
    while block := source.read():
        block = rest + block
        end = block.rfind(b"\n") + 1
        rest = block[end:]
        if len(rest) > _LONGEST_LINE:
            raise ValueError(
                f"{source.path} holds no word vectors as text: a line of more than "
                f"{_LONGEST_LINE} bytes."
            )
        if end:
            # The number before it is never part of a word, so a CR there ends the line.
            yield [line.removesuffix(b"\r") for line in block[: end - 1].split(b"\n")]
    if rest:
        yield [rest.removesuffix(b"\r")]


def _count_lines(path):
    """The number of lines of a plain file; a guess for a gzipped one."""
    if is_gzipped(path):
        return 1024
    with opened(path) as source:
        return 1 + sum(block.count(b"\n") for block in iter(source.read, b""))


def _shown(lines):
    line = lines[0] if lines else b""
    text = line.decode("utf-8", "replace")
    return repr(text if len(text) <= 90 else f"{text[:60]} ... {text[-25:]}")


def write(vectors, path, header=True, digits=9, trailing_space=False, unknown_row=False):
    """Writes text, gzipped if the name ends in ".gz", whole or not at all.

    Args:
        vectors: `Vectors`.
        header: bool, whether the first line holds the sizes.
        digits: int, significant digits of a number; 9 bring back every float32. Default 9.
        trailing_space: bool, whether each line ends with a space, as from fastText and word2vec.
        unknown_row: bool, whether a last row `<unk>`, the mean of the last 100 rows, is added, as
            GloVe's own tool does. Default False.

    Raises:
        ValueError: a word that would not be read back; it is named, and nothing is written.
    """
    check_filled(vectors)
    words = [to_bytes(word) for word in vectors.words]
    _check_words(words, header)
    count, dim = len(words), vectors.dim
    if unknown_row and "<unk>" in vectors:
        raise ValueError("`unknown_row` adds a row '<unk>', which the vectors have already.")
    # Whole numbers would make a short row look like a header.
    number = f" %.{digits}g" if dim > 2 else f" %.{digits - 1}e"
    row_format = number.encode() * dim + (b" \n" if trailing_space else b"\n")
    with whole_file(path) as file:
        target = gzip.GzipFile("", "wb", 6, file, 0) if str(path).endswith(".gz") else file
        if header:
            target.write(b"%d %d\n" % (count + unknown_row, dim))
        for start, rows in chunks(vectors.table, _ROWS_AT_ONCE):
            some = words[start : start + len(rows)]
            target.write(
                b"".join(
                    word + row_format % tuple(row)
                    for word, row in zip(some, rows.tolist(), strict=True)
                )
            )
        if unknown_row:
            last = vectors.table.chunk(max(0, count - 100), count)
            target.write(b"<unk>" + row_format % tuple(last.mean(axis=0).tolist()))
        if target is not file:
            target.close()


def _check_words(words, header):
    """Raises a `ValueError` for words that would not be read back."""
    for word in words:
        if b"\n" in word or _extra(word):
            raise ValueError(
                "A text file cannot hold a word with a line feed, or with a decimal number behind "
                f"a space. Received: {word[:80]!r}. `Vectors.save` keeps any words"
            )
    first = words[:_LINES_LOOKED_AT]
    if not header and first and infer_dim([word + b" 0.5" for word in first]) != 1:
        odd = next(word for word in first if infer_dim([word + b" 0.5"]) != 1)
        raise ValueError(
            "Without a header, words with spaces and numbers among the first lines hide the "
            f"width. Received: {odd[:80]!r}. Write a format with a header"
        )
