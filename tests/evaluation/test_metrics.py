import math
import warnings

import numpy as np
import pytest

from kctx.evaluation import (
    calibration,
    choice_report,
    classification_report,
    regression_report,
    unigram_cross_entropy,
    unigram_entropy,
)

pytestmark = [pytest.mark.once, pytest.mark.filterwarnings("error")]


def test_classification_by_hand():
    # two classes, confusion [[2, 1], [1, 0]]: F1 2/3 and 0, Matthews (0*2 - 1*1) / 3
    report = classification_report([0, 0, 0, 1], [0, 0, 1, 0])
    assert report == pytest.approx({"accuracy": 0.5, "macro_f1": 1 / 3, "matthews": -1 / 3})
    assert classification_report(["a", "b"], ["a", "b"]) == pytest.approx(
        {"accuracy": 1, "macro_f1": 1, "matthews": 1}
    )


def test_one_class_only():
    assert classification_report([1, 1], [1, 1]) == {
        "accuracy": 1.0,
        "macro_f1": 1.0,
        "matthews": 0.0,
    }
    assert classification_report([1, 1], [0, 0]) == {
        "accuracy": 0.0,
        "macro_f1": 0.0,
        "matthews": 0.0,
    }


def test_regression_by_hand():
    report = regression_report([1, 2, 3], [1, 2, 6])
    assert report["spearman"] == pytest.approx(1.0)
    assert report["pearson"] == pytest.approx(5 / math.sqrt(2 * 14))


@pytest.mark.parametrize("labels, predictions", [([1, 2], [3, 3]), ([1, 1], [1, 2]), ([1], [2])])
def test_regression_not_defined_is_zero(labels, predictions):
    assert regression_report(labels, predictions) == {"pearson": 0.0, "spearman": 0.0}


def test_nearly_constant_gives_no_warning():
    values = [1.0, 1.0 + 1e-16, 1.0 + 3e-16]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(-1 <= v <= 1 for v in regression_report([1, 2, 3], values).values())


@pytest.mark.parametrize("report", [classification_report, regression_report])
def test_bad_rows(report):
    with pytest.raises(ValueError, match="at least one row. Received: 0 rows"):
        report([], [])
    with pytest.raises(ValueError, match=r"Received: shapes \(2,\) and \(1,\)"):
        report([1, 2], [1])


def test_regression_not_finite():
    with pytest.raises(ValueError, match="`predictions` must be finite. Received: nan in row 1"):
        regression_report([1, 2], [1, math.nan])


def test_unigrams_by_hand():
    assert unigram_entropy([2, 2, 0]) == pytest.approx(math.log(2))
    assert unigram_entropy([5]) == 0
    # smoothed: (3, 1, 1) / 5
    expected = -(math.log(3 / 5) + 3 * math.log(1 / 5)) / 4
    assert unigram_cross_entropy([2, 0, 0], [1, 1, 2]) == pytest.approx(expected)
    # a very long text of the same distribution comes to the entropy
    counts = np.array([700_000, 200_000, 100_000])
    assert unigram_cross_entropy(counts, counts) == pytest.approx(unigram_entropy(counts), rel=1e-6)


def test_bad_counts():
    with pytest.raises(ValueError, match="`counts` must have shape"):
        unigram_entropy([0, 0])
    with pytest.raises(ValueError, match="`held_out_counts` must have shape .* sum 0"):
        unigram_cross_entropy([1], [-1, 1])
    with pytest.raises(ValueError, match="of one vocabulary"):
        unigram_cross_entropy([1], [1, 1])


def test_choices_beside_chance():
    assert choice_report([0, 1, 3], [0, 0, 3], [2, 2, 4]) == pytest.approx(
        {"accuracy": 2 / 3, "chance": (0.5 + 0.5 + 0.25) / 3}
    )
    with pytest.raises(ValueError, match="Received: 0 and 2 of 2 choices in row 1"):
        choice_report([0, 0], [1, 2], [2, 2])


def test_calibration_by_hand():
    # bins (0, 0.5] and (0.5, 1]: 0.2 and 0.5, one right; 0.6, 0.8 and 1.0, two right
    correct = [True, False, True, True, False]
    found = calibration([0.2, 0.5, 0.6, 0.8, 1.0], correct, bins=2)
    assert found[0].tolist() == [2, 3]
    np.testing.assert_allclose(found[1], [0.35, 0.8])
    np.testing.assert_allclose(found[2], [0.5, 2 / 3])
    assert found[3] == pytest.approx((2 * 0.15 + 3 * (0.8 - 2 / 3)) / 5)
    counts, *_, error = calibration([0.0, 1.0], [False, True], bins=4)
    assert counts.tolist() == [1, 0, 0, 1] and error == 0.0
    with pytest.raises(ValueError, match=r"`confidences` must lie in \[0, 1\]. Received"):
        calibration([1.5], [True])
    with pytest.raises(ValueError, match=r"`confidences` must lie in \[0, 1\]. Received"):
        calibration([float("nan")], [True])


NAN = float("nan")


@pytest.mark.parametrize(
    ("report", "arguments", "message"),
    [
        (classification_report, ([NAN, 1.0], [1.0, 1.0]), "both be integers, or both strings"),
        (classification_report, ([None, "a"], ["a", "a"]), "Received: object and <U1"),
        (classification_report, (["1"], [1]), "both be integers, or both strings. Received: <U1"),
        (choice_report, ([NAN], [0], [2]), "`labels` must be integers. Received: float64 values"),
        (choice_report, ([0], [-1], [2]), "`predictions` must be at least 0. Received: -1"),
        (choice_report, ([0], [0], [NAN]), "`num_choices` must be integers"),
        (calibration, ([0.5], [NAN]), "`correct` must be bools. Received: float64"),
        (calibration, ([0.5], [True], 0), "`bins` must be an integer of at least 1. Rec.*bins=0"),
        (calibration, (["a"], [True]), "`confidences` must be numbers. Received: <U1 values"),
        (unigram_entropy, ([math.inf, 1],), "a finite sum above 0. Received: .* sum inf"),
    ],
)
def test_values_that_are_none(report, arguments, message):
    with pytest.raises(ValueError, match=message):
        report(*arguments)
