"""Sizes rounded up so that a compiled step sees few of them."""

_GROWTH = 1.25


def few_shapes(number, least):
    """The first of `least`, 1.25 `least`, 1.25 ^ 2 `least`, .. (multiples of `least` / 4) that is
    large enough.

    Args:
        number: int, what there must be room for.
        least: int, a multiple of 4.
    """
    room, grain = float(least), least // 4
    while (size := -(-int(room) // grain) * grain) < number:
        room *= _GROWTH
    return size
