"""Which examples are held out where there is no dev set."""


def check_every(every, count, what):
    """Raises a `ValueError` unless one in `every` of `count` things leaves some on both sides."""
    if isinstance(every, bool) or not isinstance(every, int) or not 1 < every <= count:
        raise ValueError(
            f"`every` must lie in [2, {count}], the number of {what}. Received: {every!r}"
        )


def split_by_context(examples, every):
    """(the others, every so-manieth context with all its questions).

    Questions on one context stay together, so that none of it was seen in training.

    Args:
        examples: with a list `contexts` and a method `take`.
        every: int.

    Raises:
        ValueError: there are fewer contexts than `every`, so none would be held out.
    """
    contexts = list(dict.fromkeys(examples.contexts))
    check_every(every, len(contexts), "contexts")
    held_out = set(contexts[every - 1 :: every])
    chosen = [context in held_out for context in examples.contexts]
    return tuple(
        examples.take([i for i, held in enumerate(chosen) if held == wanted])
        for wanted in (False, True)
    )
