"""The words of a window, and the windows of a word."""

from kctx.kernels.compiling import compiled
from kctx.kernels.rows import ONE, ZERO, add_multiples


@compiled
def window_words(first, last, itself, sizes, g, average, chosen, weights):
    """Lists the words of a window and how much each counts; returns how many there are."""
    count, whole = 0, ZERO
    for h in range(first, last + 1):
        if h != itself:
            chosen[count] = h
            weights[count] = sizes[g, h]
            whole += sizes[g, h]
            count += 1
    if average:
        for i in range(count):
            weights[i] /= whole
    return count


@compiled
def centres_around(first, last, word, halo, chosen):
    """Lists the centres in whose windows the word at a place lies; returns how many there are.

    Args:
        first, last: int32 (C,), where the window of each centre begins and ends.
        word: int, place in the block.
    """
    count = 0
    for c in range(max(0, word - 2 * halo), min(len(first), word + 1)):
        if first[c] <= word <= last[c] and c + halo != word:
            chosen[count] = c
            count += 1
    return count


@compiled
def add_to_window(gradient, chosen, weights, count, corrected, out):
    """Adds the gradient of a window's bag to its words: whole, or by how much each counts."""
    if not corrected:
        for i in range(count):
            weights[i] = ONE
    add_multiples(gradient, 0, weights, 0, chosen, count, out)
