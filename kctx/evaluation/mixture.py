"""Two language models as one, and what they cost (Bengio et al., 2003, section 4.2)."""

import numpy as np

from kctx.arguments import check_count, check_number


def perplexity(log_probabilities):
    """exp of the mean negative logarithm: float.

    Args:
        log_probabilities: (N,) natural logarithms of the probability of each word.

    Raises:
        ValueError: there are none, or NaN among them.
    """
    logs = np.asarray(log_probabilities, np.float64)
    if logs.ndim != 1 or not len(logs):
        raise ValueError(
            "`log_probabilities` must hold at least one number, in the shape (N,). "
            f"Received: shape {logs.shape}"
        )
    if np.isnan(logs).any():
        raise ValueError(f"`log_probabilities` must be numbers. Received: {_where_nan(logs)}")
    with np.errstate(over="ignore"):
        return float(np.exp(-logs.mean()))


def mixed(first, second, weight=0.5):
    """Logarithms of `weight` * p + (1 - `weight`) * q.

    Args:
        first, second: (N,) natural logarithms of p and q; -inf where a model excludes a word.
        weight: float in [0, 1]. Default 0.5, the paper's.

    Returns:
        float64 (N,)
    """
    first, second = _checked(first, second)
    check_number("weight", weight, least=0, most=1)
    with np.errstate(divide="ignore"):
        return np.logaddexp(first + np.log(weight), second + np.log1p(-weight))


def best_mixture_weight(first, second, iterations=50):
    """The weight of the first model at which held-out text is most probable.

    By expectation maximisation, of which each step can only gain (Jelinek and Mercer, 1980).

    Args:
        first, second: as `mixed`, on text that neither model has seen.
        iterations: int. Default 50.

    Returns:
        float in (0, 1)

    Raises:
        ValueError: no word is possible in either model, or another argument is not as above.
    """
    check_count("iterations", iterations)
    first, second = _checked(first, second)
    if not np.isfinite(np.maximum(first, second)).any():
        raise ValueError(
            f"`first` or `second` must give a word a probability. Received: {len(first)} words "
            "that both exclude"
        )
    weight = 0.5
    for _ in range(iterations):
        both = mixed(first, second, weight)
        possible = np.isfinite(both)
        weight = float(np.exp(np.log(weight) + first[possible] - both[possible]).mean())
    return weight


def _checked(first, second):
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.ndim != 1 or first.shape != second.shape or not len(first):
        raise ValueError(
            "`first` and `second` must be of one shape (N,), N at least 1. "
            f"Received: shapes {first.shape} and {second.shape}"
        )
    for name, logs in (("first", first), ("second", second)):
        if np.isnan(logs).any():
            raise ValueError(f"`{name}` must be numbers. Received: {_where_nan(logs)}")
    return first, second


def _where_nan(values):
    return f"nan in row {int(np.argmax(np.isnan(values)))}"
