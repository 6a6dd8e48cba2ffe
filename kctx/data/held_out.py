"""Which examples are held out where there is no dev set."""


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
    if not 1 < every <= len(contexts):
        raise ValueError(
            f"`every` must lie in [2, {len(contexts)}], the number of contexts. Received: {every}"
        )
    held_out = set(contexts[every - 1 :: every])
    chosen = [context in held_out for context in examples.contexts]
    return tuple(
        examples.take([i for i, held in enumerate(chosen) if held == wanted])
        for wanted in (False, True)
    )
