"""The step of Word2Vec and fastText on blocks of text, as products of matrices.

Letters: G blocks, C centres of a block, W words of halo on either side, H = C + 2W words of a
block with its halo, I words that predict, T words that are predicted, U rows of the output table
that a block uses, K of them shared negatives, D width.

A block's words stand in their order in the text. Every pair of a centre and a word in its window
is one example, and so is every pair with a negative. The words of a window predict its centre
(I = H, T = C), or, in skip-gram only, the centre predicts them (I = C, T = H); windows reach as
far to both sides, so over a text both give the same pairs as often. The block's negatives are
shared by all its predicted words (HogBatch: Ji et al. 2016, "Parallelizing Word2Vec in Shared and
Distributed Memory"). So all scores of a block are one product, and both gradients are two more.
"""

from keras import ops

from kctx.layers.sparse_rows import add_rows, read_rows

ARCHITECTURES = ("skip_gram", "cbow")
OBJECTIVES = ("negative_sampling", "hierarchical_softmax")
LOSS_SHARE = 8  # the loss is measured on every eighth block of a step


def check_targets(architecture, objective, batch):
    """Raises a `ValueError` if a batch has the targets of another model."""
    if ("negatives" in batch) != (objective == "negative_sampling"):
        raise ValueError(
            "The targets of the stream must be those of the model. Received: "
            f"objective={objective!r}, batches with {', '.join(sorted(batch))}"
        )
    if architecture == "cbow" and _from_centres(batch):
        raise ValueError(
            "CBOW predicts the centres: the stream must have predicted='centres'. "
            "Received: a stream of predicted='context'"
        )


def input_words(step):
    """int32 (.., I), the words that predict: all of the blocks, or the centres alone (I = C)."""
    return _middle(step["words"], step["input_rates"].shape[-1])


def predicted_words(step):
    """int32 (.., T), the words that are predicted: the centres, or, by these, all (T = H)."""
    centres, words = step["first"].shape[-1], step["words"].shape[-1]
    return _middle(step["words"], words if _from_centres(step) else centres)


def _from_centres(step):
    """Whether a centre predicts the words of its window, rather than these the centre."""
    return step["input_rates"].shape[-1] == step["first"].shape[-1]


def _middle(words, size):
    halo = (words.shape[-1] - size) // 2
    return words[..., halo : halo + size]


def window_step(
    step,
    inputs,
    output_table,
    architecture,
    num_negatives,
    cbow_average=True,
    cbow_corrected=False,
    input_sizes=None,
):
    """One step of the output table, and the gradients of the inputs.

    Args:
        step: dict of one step of `kctx.data.WindowStream`: `words` int32 (G, H), `first` and
            `last` int32 (G, C), `input_rates` float32 (G, I), `output_rates` float32 (G, U), and
            either `negatives` int32 (G, K) or `nodes` int32 (G, U) and `paths` int8 (G, T, U).
        inputs: float (G, I, D), the vectors of `input_words`.
        output_table: `keras.Variable`, changed in place.
        architecture: "skip_gram" or "cbow".
        num_negatives: k, how many draws the shared negatives stand for.
        cbow_average, cbow_corrected, input_sizes: as `cbow_gradients`.

    Returns:
        (input gradients (G, I, D), sum of losses, number of predictions); the latter two of
        every eighth block.
    """
    words, dtype = step["words"], inputs.dtype
    mask = ops.cast(window_mask(step["first"], step["last"], words.shape[1]), dtype)
    mask = ops.swapaxes(mask, 1, 2) if _from_centres(step) else mask  # (G, T, I)
    if "negatives" in step:
        predicted = predicted_words(step)
        rows = ops.concatenate([predicted, step["negatives"]], axis=1)
        positive, total = negative_sampling_targets(
            predicted, step["negatives"], num_negatives, dtype
        )
    else:
        rows = step["nodes"]
        positive, total = hierarchical_softmax_targets(step["paths"], dtype)
    outputs = ops.cast(read_rows(output_table, rows), dtype)  # (G, U, D)
    if architecture == "skip_gram":
        gradients = skip_gram_gradients(inputs, outputs, mask, positive, total)
    else:
        gradients = cbow_gradients(
            inputs, outputs, mask, positive, total, cbow_average, cbow_corrected, input_sizes
        )
    input_gradients, output_gradients, residuals = gradients
    rates = ops.expand_dims(step["output_rates"], -1)
    add_rows(output_table, rows, ops.cast(output_gradients, "float32") * rates)
    some = mask[::LOSS_SHARE]
    number = ops.sum(some if architecture == "skip_gram" else ops.max(some, axis=-1))
    loss = logistic_loss(*(ops.cast(x[::LOSS_SHARE], "float32") for x in residuals))
    return input_gradients, loss, ops.cast(number, "float32")


