"""Segment pairs for next-sentence prediction (BERT, section 3.1 and appendix A.2).

A pair is planned from sentence lengths alone, so a stream can draw first and tokenise only the
second segments that were drawn; `build_pairs` does both at once over token lists. Every random
decision is made in the order of the original data maker, so a `random.Random` with the same seed
gives the same pairs.
"""

import random
from typing import Any, NamedTuple


class PairPlan(NamedTuple):
    """Which sentences make a pair; ranges count sentences of the document."""

    first: tuple[int, int]  # segment A
    second: tuple[int, int] | None  # segment B if it is the real continuation
    other: Any  # what `choose_other` returned, if B is random
    other_length: int  # tokens wanted of `other`; at least one sentence is taken


def draw_integer(rng, low, high):
    """Integer in [low, high] from a `random.Random` or a `numpy.random.Generator`."""
    if isinstance(rng, random.Random):
        return rng.randint(low, high)
    return int(rng.integers(low, high + 1))


def plan_pairs(lengths, choose_other, max_tokens, short_sequence_probability, rng):
    """Plan the pairs of one document.

    Sentences are gathered until the target length is reached or the document ends; a uniform
    number of them becomes A. With probability one half, or if there is one sentence only, B is
    random: it comes from another document, and the sentences left over are gathered again.

    Args:
        lengths: tokens of each sentence of the document.
        choose_other: function of `rng` that draws where a random B begins; its answer is handed
            through in the plan.
        max_tokens: tokens of A and B together, the sequence length without its special tokens.
        short_sequence_probability: with this probability the target of the whole document is
            uniform in [2, max_tokens] instead of max_tokens.
        rng: `random.Random` or `numpy.random.Generator`.

    Yields:
        `PairPlan`. Draws made by the caller between two plans come between theirs.
    """
    target = max_tokens
    if rng.random() < short_sequence_probability:
        target = draw_integer(rng, 2, max_tokens)
    begin, gathered, i = 0, 0, 0
    while i < len(lengths):
        gathered += lengths[i]
        if i == len(lengths) - 1 or gathered >= target:
            count = i + 1 - begin
            split = begin + (draw_integer(rng, 1, count - 1) if count > 1 else 1)
            if count == 1 or rng.random() < 0.5:
                wanted = target - sum(lengths[begin:split])
                yield PairPlan((begin, split), None, choose_other(rng), wanted)
                i = split - 1  # the unused sentences are put back
            else:
                yield PairPlan((begin, split), (split, i + 1), None, 0)
            begin, gathered = i + 1, 0
        i += 1


def choose_document(number_of_documents, document, rng, tries=10):
    """Draw a document, again if it is `document` itself, up to `tries` times."""
    for _ in range(tries):
        other = draw_integer(rng, 0, number_of_documents - 1)
        if other != document:
            break
    return other


def count_sentences(lengths, wanted):
    """How many sentences make `wanted` tokens or more: at least one, at most all."""
    total = count = 0
    for length in lengths:
        total, count = total + length, count + 1
        if total >= wanted:
            break
    return count


def plan_truncation(length_a, length_b, max_tokens, rng):
    """Shorten a pair token by token: from the longer (B if equal), front or back by a fair coin.

    Returns:
        `(front_a, length_a, front_b, length_b)`: tokens dropped at the front of each segment and
        the length that is left of it.
    """
    front_a = front_b = 0
    while length_a + length_b > max_tokens:
        at_front = rng.random() < 0.5
        if length_a > length_b:
            length_a -= 1
            front_a += at_front
        else:
            length_b -= 1
            front_b += at_front
    return front_a, length_a, front_b, length_b


def build_pairs(documents, document, sequence_length, short_sequence_probability, rng):
    """Build the pairs of one document over token lists.

    Args:
        documents: list of documents, each a list of sentences, each a list of tokens (ids or
            strings). No empty document and no empty sentence.
        document: number of the document to build from.
        sequence_length: length with [CLS] and two [SEP].
        short_sequence_probability: see `plan_pairs`.
        rng: `random.Random` or `numpy.random.Generator`.

    Yields:
        `(tokens_a, tokens_b, is_random)`. Lazy: draws made for one pair (the masking) come before
        those of the next, as in the original.
    """

    def choose_other(rng):
        other = choose_document(len(documents), document, rng)
        return other, draw_integer(rng, 0, len(documents[other]) - 1)

    sentences = documents[document]
    max_tokens = sequence_length - 3
    lengths = [len(sentence) for sentence in sentences]
    for plan in plan_pairs(lengths, choose_other, max_tokens, short_sequence_probability, rng):
        if plan.second is None:
            other, start = plan.other
            rest = documents[other][start:]
            rest = rest[: count_sentences(map(len, rest), plan.other_length)]
        else:
            rest = sentences[slice(*plan.second)]
        tokens_a = [token for sentence in sentences[slice(*plan.first)] for token in sentence]
        tokens_b = [token for sentence in rest for token in sentence]
        front_a, length_a, front_b, length_b = plan_truncation(
            len(tokens_a), len(tokens_b), max_tokens, rng
        )
        yield (
            tokens_a[front_a : front_a + length_a],
            tokens_b[front_b : front_b + length_b],
            plan.second is None,
        )


def plan_single_segments(lengths, max_tokens):
    """Plan sequences of one segment: whole sentences of a document, as many as fit.

    (RoBERTa, section 4.2, DOC-SENTENCES.) A sentence longer than `max_tokens` is cut into pieces.

    Returns:
        List of `(begin, end)` token offsets within the document, in order and without gaps.
    """
    ranges, begin, end = [], 0, 0
    for length in lengths:
        if end > begin and end + length - begin > max_tokens:
            ranges.append((begin, end))
            begin = end
        end += length
        while end - begin > max_tokens:
            ranges.append((begin, begin + max_tokens))
            begin += max_tokens
    if end > begin:
        ranges.append((begin, end))
    return ranges
