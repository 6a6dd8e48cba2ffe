"""Counting n-grams of text that may be larger than memory."""

import numpy as np
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from kctx.arguments import check_count
from kctx.ngrams.counts import NGramCounts, orders_of
from kctx.ngrams.options import check_order
from kctx.ngrams.sorted_runs import SortedRuns
from kctx.ngrams.text import BLOCK_BYTES, Ids, WordIds, blocks_of, checked_source
from kctx.words import to_text

_DEFAULT_MEMORY = 2 << 30
_LEAST_TOKENS = 1 << 12


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
            folder, at least some 300 kB. Words come on top, and the tables of the result, some 16
            bytes an n-gram. Default 2 GiB.
        temporary_folder: where to spill. Default: the system's.
        progress: bool, whether to show a progress bar. Default True.

    Returns:
        `NGramCounts`.

    Raises:
        ValueError: no words, a special word in the text (file and line are named), an argument out
            of range.
        FileNotFoundError: no such file.
    """
    check_order(order)
    if memory_limit is not None:
        check_count("memory_limit", memory_limit, 1)
    files = checked_source(files, lines)
    word_ids = WordIds(vocabulary)
    reader = Ids(word_ids, special_words, empty_lines)
    # Ids, columns, keys and sorted keys of a token, at the highest.
    limit = max(_LEAST_TOKENS, (memory_limit or _DEFAULT_MEMORY) // (48 + 4 * order))
    columns = [TextColumn("Counting n-grams"), BarColumn(), DownloadColumn(), TimeRemainingColumn()]
    total = sum(file.stat().st_size for file in files) if files else None
    with (
        Progress(*columns, disable=not progress) as bar,
        SortedRuns(order, limit, temporary_folder) as runs,
    ):
        task = bar.add_task("tokens", total=total)
        size = min(BLOCK_BYTES, max(1 << 16, limit))
        blocks = blocks_of(files, lines, lambda read: bar.update(task, advance=read), size)
        for ids in _pieces(reader.of(blocks), limit):
            runs.add(ids, len(word_ids.words))
        if not runs.words_seen:
            shown = "`lines`" if lines is not None else ", ".join(str(name) for name in files)
            raise ValueError(f"The text must hold at least one word. Received none in {shown}")
        rows, counts = runs.merged(len(word_ids.words))
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
