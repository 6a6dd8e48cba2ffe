"""Counting n-grams of text that may be larger than memory."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from kctx.arguments import check_count
from kctx.ngrams.counts import NGramCounts, merged, orders_of
from kctx.ngrams.suffix_order import sorted_rows
from kctx.ngrams.text import END, START, Ids, WordIds, blocks_of, checked_source, to_text

MAX_ORDER = 6
_DEFAULT_MEMORY = 2 << 30


def count_ngrams(
    files=(),
    lines=None,
    order=3,
    vocabulary=None,
    special_words="error",
    empty_lines=True,
    memory_limit=None,
    temporary_folder=None,
    progress=True,
):
    """Counts all n-grams of orders 1 to `order`, a sentence a line.

    Text is read once, in blocks. What does not fit `memory_limit` is sorted, written to a temporary
    folder and merged at the end; the result is the same to the bit.

    Args:
        files: path or list of paths of text, `.gz` as well; or give `lines`.
        lines: iterable of str or bytes, a sentence each.
        order: int from 1 to 6. Default 3.
        vocabulary: list of words to tell apart; all others count as `<unk>`. Default: all words.
        special_words: `<s>`, `</s>` or `<unk>` as words of the text. "error" (the default): refuse,
            since text that can name the edges of sentences can change the model in ways its writer
            should not; "skip": read them as spaces; "unknown": count them as `<unk>`, as texts such
            as PTB and WikiText-2 mean it.
        empty_lines: bool, whether a line without words is a sentence `<s> </s>`, as KenLM takes it.
            Default True.
        memory_limit: int, bytes for text that was read and not yet written to the temporary
            folder. Words, and the tables of the result, some 16 bytes an n-gram, come on top.
            Default 2 GiB.
        temporary_folder: where to spill. Default: the system's.
        progress: bool, whether to show a progress bar. Default True.

    Returns:
        `NGramCounts`.

    Raises:
        ValueError: no words, a special word in the text (file and line are named), an argument out
            of range.
        FileNotFoundError: no such file.
    """
    check_count("order", order)
    if order > MAX_ORDER:
        raise ValueError(f"`order` must be from 1 to {MAX_ORDER}. Received: order={order}")
    if memory_limit is not None:
        check_count("memory_limit", memory_limit, 1)
    files = checked_source(files, lines)
    word_ids = WordIds(vocabulary)
    reader = Ids(word_ids, special_words, empty_lines)
    # Ids, columns, keys and sorted keys of a token, at the highest.
    limit = max(64, (memory_limit or _DEFAULT_MEMORY) // (48 + 4 * order))
    columns = [TextColumn("Counting n-grams"), BarColumn(), DownloadColumn(), TimeRemainingColumn()]
    total = sum(file.stat().st_size for file in files) if files else None
    with Progress(*columns, disable=not progress) as bar, _Runs(order, temporary_folder) as runs:
        task = bar.add_task("tokens", total=total)
        blocks = blocks_of(files, lines, lambda size: bar.update(task, advance=size))
        for ids in _pieces(reader.of(blocks), limit):
            runs.add(ids, len(word_ids.words))
        if not runs.words_seen:
            shown = "`lines`" if lines is not None else ", ".join(str(name) for name in files)
            raise ValueError(f"The text must hold at least one word. Received none in {shown}")
        rows, counts = runs.merge(limit, len(word_ids.words))
        orders = orders_of(rows, counts, len(word_ids.words))
    return NGramCounts(word_ids.words, orders, vocabulary is not None)


def count_words(files=(), lines=None, special_words="error", progress=True):
    """Occurrences of each word, most frequent first, then in order of appearance.

    Args:
        files, lines, special_words, progress: as `count_ngrams`.

    Returns:
        dict of str -> int, without `<unk>`, `<s>` and `</s>`; a vocabulary is made of it by
        `[word for word, count in counts.items() if count > 3]`.
    """
    counts = count_ngrams(files, lines, 1, special_words=special_words, progress=progress)
    totals = counts.orders[0].count
    best = np.argsort(-totals[3:], kind="stable") + 3
    return {to_text(counts.words[index]): int(totals[index]) for index in best.tolist()}


def _pieces(arrays, limit):
    """Arrays of about `limit` ids."""
    held, size = [], 0
    for ids in arrays:
        held.append(ids)
        size += len(ids)
        if size >= limit:
            ids = np.concatenate(held)
            for start in range(0, size - limit + 1, limit):
                yield ids[start : start + limit]
            held = [ids[size - size % limit :]]
            size %= limit
    if size:
        yield np.concatenate(held)


class _Runs:
    """Sorted runs of n-grams of the highest order: in memory while there is one, else in files."""

    def __init__(self, order, temporary_folder):
        self.order = order
        self.parent = temporary_folder
        self.folder = None
        self.runs = []
        self.words_seen = False
        self._before = np.full(order - 1, START, np.int32)
        self._position = 0

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.runs = []
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, ids, size):
        """Sorts and counts the n-grams that end in these ids, which follow those added before."""
        if self.runs and self.folder is None:
            if self.parent is not None:
                Path(self.parent).mkdir(parents=True, exist_ok=True)
            self.folder = Path(tempfile.mkdtemp(prefix="kctx-ngrams-", dir=self.parent))
            self.runs = [self._spilled(0, *self.runs[0])]
        self.words_seen = self.words_seen or bool((ids != END).any())
        columns = self._columns(ids)
        order, new = sorted_rows(columns, [size] * self.order)
        first = order[new]
        starts = np.flatnonzero(new)
        counts = np.diff(starts, append=len(order))
        del order, new, starts
        run = [column[first] for column in columns], counts
        if self.folder is not None:
            run = self._spilled(len(self.runs), *run)
        self.runs.append(run)

    def _columns(self, ids):
        """The last words, the words before them, and so on, `<s>` beyond the sentence's start."""
        count = len(ids)
        ends = np.flatnonzero(ids == END)
        # Position within the sentence: what follows an end begins anew.
        position = np.ones(count, np.int32)
        position[0] = self._position
        behind = ends[ends + 1 < count] + 1
        lengths = np.diff(behind, prepend=-self._position)
        position[behind] = 1 - lengths
        np.cumsum(position, out=position)
        extended = np.concatenate([self._before, ids])
        columns = [ids]
        for k in range(1, self.order):
            start = self.order - 1 - k
            columns.append(np.where(position >= k, extended[start : start + count], START))
        self._before = extended[count:]
        self._position = 0 if ids[-1] == END else int(position[-1]) + 1
        return [column.astype(np.int32, copy=False) for column in columns]

    def _spilled(self, number, columns, counts):
        """Writes a run; returns it as maps of the files."""
        maps = []
        for name, values in [*enumerate(columns), ("counts", counts)]:
            path = self.folder / f"run{number}-{name}.npy"
            np.save(path, values, allow_pickle=False)
            maps.append(np.load(path, mmap_mode="r", allow_pickle=False))
        return maps[:-1], maps[-1]

    def merge(self, limit, size):
        """All runs as one: columns and counts of different n-grams in suffix order.

        The runs are cut at the same values of their first two columns, so that about `limit` rows
        lie between two cuts; these are sorted together.
        """
        if len(self.runs) == 1:
            return self.runs[0]
        leading = [_leading(columns, size) for columns, _ in self.runs]
        step = max(1, min(limit, min(map(len, leading))) // 64)
        sample = np.sort(np.concatenate([keys[::step] for keys in leading]))
        cuts = np.unique(sample[:: max(1, limit // step)][1:])
        bounds = [
            np.concatenate([[0], np.searchsorted(keys, cuts), [len(keys)]]) for keys in leading
        ]
        del leading, sample
        paths = [self.folder / f"merged-{name}" for name in range(self.order + 1)]
        written = [open(path, "wb") for path in paths]  # noqa: SIM115
        try:
            for part in range(len(cuts) + 1):
                spans = [slice(bound[part], bound[part + 1]) for bound in bounds]
                parts = list(zip(self.runs, spans, strict=True))
                columns = [
                    np.concatenate([run[0][k][span] for run, span in parts])
                    for k in range(self.order)
                ]
                counts = np.concatenate([run[1][span] for run, span in parts])
                if len(counts):
                    columns, counts = merged(columns, counts, size)
                    for file, values in zip(written, [*columns, counts], strict=True):
                        values.tofile(file)
        finally:
            for file in written:
                file.close()
        maps = [np.memmap(path, np.int32, "r") for path in paths[:-1]]
        return maps, np.memmap(paths[-1], np.int64, "r")


def _leading(columns, size):
    """Sorted int64 keys of the first two columns of a run."""
    if len(columns) == 1:
        return columns[0].astype(np.int64)
    return columns[0].astype(np.int64) * size + columns[1]
