import numpy as np
import pytest

from kctx import evaluation

pytestmark = pytest.mark.once


def test_word_overlap_by_hand():
    texts = ["The cat sat", "", "红楼梦", "a a a", "..."]
    others = ["the dog sat!", "", "红楼", "a b", "x"]
    found = evaluation.word_overlap(texts, others)
    np.testing.assert_allclose(found, [2 / 4, 0, 2 / 3, 1 / 2, 0])


def test_closest_sentence():
    context = "Anna was born in Rome. Paul lives in Paris! Who knows?"
    assert evaluation.closest_sentence("Where does Paul live, in Paris?", context) == (
        "Paul lives in Paris!"
    )
    assert evaluation.closest_sentence("x", context) == "Anna was born in Rome."
    assert (
        evaluation.closest_sentence("保罗住在哪", "安娜在罗马。保罗住在巴黎。") == "保罗住在巴黎。"
    )
    assert evaluation.closest_sentence("x", " ... ") == "..."


def test_most_frequent_tags():
    words = [["Rome", "is"], ["Rome", "was"], ["Rome"]]
    tags = [["B-LOC", "O"], ["B-ORG", "O"], ["B-LOC"]]
    found = evaluation.most_frequent_tags(words, tags, [["was", "Rome"], [], ["unknown"]])
    # B-LOC and O occur twice each; the first met counts for unknown words.
    assert found == [["O", "B-LOC"], [], ["B-LOC"]]


def test_balanced_weights():
    found = evaluation.balanced_weights([0, 0, 0, 2], 4)
    np.testing.assert_allclose(found, [4 / (2 * 3), 0, 4 / (2 * 1), 0])
    assert sum(found[label] for label in (0, 0, 0, 2)) == pytest.approx(4)


def test_scatter_draws_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    evaluation.draw(evaluation.scatter, [1.0, 2.0, 5.0], [0.1, 0.0, 0.9], tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(ValueError, match="at least one row"):
        evaluation.scatter([], [], tmp_path / "b.png")


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        (evaluation.balanced_weights, ([], 2), r"`labels` must have shape \(n,\), n at least 1"),
        (evaluation.balanced_weights, ([0, 5], 2), r"lie in \[0, 2\). Received: .* greatest 5"),
        (evaluation.balanced_weights, ([-1], 2), "`labels` must be at least 0. Received: -1"),
        (evaluation.word_overlap, (["a"], ["b", "c"]), "equal in number. Received: 1 and 2"),
        (evaluation.most_frequent_tags, ([], [], [["a"]]), "a tag for each of the `words`"),
        (evaluation.most_frequent_tags, ([["a"]], [["O", "O"]], []), "Received: 2 tags in 1"),
    ],
)
def test_columns_that_do_not_fit(function, arguments, message):
    with pytest.raises(ValueError, match=message):
        function(*arguments)
