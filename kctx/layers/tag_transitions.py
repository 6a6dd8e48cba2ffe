"""Which tag may follow which in a scheme of spans."""

from kctx.tag_schemes import OUTSIDE, PREFIXES

# In BIO1 the first word of an entity may have either prefix, so there is nothing to forbid.
_STRICT = tuple(scheme for scheme in PREFIXES if scheme != "BIO1")


def tag_transitions(tags, scheme):
    """A table of allowed transitions for `kctx.layers.CRF` and the taggers of `kctx.heads`.

    Args:
        tags: list of str, C names in the order of their ids: "O", or a prefix and a type, as
            "B-PER". Where there is one type only, prefixes alone, as "B", will do.
        scheme: "BIO" (also called IOB2: each span begins with B), "BIOES" (the last piece of a
            span is E, a span of one is S), "BMES" (the same with M for I), "BILOU" (the same with
            L for E and U for S) or None: anything goes.

    Returns:
        list of C + 1 lists of C + 1 bools: [i][j] whether tag j may follow tag i, [C][j] whether j
        may be the first, [i][C] whether i may be the last. [C][C] is True: of no words at all.
        None for no scheme.

    Raises:
        ValueError: unknown scheme, or a tag that is not of it.
    """
    if scheme is None:
        return None
    if scheme not in _STRICT:
        raise ValueError(
            f"`scheme` must be one of {', '.join(_STRICT)} or None. Received: {scheme!r}"
        )
    known = sorted(set(PREFIXES[scheme]))
    split = [tag.partition("-")[::2] for tag in tags]  # (prefix, type)
    wrong = [
        tag
        for tag, (prefix, _) in zip(tags, split, strict=True)
        if tag != OUTSIDE and prefix not in known
    ]
    if wrong:
        raise ValueError(
            f"`tags` of the scheme {scheme} must be O, or begin with one of "
            f"{', '.join(known)} and a hyphen. Received: {', '.join(wrong[:5])}"
        )
    first, inside, last, alone = PREFIXES[scheme]
    # After what may stand last comes what may stand first.
    begins, ends = {first, alone, OUTSIDE}, {last, alone, OUTSIDE}

    def follows(one, other):
        same_type = one[1] == other[1]
        goes_on = one[0] in (first, inside) and other[0] in (inside, last)
        return (one[0] in ends and other[0] in begins) or (same_type and goes_on)

    rows = [[follows(one, other) for other in split] + [one[0] in ends] for one in split]
    return [*rows, [prefix in begins for prefix, _ in split] + [True]]
