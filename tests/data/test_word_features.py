"""The rows that the words of a step are made of."""

import numpy as np
import pytest

from kctx.data.word_features import WordFeatures

pytestmark = pytest.mark.once

# Words 0 to 3 have the rows (0, 7), (1,), (2, 7, 8, 7) and (3, 9).
FEATURES = ([0, 7, 1, 2, 7, 8, 7, 3, 9], [0, 2, 3, 7, 9])


def rows_by_word(made, step):
    real = made["feature_words"][step] < made["word_sizes"].shape[1]
    rows = {}
    for row, place in zip(
        made["features"][step][real], made["feature_words"][step][real], strict=True
    ):
        rows.setdefault(int(place), []).append(int(row))
    return rows


def test_by_hand():
    words = np.int32([[[2, 0], [2, 2]], [[3, 0], [0, 1]]])
    made = WordFeatures(*FEATURES).of_steps(words)
    assert made["positions"].shape == words.shape
    expected = {0: [0, 7], 1: [1], 2: [2, 7, 8, 7], 3: [3, 9]}
    for step, number in enumerate((2, 3)):
        rows = rows_by_word(made, step)
        assert len(rows) == number  # each word once
        for word, place in zip(words[step].ravel(), made["positions"][step].ravel(), strict=True):
            assert rows[int(place)] == expected[int(word)]
            assert made["word_sizes"][step, place] == len(expected[int(word)])
        assert (made["word_sizes"][step, number:] == 1).all()
        assert (np.diff(made["feature_words"][step]) >= 0).all()
    assert [made[x].dtype for x in ("positions", "features", "feature_words")] == [np.int32] * 3


def test_shapes_are_few():
    draws, features = np.random.default_rng(0), WordFeatures(*FEATURES)
    shapes = {
        tuple(x.shape for x in features.of_steps(draws.integers(0, 4, (2, 9))).values())
        for _ in range(20)
    }
    assert len(shapes) == 1


def test_one_batch_does_not_depend_on_another():
    features, words = WordFeatures(*FEATURES), np.int32([[3, 1]])
    first = features.of_steps(words)
    features.of_steps(np.int32([[0, 2], [2, 1]]))
    for name, value in features.of_steps(words).items():
        np.testing.assert_array_equal(value, first[name])


def test_expected():
    """Chances of the words to be there, summed over the words of each row; a double row twice."""
    made = WordFeatures(*FEATURES).expected(np.array([0.5, 1, 0.25, 0]))
    np.testing.assert_allclose(made, [0.5, 1, 0.25, 0, 0, 0, 0, 1.0, 0.25, 0])
