"""Sequences of tags in a linear chain: their scores, sums over all of them, and the best.

Lafferty, McCallum, Pereira, 2001; for tagging on top of a network: Lample et al., 2016,
arXiv:1603.01360, section 2.2.

Shape letters: B batch, W steps (words), C tags. All of it is computed in float32, whatever the
dtype of the emissions. Real steps come before padding, so a recursion forwards runs over the
padding too, and what it holds at the last real step is taken.
"""

from keras import ops

from kctx.layers.id_check import check_range
from kctx.layers.scan_states import look_up, scan_states

# What a broken rule costs in `tag_probabilities`: e to the minus that is 0, and sums of it with
# the logits of a long row keep three digits behind the point.
_BROKEN = 1e4


def leading_steps(mask):
    """A mask as bool (B, W), after a check that real steps come first, see `check_range`."""
    mask = ops.cast(mask, "bool")
    behind = ops.logical_and(mask[:, 1:], ops.logical_not(mask[:, :-1]))
    message = (
        "`mask` must hold the real steps first and padding behind them only; labels of padding are "
        "-1. In steps right behind padding it must be 0."
    )
    behind = check_range(ops.cast(behind, "int32"), 1, message)
    return ops.concatenate([mask[:, :1], ops.logical_and(mask[:, 1:], behind == 0)], axis=1)


def finite(emissions):
    """Emissions in float32; infinite ones, as of tags that are ruled out, become finite."""
    return ops.clip(ops.cast(emissions, "float32"), -1e30, 1e30)


def time_major(emissions, mask):
    """Emissions (B, W, C) and the mask as float32 (W + 2, B, C) and (W + 2, B, 1).

    The two steps more are padding, so that there is a first one and one after it in any case.
    """
    emissions = ops.where(ops.expand_dims(mask, -1), finite(emissions), 0.0)
    emissions = ops.pad(ops.transpose(emissions, (1, 0, 2)), ((0, 2), (0, 0), (0, 0)))
    real = ops.pad(ops.cast(ops.transpose(mask), "float32"), ((0, 2), (0, 0)))
    return emissions, ops.expand_dims(real, -1)


def forward_scores(emissions, transitions, start, best=False):
    """alpha_t[j] = logsumexp_i(alpha_{t-1}[i] + A[i, j]) + x_t[j], the sum of all beginnings.

    Args:
        emissions: of `time_major`.
        transitions: (C, C), or (B, C, C).
        start: (C,), or (B, C).
        best: bool, whether to take the maximum rather than the sum. Default False.

    Returns:
        (W + 2, B, C), finite but without meaning at padding
    """
    first = start + emissions[0]  # (B, C)
    step = _best_step if best else _forward_step
    rest = scan_states(step, first, (emissions[1:],), (transitions,))
    return ops.concatenate([ops.expand_dims(first, 0), rest], axis=0)


def _forward_step(alpha, inputs, constants):
    return ops.logsumexp(alpha[:, :, None] + constants[0], axis=1) + inputs[0]  # (B, C)


def _best_step(alpha, inputs, constants):
    return ops.max(alpha[:, :, None] + constants[0], axis=1) + inputs[0]  # (B, C)


def at_last_step(scores, mask):
    """(W + 2, B, C) -> (B, C), at the last real step, or at the first where there is none."""
    last = ops.maximum(ops.sum(ops.cast(mask, "int32"), axis=1) - 1, 0)  # (B,)
    return ops.take_along_axis(scores, last[None, :, None], axis=0)[0]


def backward_scores(emissions, mask, transitions, end):
    """beta_t[i] = logsumexp_j(A[i, j] + x_{t+1}[j] + beta_{t+1}[j]), the sum of all endings.

    Args:
        emissions, mask: of `time_major`.
        transitions: (C, C). end: (C,).

    Returns:
        (W + 1, B, C), for all steps but the last; at the last real step `end`.
    """
    last = ops.zeros_like(emissions[0]) + end  # (B, C)
    inputs = (emissions[1:], mask[1:])
    return scan_states(_backward_step, last, inputs, (transitions,), reverse=True)


