"""Exact match and F1 as SQuAD's scripts define them, worked out by hand."""

import numpy as np
import pytest

from kctx.data import read_squad
from kctx.evaluation import answer_report, answer_scores, best_threshold, normalised

pytestmark = pytest.mark.once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  Cat,\tsat!", "cat sat"),
        ("a an the", ""),
        ("theatre", "theatre"),
        ("U.S.", "us"),
        ("it's", "its"),
        ("the-cat", "thecat"),  # punctuation goes first, so no article is left
        ("a\u00a0b", "b"),  # a no-break space is white space
        ("ÜNÏ — “x”", "ünï — “x”"),  # only ASCII punctuation goes
        ("$1,000", "1000"),
    ],
)
def test_normalised(text, expected):
    assert normalised(text) == expected


@pytest.mark.parametrize(
    ("golds", "prediction", "exact", "f1"),
    [
        (["the cat"], "Cat.", 1, 1),
        (["a black cat"], "the black dog", 0, 0.5),
        (["black cat"], "black", 0, 2 / 3),
        (["cat cat dog"], "cat dog dog", 0, 2 / 3),  # cat and dog, once each, of three
        (["dog", "black cat", "cat"], "a cat", 1, 1),  # the best gold answer counts
        (["dog"], "", 0, 0),
        ([], "", 1, 1),
        ([], "the", 1, 1),  # nothing is left of it
        ([], "cat", 0, 0),
        (["!", "cat"], "", 0, 0),  # a gold answer that normalises to nothing is left out
        (["!"], "", 1, 1),
        (["北京 市"], "北京市", 0, 0),
    ],
)
def test_scores_of_version_2(golds, prediction, exact, f1):
    found = answer_scores([golds], [prediction])
    assert found[0][0] == exact and found[2][0] == bool(golds)
    np.testing.assert_allclose(found[1], [f1], rtol=1e-12)


def test_version_1_differs_where_nothing_is_left():
    assert answer_scores([["!"]], ["the"], version=1)[1].tolist() == [0.0]
    assert answer_scores([["!"]], ["the"], version=1)[0].tolist() == [1.0]
    report = answer_report([["The cat"], ["dog", "big dog"]], ["cat", "big"], version=1)
    assert report == {"f1": pytest.approx((1 + 2 / 3) / 2), "exact_match": 0.5}


def test_characters_of_chinese_are_words():
    assert normalised("《北京市》，The 中国", split_cjk=True) == "北 京 市 中 国"
    report = answer_report([["北京市。"]], ["北京"], version=1, split_cjk=True)
    assert report == {"f1": pytest.approx(2 * 1 * (2 / 3) / (5 / 3)), "exact_match": 0.0}


GOLDS = [["a cat"], ["dog"], [], []]
PREDICTIONS = ["cat", "fish", "bird", ""]
SURE = [0.1, 0.7, 0.4, 0.9]


def test_report_with_and_without_threshold():
    report = answer_report(GOLDS, PREDICTIONS)
    assert report == {
        "f1": 0.5,
        "exact_match": 0.5,
        "f1_answerable": 0.5,
        "exact_match_answerable": 0.5,
        "f1_unanswerable": 0.5,
        "exact_match_unanswerable": 0.5,
    }
    # above 0.3 nothing is answered: the first is right, both unanswerable ones as well
    report = answer_report(GOLDS, PREDICTIONS, SURE, threshold=0.3)
    assert report["f1"] == 0.75 and report["f1_unanswerable"] == 1.0
    assert report["best_f1"] == 0.75 and report["best_f1_threshold"] == 0.1
    # what is at the threshold is still answered
    assert answer_report(GOLDS, PREDICTIONS, SURE, threshold=0.4)["f1"] == 0.5
    assert "f1_unanswerable" not in answer_report(GOLDS[:2], PREDICTIONS[:2])


def test_the_search_for_a_threshold():
    """2 without any answer; +1 at 0.1; -1 at 0.4; +0 at 0.7; +0 at 0.9."""
    exact, _, answerable = answer_scores(GOLDS, PREDICTIONS)
    assert best_threshold(exact, answerable, PREDICTIONS, SURE) == (0.75, 0.1)
    # nothing at all is best
    assert best_threshold(np.zeros(4), answerable, PREDICTIONS, SURE) == (0.5, 0.0)
    # equal probabilities are gone through one by one, as the script does
    assert best_threshold(exact, answerable, PREDICTIONS, [0.5] * 4) == (0.75, 0.5)


def test_errors():
    with pytest.raises(ValueError, match="`version` must be 1 .*Received: 1.1"):
        answer_report([["a"]], ["a"], version=1.1)
    with pytest.raises(ValueError, match="an entry for each question. Received: 1 and 2"):
        answer_report([["a"]], ["a", "b"])
    with pytest.raises(ValueError, match="at least one row"):
        answer_report([], [])
    with pytest.raises(ValueError, match="knows no question without an answer. Received: row 1"):
        answer_report([["a"], []], ["a", ""], version=1)
    for bad in ([0.1, 0.2], [float("nan")]):
        with pytest.raises(ValueError, match=r"must have shape \(1,\) and be finite"):
            answer_report([["a"]], ["a"], bad)


def test_perfect_and_empty_answers_on_a_real_set(kctx_data):
    examples = read_squad(kctx_data / "squad/dev-v2.0-part.json")
    golds = examples.gold_texts
    best = answer_report(golds, [texts[0] if texts else "" for texts in golds])
    assert best["f1"] == best["exact_match"] == 1.0
    none = answer_report(golds, [""] * len(golds), np.linspace(0, 1, len(golds)))
    assert none["f1"] == pytest.approx(2140 / 4218) == none["best_f1"]
    assert none["f1_answerable"] == 0.0 and none["f1_unanswerable"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["paris"], ["paris"]), r"`gold_texts\[0\]` must be a list of str. Received: 'paris'"),
        (([["a"], [None]], ["a", "a"]), r"`gold_texts\[1\]` must be a list of str"),
        (([["a"]], [None]), r"`predictions\[0\]` must be a str. Received: None"),
        (
            ([["a"]], ["a"], [0.5], 2, float("nan")),
            "`threshold` must be .* Received: threshold=nan",
        ),
    ],
)
def test_what_is_no_text(arguments, message):
    with pytest.raises(ValueError, match=message):
        answer_report(*arguments)
