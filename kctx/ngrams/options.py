"""How counts become probabilities: the options and their checks."""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from kctx.arguments import check_count

MAX_ORDER = 6
SMOOTHINGS = ("mle", "add_k", "jelinek_mercer", "katz", "kneser_ney")


def check_order(order):
    """Raises a `ValueError` for an order that is no integer from 1 to 6."""
    check_count("order", order)
    if order > MAX_ORDER:
        raise ValueError(f"`order` must be from 1 to {MAX_ORDER}. Received: order={order}")


@dataclasses.dataclass(frozen=True)
class Options:
    """How counts become probabilities, checked.

    Attributes:
        smoothing: "kneser_ney" (interpolated, modified, as KenLM's `lmplz`), "katz",
            "jelinek_mercer", "add_k" or "mle".
        prune: int, or a list for orders 1, 2, ..: n-grams that occur at most so often are not
            listed (`lmplz --prune`). Thresholds must not fall; the last stands for the orders
            above. Default 0.
        k: float above 0, of "add_k". Default 1.
        katz_limit: int or a list for each order: counts above it are not discounted. Default 5.
        held_out: for "jelinek_mercer": sentences (iterable of str) to estimate the weights on.
        held_out_files: the same as a path or list of paths.
        weights: for "jelinek_mercer" instead: fixed weights from the highest order down to the
            uniform estimate, as (0.6, 0.3, 0.1) for a bigram.
        buckets: of "jelinek_mercer" with held-out text. "nested" (the default): a weight for each
            order and bucket (0, 1, 2-3, 4-7, ..) of a context's frequency. "joint": weights over
            all orders by the bucket `ceil(-log((1 + frequency) / T))` of the longest context
            (Bengio et al. 2003, section 3.1), which has no ARPA form.
        iterations: int, steps of expectation maximisation. Default 20; the paper took 5.
        discount_fallback: three Kneser-Ney discounts for orders whose own cannot be estimated; a
            warning names the order. None: raise instead. Default (0.5, 1, 1.5).
        interpolate_unigrams: bool. False: what Kneser-Ney discounts from unigrams goes to `<unk>`
            alone, as in SRILM. Default True.
        vocabulary_pad: int, unigrams are interpolated over at least so many types, to compare
            models with different vocabularies (`lmplz --vocab_pad`). Default 0.
        special_words: of the held-out text, as `count_ngrams`.
    """

    smoothing: str = "kneser_ney"
    prune: int | list = 0
    k: float = 1.0
    katz_limit: int | list = 5
    held_out: Iterable | None = None
    held_out_files: object = ()
    weights: Sequence | None = None
    buckets: str = "nested"
    iterations: int = 20
    discount_fallback: Sequence | None = (0.5, 1.0, 1.5)
    interpolate_unigrams: bool = True
    vocabulary_pad: int = 0
    special_words: str = "error"

    def __post_init__(self):
        if self.smoothing not in SMOOTHINGS:
            raise ValueError(
                f"`smoothing` must be one of {SMOOTHINGS}. Received: {self.smoothing!r}"
            )
        if not isinstance(self.k, (int, float)) or not 0 < self.k < np.inf:
            raise ValueError(f"`k` must be a number above 0. Received: k={self.k!r}")
        if self.buckets not in ("nested", "joint"):
            raise ValueError(f'`buckets` must be "nested" or "joint". Received: {self.buckets!r}')
        check_count("iterations", self.iterations)
        check_count("vocabulary_pad", self.vocabulary_pad, 0)
        if self.vocabulary_pad and not self.interpolate_unigrams:
            raise ValueError("`vocabulary_pad` needs `interpolate_unigrams`")
        fallback = self.discount_fallback
        if fallback is not None and not _are_discounts(fallback):
            raise ValueError(
                "`discount_fallback` must be three discounts within [0, 1], [0, 2] and [0, 3], or "
                f"None. Received: {fallback}"
            )
        if self.smoothing == "jelinek_mercer":
            held_out = self.held_out is not None or bool(self.held_out_files)
            if (self.weights is None) != held_out:
                raise ValueError(
                    "Jelinek-Mercer smoothing takes either fixed `weights`, or text to estimate "
                    "them on as `held_out` or `held_out_files`. Received: "
                    f"weights={self.weights!r}, held-out text: {held_out}"
                )

    def for_order(self, order):
        """(thresholds of pruning, limits of Katz, weights) of a model of this order, checked."""
        check_order(order)
        limits = self.katz_limit
        limits = [limits] * order if isinstance(limits, int) else list(limits)
        for limit in limits:
            check_count("katz_limit", limit, 0)
        if len(limits) != order:
            raise ValueError(
                f"`katz_limit` must be one limit, or one for each of {order} orders. Received: "
                f"{limits}"
            )
        weights = self.weights
        if weights is not None:
            weights = [float(weight) for weight in weights]
            # As what must hold, since nothing holds of NaN.
            sums = len(weights) == order + 1 and abs(sum(weights) - 1) <= 1e-6
            if not sums or min(weights) < 0:
                raise ValueError(
                    f"`weights` must be {order + 1} numbers from the highest order down to the "
                    f"uniform estimate, none below 0, that sum to 1. Received: {weights}"
                )
        return checked_prune(self.prune, order), limits, weights


def _are_discounts(values):
    return (
        isinstance(values, Sequence)
        and len(values) == 3
        and all(isinstance(d, (int, float)) and 0 <= d <= j for j, d in enumerate(values, 1))
    )


def checked_prune(prune, order):
    """A threshold for each order from one or several numbers, the last standing for the rest."""
    given = prune
    prune = list(prune) if isinstance(prune, Iterable) else [prune]
    if not prune:
        return [0] * order
    for value in prune:
        check_count("prune", value, 0)
    if len(prune) > order or prune != sorted(prune):
        raise ValueError(
            f"`prune` must be at most {order} thresholds that do not fall from order to order, "
            f"lest parts of listed n-grams be missing. Received: prune={given!r}"
        )
    return prune + prune[-1:] * (order - len(prune))