def _backward_step(beta, inputs, constants):
    x, real = inputs  # (B, C), (B, 1), of the step after
    moved = ops.logsumexp(constants[0] + (x + beta)[:, None], axis=2)  # (B, C)
    return moved * real + beta * (1 - real)


def path_score(emissions, tags, mask, transitions, start, end):
    """The score of given tags, int (B, W), at real steps: (B,); 0 for a row without any."""
    emissions, real = finite(emissions), ops.cast(mask, "float32")  # (B, W, C), (B, W)
    tags = ops.where(mask, tags, 0)
    picked = ops.take_along_axis(emissions, ops.expand_dims(tags, -1), axis=2)[..., 0]  # (B, W)
    picked = ops.where(mask, picked, 0.0)
    num_tags = ops.shape(transitions)[0]
    moves = tags[:, :-1] * num_tags + tags[:, 1:]  # (B, W - 1)
    moved = ops.take(ops.reshape(transitions, (-1,)), moves) * real[:, 1:]
    # One step more, so that there is a first one.
    first = ops.take(start, ops.pad(tags, ((0, 0), (0, 1)))[:, 0])
    last_place = ops.maximum(ops.sum(ops.cast(mask, "int32"), axis=1, keepdims=True) - 1, 0)
    last = ops.take_along_axis(ops.pad(tags, ((0, 0), (0, 1))), last_place, axis=1)[:, 0]
    score = ops.sum(picked, axis=1) + ops.sum(moved, axis=1) + first + ops.take(end, last)
    return ops.where(ops.any(mask, axis=1), score, 0.0)


def log_partition(emissions, mask, transitions, start, end):
    """The logarithm of the sum over all tag sequences of exp(score): (B,); 0 for no steps."""
    x, _ = time_major(emissions, mask)
    alpha = at_last_step(forward_scores(x, transitions, start), mask)  # (B, C)
    return ops.where(ops.any(mask, axis=1), ops.logsumexp(alpha + end, axis=-1), 0.0)


def viterbi(emissions, mask, transitions, start, end, allowed=None):
    """The best tag sequence.

    Args:
        emissions: (B, W, C). mask: bool (B, W), real steps first.
        transitions: (C, C). start, end: (C,).
        allowed: bool (C + 1, C + 1), see `kctx.layers.tag_transitions`. A sequence that keeps to it
            is preferred to any that does not, whatever the scores. Where none can keep to it, the
            best of those that break it least often.

    Returns:
        tags int32 (B, W), 0 at padding; their score, float32 (B,)
    """
    mask = ops.cast(mask, "bool")
    if emissions.shape[0] == 0:  # of which torch takes no maximum
        return ops.zeros(ops.shape(mask), "int32"), ops.zeros((0,), "float32")
    x, real = time_major(emissions, mask)
    moves, first, last = transitions, start, end
    if allowed is not None:
        # What breaks a rule costs more than all else of a row can make up for.
        largest = ops.sum(ops.max(ops.abs(x), axis=-1), axis=0)  # (B,)
        largest = largest + ops.cast(ops.shape(x)[0], "float32") * ops.max(ops.abs(transitions))
        largest = largest + ops.max(ops.abs(start)) + ops.max(ops.abs(end))
        cost = ops.reshape(2.0 * largest + 1.0, (-1, 1))  # (B, 1)
        forbidden = ops.cast(ops.logical_not(ops.convert_to_tensor(allowed, "bool")), "float32")
        moves = transitions - ops.expand_dims(cost, -1) * forbidden[:-1, :-1]  # (B, C, C)
        first = start - cost * forbidden[-1, :-1]  # (B, C)
        last = end - cost * forbidden[:-1, -1]  # (B, C)
    alphas = forward_scores(x, moves, first, best=True)
    # The best tag before each tag, of all steps at once; at padding the tag itself.
    before = ops.expand_dims(alphas[:-1], 2) + ops.swapaxes(moves, -1, -2)  # (W + 1, B, C, C)
    before = ops.argmax(before, axis=-1)  # (W + 1, B, C)
    steps, batch, num_tags = ops.shape(x)
    same = ops.arange(num_tags, dtype="int32")
    before = ops.where(real[1:] > 0, ops.cast(before, "int32"), same)
    # As places among the B·C tags of a step, so that going back is one look-up.
    rows = num_tags * ops.expand_dims(ops.arange(batch, dtype="int32"), -1)  # (B, 1)
    before = ops.reshape(before + rows, (steps - 1, batch * num_tags))  # (W + 1, B·C)
    best = ops.argmax(at_last_step(alphas, mask) + last, axis=-1)
    place = ops.cast(best, "int32") + rows[:, 0]  # (B,)
    places = scan_states(_place_before, place, (before,), reverse=True)  # (W + 1, B)
    tags = ops.transpose(places[:-1]) - rows  # (B, W)
    tags = ops.where(mask, tags, 0)
    return tags, path_score(emissions, tags, mask, transitions, start, end)


