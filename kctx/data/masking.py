"""Masked-LM selection (BERT, section 3.1, task 1, and appendix A.1).

Of the chosen pieces 80% become [MASK], 10% stay and 10% become a random entry of the vocabulary,
each piece independently. `mask_tokens` makes the draws of the original data maker in its order, for
one sequence; `mask_batch` is the same choice over a batch, as a pure function of uniform numbers.
"""

import numpy as np

from kctx.data.pairs import draw_integer


def number_to_predict(length, max_predictions, probability):
    """Predictions in a sequence of `length` tokens, its special tokens counted.

    Halves are rounded to the even number, as Python 3 does: 10 tokens give 2, 30 give 4.
    """
    return min(max_predictions, max(1, round(length * probability)))


def mask_tokens(
    tokens,
    rng,
    *,
    vocabulary,
    special_tokens,
    mask_token,
    max_predictions,
    probability=0.15,
    is_continuation=None,
):
    """Choose and replace the tokens to predict in one sequence.

    Args:
        tokens: list of token ids or strings with [CLS] and [SEP] in place.
        rng: `random.Random` (the draws of the original) or `numpy.random.Generator`.
        vocabulary: sequence of the tokens that a random replacement is drawn from.
        special_tokens: tokens never chosen.
        mask_token: what 80% are replaced by.
        max_predictions: most predictions in a sequence.
        probability: share of the tokens to predict.
        is_continuation: function that tells a `##` piece, for whole-word masking: such a piece
            joins the candidate before it, and a word that would exceed the number of predictions
            is passed over. `None` (default) chooses single pieces.

    Returns:
        `(tokens, positions, labels)`: the list with replacements, the sorted positions chosen and
        the original tokens there.
    """
    candidates = []
    for position, token in enumerate(tokens):
        if token in special_tokens:
            continue
        if is_continuation is not None and candidates and is_continuation(token):
            candidates[-1].append(position)
        else:
            candidates.append([position])
    rng.shuffle(candidates)
    count = number_to_predict(len(tokens), max_predictions, probability)
    masked, chosen = list(tokens), []
    for candidate in candidates:
        if len(chosen) >= count:
            break
        if len(chosen) + len(candidate) > count:
            continue
        for position in candidate:
            chosen.append(position)
            if rng.random() < 0.8:
                masked[position] = mask_token
            elif rng.random() >= 0.5:
                masked[position] = vocabulary[draw_integer(rng, 0, len(vocabulary) - 1)]
    chosen.sort()
    return masked, chosen, [tokens[position] for position in chosen]


def mask_batch(
    token_ids,
    eligible,
    lengths,
    uniforms,
    *,
    mask_id,
    replacement_ids,
    max_predictions,
    probability=0.15,
    continuation=None,
):
    """Choose and replace the tokens to predict in a batch.

    Args:
        token_ids: int32 (B, T).
        eligible: bool (B, T), False for special and padding tokens: never chosen.
        lengths: int (B,), tokens of each row, special ones counted, padding not.
        uniforms: float64 (B, T + 2 M) in [0, 1), all the randomness there is. The first T order
            the candidates (the smallest are taken), the next M decide between mask, keep and
            replace, the last M pick the replacement.
        mask_id: id of [MASK].
        replacement_ids: int32 (R,), the ids a random replacement is drawn from.
        max_predictions: M.
        probability: share of the tokens to predict.
        continuation: bool (B, T), True for `##` pieces, for whole-word masking; `None` (default)
            chooses single pieces.

    Returns:
        `(token_ids, positions, labels, weights)`: int32 (B, T), int32 (B, M), int32 (B, M) and
        float32 (B, M). Positions are sorted; behind them position 0, label 0, weight 0.
    """
    B, T = token_ids.shape
    M = max_predictions
    if uniforms.shape != (B, T + 2 * M):
        raise ValueError(
            f"`uniforms` must have the shape (B, T + 2 M) = {(B, T + 2 * M)}. "
            f"Received: uniforms.shape={uniforms.shape}"
        )
    order = uniforms[:, :T]
    # numpy's rint rounds half to even as Python's round does.
    counts = np.minimum(M, np.maximum(1, np.rint(lengths * probability))).astype(np.int64)  # (B,)
    if continuation is None:
        ranked = np.argsort(np.where(eligible, order, 2.0), axis=1, kind="stable")[:, :M]
        chosen = np.arange(ranked.shape[1]) < counts[:, None]  # (B, min(M, T))
        chosen &= np.take_along_axis(eligible, ranked, axis=1)
        positions = np.where(chosen, ranked, T)
    else:
        chosen = _choose_words(eligible, continuation, order, counts)  # (B, T)
        positions = np.where(chosen, np.arange(T), T)
    positions = np.sort(positions, axis=1)[:, :M]
    positions = np.pad(positions, ((0, 0), (0, M - positions.shape[1])), constant_values=T)
    weights = positions < T  # (B, M)
    positions = np.where(weights, positions, 0)
    labels = np.where(weights, np.take_along_axis(token_ids, positions, axis=1), 0)
    action, pick = uniforms[:, T : T + M], uniforms[:, T + M :]
    replacement = replacement_ids[(pick * len(replacement_ids)).astype(np.int64)]
    replaced = np.where(action < 0.8, mask_id, np.where(action < 0.9, labels, replacement))
    masked = token_ids.copy()
    rows, columns = np.nonzero(weights)
    masked[rows, positions[rows, columns]] = replaced[rows, columns]
    return (
        masked,
        positions.astype(np.int32),
        labels.astype(np.int32),
        weights.astype(np.float32),
    )


def _choose_words(eligible, continuation, order, counts):
    """Whole words in the order of their first piece's number, those that overflow passed over."""
    B, T = eligible.shape
    # A piece joins the last candidate, over a [SEP] too; the first of a row opens one.
    first = eligible & (~continuation | (np.cumsum(eligible, axis=1) == 1))
    word = np.where(eligible, np.cumsum(first, axis=1) - 1, T)  # (B, T), T: no word
    rows = np.arange(B)[:, None]
    sizes = np.zeros((B, T + 1), np.int64)
    np.add.at(sizes, (np.broadcast_to(rows, (B, T)), word), 1)
    keys = np.full((B, T + 1), 2.0)
    keys[np.nonzero(first)[0], word[first]] = order[first]
    by_key = np.argsort(keys[:, :T], axis=1, kind="stable")  # (B, T) words in drawn order
    taken = np.zeros((B, T + 1), bool)
    total = np.zeros(B, np.int64)
    most_words = int(first.sum(axis=1).max(initial=0))
    for rank in range(most_words):
        drawn = by_key[:, rank]
        size = sizes[rows[:, 0], drawn]
        fits = (total + size <= counts) & (size > 0)
        taken[rows[:, 0], drawn] = fits
        total += size * fits
        if (total >= counts).all():
            break
    taken[:, T] = False
    return np.take_along_axis(taken, word, axis=1)


def draw_uniforms(seed, rows, sequence_length, max_predictions):
    """Uniform numbers for `mask_batch`: (rows, T + 2 M), fixed by `seed` (int or list of int)."""
    shape = (rows, sequence_length + 2 * max_predictions)
    return np.random.default_rng(seed).random(shape)
