"""GloVe's `vectors.bin`: all parameters of a training, as its own tool leaves them.

Pennington et al., 2014. Raw float64: for each word its d numbers and its bias, then the same for
each word as context. The words stand in `vocab.txt`, `word count` in each line.
"""

from pathlib import Path

import numpy as np

from kctx.convert.collected_words import CollectedWords

_ROWS_AT_ONCE = 4096


def read_vocabulary(path):
    """Words (list of bytes) and counts (V,) int64 of a `vocab.txt`.

    Raises:
        ValueError: a line without a count; it is named.
    """
    words, counts = [], []
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), start=1):
        word, space, count = line.removesuffix(b"\r").rpartition(b" ")
        if not line:
            continue
        if not space or not count.isdigit():
            raise ValueError(f"{path}: line {number} is no word with its count: {line[:60]!r}")
        words.append(word)
        counts.append(int(count))
    return words, np.array(counts, np.int64)


def read(path, vocabulary, report, first=None, only=None, storage="float32"):
    """Reads `vectors.bin`: the sum of the two vectors of each word, as the tool exports it.

    Args:
        vocabulary: path of the `vocab.txt` that the training used.
        report: `VectorsReport` to fill.
        first, only, storage: as `kctx.convert.load_vectors`.

    Returns:
        `Vectors`.

    Raises:
        ValueError: the size of the file does not fit to the number of words.
    """
    words, _ = read_vocabulary(vocabulary)
    size = Path(path).stat().st_size
    width = size // 8 // max(2 * len(words), 1)
    if not words or width < 2 or size != 16 * len(words) * width:
        raise ValueError(
            f"{path} has {size} bytes, which is not 2 float64 rows for each of the {len(words)} "
            f"words of {vocabulary}."
        )
    values = np.memmap(path, "<f8", "r", shape=(2, len(words), width))
    kept = CollectedWords(report, len(words), width - 1, first, only, storage)
    for start in range(0, len(words), _ROWS_AT_ONCE):
        some = values[:, start : start + _ROWS_AT_ONCE, :-1]
        kept.add(words[start : start + _ROWS_AT_ONCE], some.sum(axis=0).astype(np.float32))
        if kept.is_full:
            break
    return kept.vectors()