def window_mask(first, last, num_positions):
    """Which words lie in which window.

    Args:
        first, last: int32 (G, C), the places in the block where the window of each centre begins
            and ends; first > last: no window.
        num_positions: H.

    Returns:
        bool (G, C, H). A centre is not in its own window.
    """
    num_centres = first.shape[-1]
    halo = (num_positions - num_centres) // 2
    place = ops.arange(num_positions, dtype="int32")
    itself = ops.expand_dims(ops.arange(num_centres, dtype="int32") + halo, -1)
    inside = (place >= ops.expand_dims(first, -1)) & (place <= ops.expand_dims(last, -1))
    return inside & (place != itself)


def negative_sampling_targets(predicted, negatives, num_negatives, dtype):
    """Weights of a predicted word's targets: the word itself, and the block's negatives.

    The K shared negatives stand for `num_negatives` draws, so each has the weight
    `num_negatives` / K; one that is the word has none, as in the original.

    Args:
        predicted: int32 (G, T).
        negatives: int32 (G, K).

    Returns:
        (positive, total): (G, T, U = T + K), the share of the label 1, and of both labels.
    """
    shape = ops.shape(predicted)
    identity = ops.broadcast_to(ops.eye(shape[1], dtype=dtype), (shape[0], shape[1], shape[1]))
    differs = ops.expand_dims(predicted, -1) != ops.expand_dims(negatives, -2)  # (G, T, K)
    weights = ops.cast(differs, dtype) * (num_negatives / negatives.shape[1])
    positive = ops.concatenate([identity, ops.zeros_like(weights)], axis=-1)
    return positive, ops.concatenate([identity, weights], axis=-1)


def hierarchical_softmax_targets(paths, dtype):
    """Weights of a word's targets: the inner nodes on its way through the Huffman tree.

    Args:
        paths: int8 (G, T, U): 1 where a node lies on the path and the code says 0 (label 1), -1
            where it says 1 (label 0), 0 elsewhere.

    Returns:
        (positive, total) as `negative_sampling_targets`.
    """
    return ops.cast(paths > 0, dtype), ops.cast(paths != 0, dtype)


def skip_gram_gradients(inputs, outputs, mask, positive, total):
    """Skip-gram: each input predicts the targets of words, one after the other.

    Args:
        inputs: (G, I, D), vectors of the words that predict.
        outputs: (G, U, D), rows of the output table.
        mask: (G, T, I), 1 where one is in the window of the other.
        positive, total: (G, T, U).

    Returns:
        (input gradients (G, I, D), output gradients (G, U, D), residuals): steps uphill in the
        log-likelihood, not yet times the rate; residuals as `logistic_loss` takes them.
    """
    turned = ops.swapaxes(mask, 1, 2)
    positive, total = ops.matmul(turned, positive), ops.matmul(turned, total)  # (G, I, U)
    scores, gradient = _logistic(inputs, outputs, positive, total)
    return ops.matmul(gradient, outputs), _turned(gradient, inputs), (scores, positive, total)


def cbow_gradients(
    inputs, outputs, mask, positive, total, average=True, corrected=False, input_sizes=None
):
    """Continuous bag of words: the words of a window together predict the centre's targets.

    Args:
        inputs, outputs, mask, positive, total: as `skip_gram_gradients`, with I = H and T = C.
        average: whether the words of the window are averaged (the tool), or summed (the paper).
        corrected: whether the gradient of an average is divided by the number of words, which the
            original leaves out (Irsoy et al. 2021, "Corrected CBOW Performs as well as
            Skip-gram").
        input_sizes: (G, H), how many rows of a table each input is the mean of; the average is
            then over all these rows, as in fastText. Default: one each.

    Returns:
        as `skip_gram_gradients`.
    """
    weights = mask if input_sizes is None else mask * ops.expand_dims(input_sizes, 1)
    sizes = ops.sum(weights, axis=-1, keepdims=True)  # (G, C, 1)
    some = ops.cast(sizes > 0, mask.dtype)
    weights = weights / ops.maximum(sizes, 1) if average else weights
    hidden = ops.matmul(weights, inputs)  # (G, C, D)
    positive, total = positive * some, total * some
    scores, gradient = _logistic(hidden, outputs, positive, total)
    back = _turned(weights if corrected else mask, ops.matmul(gradient, outputs))  # (G, H, D)
    return back, _turned(gradient, hidden), (scores, positive, total)


def logistic_loss(scores, positive, total):
    """Sum of the cross-entropies of binary decisions.

    Args:
        scores: float32 (..., U), log odds.
        positive, total: (..., U), weights of the label 1 and of both labels.
    """
    # -log sigmoid(s) = softplus(s) - s
    return ops.sum(total * ops.softplus(scores) - positive * scores)


def _logistic(left, right, positive, total):
    """Scores of all rows against all rows, and the gradient of the log-likelihood by them."""
    scores = ops.matmul(left, ops.swapaxes(right, 1, 2))
    return scores, positive - total * ops.sigmoid(scores)


def _turned(left, right):
    return ops.matmul(ops.swapaxes(left, 1, 2), right)