def marginals(emissions, mask, transitions, start, end):
    """The probability of each tag at each step, over all tag sequences.

    Arguments as of `viterbi`; returns float32 (B, W, C), 0 at padding.
    """
    x, real = time_major(emissions, mask)
    alphas = forward_scores(x, transitions, start)
    betas = backward_scores(x, real, transitions, end)
    scores = ops.transpose(alphas[:-2] + betas[:-1], (1, 0, 2))  # (B, W, C)
    return ops.where(ops.expand_dims(mask, -1), ops.softmax(scores, axis=-1), 0.0)


def best_tags(logits, mask, allowed=None):
    """The best tags where no tag depends on another but by the rules of `allowed`.

    Arguments as of `viterbi`; returns int32 (B, W), 0 at padding.
    """
    if allowed is None:
        mask = ops.cast(mask, "bool")
        return ops.where(mask, ops.cast(ops.argmax(logits, axis=-1), "int32"), 0)
    mask = leading_steps(mask)
    num_tags = len(allowed) - 1
    zeros = ops.zeros((num_tags,), "float32")
    moves = ops.zeros((num_tags, num_tags), "float32")
    return viterbi(logits, mask, moves, zeros, zeros, allowed)[0]


def tag_probabilities(logits, mask, allowed=None):
    """The probability of each tag where no tag depends on another but by the rules of `allowed`.

    With rules it is the share of a tag in all sequences that keep to them, or where none does, in
    those that break them least often. Arguments as of `viterbi`; returns float32 (B, W, C), 0 at
    padding.
    """
    if allowed is None:
        mask = ops.cast(mask, "bool")
        probabilities = ops.softmax(ops.cast(logits, "float32"), axis=-1)
        return ops.where(ops.expand_dims(mask, -1), probabilities, 0.0)
    mask = leading_steps(mask)
    costs = _BROKEN * ops.cast(ops.logical_not(ops.convert_to_tensor(allowed, "bool")), "float32")
    return marginals(logits, mask, -costs[:-1, :-1], -costs[-1, :-1], -costs[:-1, -1])


def _place_before(place, inputs, constants):
    return look_up(inputs[0], place)


def check_allowed(allowed, num_tags):
    """`allowed` as nested lists of bools, or None.

    Raises:
        ValueError: another shape than (num_tags + 1, num_tags + 1).
    """
    if allowed is None:
        return None
    try:
        rows = [[bool(value) for value in row] for row in allowed]
    except TypeError as error:
        raise ValueError(
            f"`allowed` must be {num_tags + 1} lists of {num_tags + 1} bools. Received: {allowed!r}"
        ) from error
    sizes = {len(rows), *(len(row) for row in rows)}
    if sizes != {num_tags + 1}:
        raise ValueError(
            f"`allowed` must be {num_tags + 1} lists of {num_tags + 1} bools: the tags, and the "
            f"start or the end. Received: {len(rows)} lists of {[len(row) for row in rows]}"
        )
    return rows
