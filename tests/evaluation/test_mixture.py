"""Mixtures of two language models."""

import numpy as np
import pytest

from kctx.evaluation import best_mixture_weight, mixed, perplexity

pytestmark = pytest.mark.once


def test_mixture_by_hand_and_sums_to_one():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.2, 0.0, 0.8])
    with np.errstate(divide="ignore"):
        logs = np.log(p), np.log(q)
    for weight in (0.5, 0.3, 0.0, 1.0):
        np.testing.assert_allclose(np.exp(mixed(*logs, weight)), weight * p + (1 - weight) * q)
        assert np.exp(mixed(*logs, weight)).sum() == pytest.approx(1)


def test_perplexity():
    assert perplexity(np.log([0.25, 0.25])) == pytest.approx(4)
    assert perplexity(np.log([0.5, 0.125])) == pytest.approx(4)
    assert perplexity([-np.inf]) == np.inf


def test_best_weight_is_the_best():
    generator = np.random.default_rng(0)
    p, q = np.log(generator.uniform(0.01, 1, (2, 500)))
    best = best_mixture_weight(p, q)
    values = {weight: perplexity(mixed(p, q, weight)) for weight in np.linspace(0, 1, 101)}
    assert abs(best - min(values, key=values.get)) < 0.02
    assert perplexity(mixed(p, q, best)) <= min(values.values()) + 1e-6
    assert best_mixture_weight(p, p) == pytest.approx(0.5)
    assert best_mixture_weight(np.log([0.5, 0.5]), np.log([0.1, 0.1])) > 0.99


def test_errors():
    with pytest.raises(ValueError, match="of one shape"):
        mixed(np.zeros(3), np.zeros(2))
    with pytest.raises(
        ValueError, match="`weight` must be at least 0, at most 1. Received: weight=2"
    ):
        mixed(np.zeros(3), np.zeros(3), 2)
    with pytest.raises(ValueError, match="at least one number"):
        perplexity([])


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (perplexity, ([-1.0, np.nan],), "`log_probabilities` must be numbers. Rec.* nan in row 1"),
        (mixed, ([np.nan], [-1.0]), "`first` must be numbers. Received: nan in row 0"),
        (best_mixture_weight, ([-np.inf], [-np.inf]), "must give a word a probability"),
        (best_mixture_weight, ([-1.0], [-2.0], 0), "`iterations` must be an integer"),
    ],
)
def test_logarithms_that_are_none(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
