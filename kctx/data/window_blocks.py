"""Text cut into blocks of centres with a halo of context, for Word2Vec and fastText."""

from typing import NamedTuple

import numpy as np

from kctx.data.id_corpus import LINE_END


class WindowBlocks(NamedTuple):
    """Blocks of C centres each, with W words of halo on either side; H = C + 2W.

    Attributes:
        words: int32 (N, H), word ids in the order of the text; what lies outside it is 0.
        first, last: int32 (N, C), the places in the block where the window of each centre begins
            and ends; first > last where there is none.
    """

    words: np.ndarray
    first: np.ndarray
    last: np.ndarray

    def centres(self):
        """int32 (N, C)."""
        halo = (self.words.shape[1] - self.first.shape[1]) // 2
        return self.words[:, halo : halo + self.first.shape[1]]

    def in_a_window(self):
        """bool (N, H), which words lie in the window of another."""
        size, num_centres = self.words.shape[1], self.first.shape[1]
        place, centre = np.arange(size), np.arange(num_centres)
        inside = (self.first[..., None] <= place) & (place <= self.last[..., None])
        inside[:, centre, centre + (size - num_centres) // 2] = False
        return inside.any(axis=1)


def window_blocks(ids, keep, window, block_words, max_sentence_words, generator, line_end_id=None):
    """Subsamples a text, draws the window of each word, and cuts the text into blocks.

    Words that are left out take no place, so windows reach over them. A window is drawn from 1 to
    `window` words to each side, and ends where the sentence does.

    Args:
        ids: int32 (n,), as `IdCorpus` holds them, whole lines.
        keep: float32 (V,), chance of each word to be kept.
        window: W, int.
        block_words: C, int.
        max_sentence_words: longer sentences are cut.
        generator: `numpy.random.Generator`.
        line_end_id: int, the id of the word that a line's end counts as. Default: none.

    Returns:
        `WindowBlocks`; the last block is filled with places without a window.
    """
    ends = ids == LINE_END
    known = ids >= 0
    if line_end_id is not None:
        ids, known = np.where(ends, line_end_id, ids), known | ends
    # One draw for each token, so that a token's luck does not hang on the vocabulary.
    kept = known & (generator.random(len(ids), np.float32) < keep[np.where(known, ids, 0)])
    sentence = np.cumsum(ends) - ends  # a line's end belongs to its line
    words, sentence = ids[kept], sentence[kept]
    start, end = _sentence_bounds(sentence, max_sentence_words)
    place = np.arange(len(words), dtype=np.int32)
    reach = generator.integers(1, window + 1, len(words), np.int32)
    first = np.maximum(place - reach, start)
    last = np.minimum(place + reach, end)
    return _as_blocks(words, first, last, window, block_words)


def no_window(number, block_words, window):
    """`number` blocks without any window, to fill a batch up."""
    shape = (number, block_words)
    return WindowBlocks(
        np.zeros((number, block_words + 2 * window), np.int32),
        np.ones(shape, np.int32),
        np.zeros(shape, np.int32),
    )


def expected_words(ids, keep, line_end_id=None):
    """How many words `window_blocks` will keep: (mean, standard deviation)."""
    chance = keep[ids[ids >= 0]].astype(np.float64)
    mean, variance = chance.sum(), (chance * (1 - chance)).sum()
    if line_end_id is not None:
        lines, chance = np.count_nonzero(ids == LINE_END), float(keep[line_end_id])
        mean, variance = mean + lines * chance, variance + lines * chance * (1 - chance)
    return mean, variance**0.5


def _sentence_bounds(sentence, longest):
    """First and last place of each word's sentence, or of its piece of a too long one."""
    number = len(sentence)
    place = np.arange(number, dtype=np.int32)
    begins = np.ones(number, bool)
    begins[1:] = sentence[1:] != sentence[:-1]
    starts = place[begins]
    lengths = np.diff(starts, append=number)
    start = np.repeat(starts, lengths)
    end = np.repeat(starts + lengths - 1, lengths)
    if number and lengths.max() > longest:
        start = start + (place - start) // longest * longest
        end = np.minimum(end, start + longest - 1)
    return start.astype(np.int32), end.astype(np.int32)


def _as_blocks(words, first, last, window, block_words):
    number = -(-len(words) // block_words)
    if not number:
        return no_window(0, block_words, window)
    filled = number * block_words
    padded = np.zeros(filled + 2 * window, np.int32)
    padded[window : window + len(words)] = words
    views = np.lib.stride_tricks.sliding_window_view(padded, block_words + 2 * window)
    # Places counted from the beginning of the block with its halo.
    origin = np.arange(number, dtype=np.int32)[:, None] * block_words - window
    bounds = []
    for values, filler in ((first, 1), (last, 0)):
        whole = np.zeros(filled, np.int32)
        whole[: len(words)] = values
        inside = whole.reshape(number, block_words) - origin
        inside.reshape(-1)[len(words) :] = filler
        bounds.append(inside)
    return WindowBlocks(views[::block_words], *bounds)
