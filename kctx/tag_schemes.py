"""Tags that mark where entities begin and end: BIO1, BIO (BIO2), BIOES, BMES and BILOU."""

from kctx.arguments import check_choice

OUTSIDE = "O"

# Prefixes of the first, an inner and the last word of an entity, and of one of a single word. BIO1
# has a rule of its own for the first.
PREFIXES = {"BIO1": "BIII", "BIO": "BIIB", "BIOES": "BIES", "BMES": "BMES", "BILOU": "BILU"}
SCHEMES = tuple(PREFIXES)

# Prefixes at which an entity begins, or behind which it ends, whatever stands beside them.
BEGINS, ENDS = "BSU", "ESLU"


def split_tag(tag):
    """ "B-PER" -> ("B", "PER"); "O" -> ("O", ""); a bare "B" has the label "_"."""
    return (OUTSIDE, "") if tag == OUTSIDE else (tag[:1], tag[2:] or "_")


def is_tag_of(tag, scheme):
    """Whether a tag is "O", or a prefix of the scheme, alone or with a label behind a hyphen."""
    known = set(PREFIXES[scheme])
    return tag == OUTSIDE or (tag[:1] in known and (len(tag) == 1 or tag[1] == "-"))


def tag_spans(tags):
    """The entities of a sentence, as seqeval and the CoNLL scorer read them, in any scheme.

    An entity begins at B or S, where the label changes, and at any tag behind O, E or S; it ends
    before the next one or at O. So tags that break their scheme have entities, too. U and L of
    BILOU count as S and E.

    Args:
        tags: list of str.

    Returns:
        list of (label, start, end): `tags[start:end]` is the entity.
    """
    spans = []
    previous, label, start = OUTSIDE, "", 0
    for place, tag in enumerate([*tags, OUTSIDE]):
        prefix, new_label = split_tag(tag)
        begins = prefix in BEGINS or previous in OUTSIDE + ENDS or new_label != label
        if previous != OUTSIDE and (prefix == OUTSIDE or begins):
            spans.append((label, start, place))
        if prefix != OUTSIDE and begins:
            start = place
        previous, label = prefix, new_label
    return spans


def tags_of_spans(spans, length, scheme):
    """The tags of entities that do not overlap, the opposite of `tag_spans`.

    Args:
        spans: list of (label, start, end), in order.
        length: int, words of the sentence.
        scheme: one of `SCHEMES`.
    """
    check_choice("scheme", scheme, SCHEMES)
    first, inside, last, alone = PREFIXES[scheme]
    tags, before = [OUTSIDE] * length, (None, None)
    for label, start, end in spans:
        prefixes = first + inside * (end - start - 2) + last if end - start > 1 else alone
        if scheme == "BIO1" and before != (label, start):
            # B only where it is needed to tell an entity from one of its kind right before it.
            prefixes = inside * (end - start)
        elif scheme == "BIO1":
            prefixes = first + inside * (end - start - 1)
        ending = "" if label == "_" else f"-{label}"
        tags[start:end] = [prefix + ending for prefix in prefixes]
        before = (label, end)
    return tags


def convert_tags(tags, scheme):
    """The same entities in another scheme; one that breaks its scheme comes out legal.

    Args:
        tags: list of str, of any scheme.
        scheme: one of `SCHEMES`.
    """
    return tags_of_spans(tag_spans(tags), len(tags), scheme)


def all_tags(labels, scheme):
    """Every tag that a scheme can give entities of these labels, "O" first."""
    prefixes = dict.fromkeys(PREFIXES[scheme])
    endings = ["" if label == "_" else f"-{label}" for label in sorted(labels)]
    return [OUTSIDE, *(prefix + ending for ending in endings for prefix in prefixes)]
