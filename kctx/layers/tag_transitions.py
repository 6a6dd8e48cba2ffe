"""Which tag may follow which in a scheme of spans."""

# Scheme -> prefixes that may stand first, those that may stand last, and for each prefix within a
# span those that carry the span on. After what may stand last comes what may stand first.
SCHEMES = {
    "BIO": ("BO", "BIO", {"B": "I", "I": "I"}),
    "BIOES": ("BOS", "EOS", {"B": "IE", "I": "IE"}),
    "BMES": ("BOS", "EOS", {"B": "ME", "M": "ME"}),
}


def tag_transitions(tags, scheme):
    """A table of allowed transitions for `kctx.layers.CRF` and the taggers of `kctx.heads`.

    Args:
        tags: list of str, C names in the order of their ids: "O", or a prefix and a type, as
            "B-PER". Where there is one type only, prefixes alone, as "B", will do.
        scheme: "BIO" (also called IOB2: each span begins with B), "BIOES" (the last piece of a
            span is E, a span of one is S), "BMES" (the same with M for I) or None: anything goes.

    Returns:
        list of C + 1 lists of C + 1 bools: [i][j] whether tag j may follow tag i, [C][j] whether j
        may be the first, [i][C] whether i may be the last. [C][C] is True: of no words at all.
        None for no scheme.

    Raises:
        ValueError: unknown scheme, or a tag that is not of it.
    """
    if scheme is None:
        return None
    if scheme not in SCHEMES:
        raise ValueError(
            f"`scheme` must be one of {', '.join(SCHEMES)} or None. Received: {scheme!r}"
        )
    begins, ends, goes_on = SCHEMES[scheme]
    known = set(begins + ends) | set(goes_on) | set("".join(goes_on.values()))
    split = [tag.partition("-")[::2] for tag in tags]  # (prefix, type)
    wrong = [tag for tag in tags if tag != "O" and tag.partition("-")[0] not in known - {"O"}]
    if wrong:
        raise ValueError(
            f"`tags` of the scheme {scheme} must be O, or begin with one of "
            f"{', '.join(sorted(known - {'O'}))} and a hyphen. Received: {', '.join(wrong[:5])}"
        )

    def follows(one, other):
        same_type = one[1] == other[1]
        return (one[0] in ends and other[0] in begins) or (
            same_type and other[0] in goes_on.get(one[0], "")
        )

    rows = [[follows(one, other) for other in split] + [one[0] in ends] for one in split]
    return [*rows, [prefix in begins for prefix, _ in split] + [True]]
