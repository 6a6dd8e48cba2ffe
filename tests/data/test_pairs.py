import random

import numpy as np
import pytest

from kctx.data.masking import mask_tokens
from kctx.data.pairs import (
    build_pairs,
    choose_document,
    count_sentences,
    plan_pairs,
    plan_single_segments,
    plan_truncation,
)

pytestmark = pytest.mark.once


class Scripted(random.Random):
    """A generator that gives listed answers and fails when asked for another kind."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)

    def random(self):
        return self.answers.pop(0)

    def randint(self, low, high):
        answer = self.answers.pop(0)
        assert low <= answer <= high, (low, answer, high)
        return answer


def documents(count=200, seed=0):
    rng = np.random.default_rng(seed)
    return [
        [[d] * int(rng.integers(3, 20)) for _ in range(int(rng.integers(1, 12)))]
        for d in range(count)
    ]


def test_hand_computed_document():
    docs = [[["a"] * 2, ["b"] * 2, ["c"] * 2, ["d"] * 2], [["x"] * 3, ["y"] * 3]]
    # Budget 6. No short target; three sentences gathered; A has 1 of them; coin 0.4: random;
    # document 0 is drawn first and refused, then document 1 from sentence 1; two put back.
    # Again three sentences; A has 2; coin 0.7: real. End.
    rng = Scripted(0.5, 1, 0.4, 0, 1, 1, 2, 0.7)
    pairs = list(build_pairs(docs, 0, 9, 0.1, rng))
    assert pairs == [
        (["a"] * 2, ["y"] * 3, True),
        (["b"] * 2 + ["c"] * 2, ["d"] * 2, False),
    ]
    assert not rng.answers


def test_short_target_and_single_sentence():
    docs = [[["a"] * 2, ["b"] * 9], [["x"], ["y"], ["z"]]]
    # Short target 2: each sentence alone fills it, so B is random without a coin.
    # 9 + 1 = 10 tokens are too many for 6: four coins, A is longer each time.
    rng = Scripted(0.05, 2, 1, 0, 1, 1, 0.1, 0.9, 0.1, 0.9)
    pairs = list(build_pairs(docs, 0, 9, 0.1, rng))
    assert pairs == [(["a"] * 2, ["x"], True), (["b"] * 5, ["y"], True)]
    assert not rng.answers


def test_truncation_takes_from_the_longer_and_ties_from_b():
    # 4 + 3 to 4: A (4 > 3), then a tie at 3, 3: B, then A (3 > 2).
    assert plan_truncation(4, 3, 4, Scripted(0.1, 0.9, 0.9)) == (1, 2, 0, 2)
    assert plan_truncation(2, 2, 3, Scripted(0.2)) == (0, 2, 1, 1)
    assert plan_truncation(2, 2, 4, Scripted()) == (0, 2, 0, 2)


def test_truncation_is_fair():
    rng = random.Random(0)
    fronts = [plan_truncation(10, 60, 50, rng)[2] for _ in range(2000)]
    # 20 tokens are dropped from B, each at the front with probability 1/2.
    assert abs(np.mean(fronts) - 10) < 0.2 and abs(np.var(fronts) - 5) < 0.6


def test_chosen_document_differs_up_to_ten_tries():
    assert choose_document(3, 0, Scripted(0, 0, 2)) == 2
    rng = Scripted(*[0] * 10)
    assert choose_document(3, 0, rng) == 0 and not rng.answers


def test_count_sentences():
    assert count_sentences([2, 2, 2], 3) == 2
    assert count_sentences([2, 2, 2], -5) == 1
    assert count_sentences([2, 2], 100) == 2
    assert count_sentences([], 3) == 0


@pytest.mark.parametrize("make", [random.Random, np.random.default_rng])
def test_properties_over_a_corpus(make):
    docs, rng = documents(), make(1)
    labels = forced = 0
    pairs = []
    for d in range(len(docs)):
        for a, b, is_random in build_pairs(docs, d, 64, 0.1, rng):
            pairs.append((a, b, is_random))
            assert a and b and len(a) + len(b) <= 61
            assert set(a) == {d}
            assert (set(b) != {d}) == is_random
            labels += is_random
            forced += len(docs[d]) == 1
    # Coins make one half; documents (and ends of documents) of one sentence add to that.
    assert 0.5 < labels / len(pairs) < 0.75 and forced > 5


def test_next_sentence_ratio_is_half_when_documents_are_long():
    rng = random.Random(2)
    docs = [[[d] * 5 for _ in range(400)] for d in range(20)]
    labels = [r for d in range(20) for _, _, r in build_pairs(docs, d, 128, 0.0, rng)]
    assert len(labels) > 400 and abs(np.mean(labels) - 0.5) < 0.07


def test_short_target_share():
    rng, short = random.Random(3), 0
    for _ in range(3000):
        plans = list(plan_pairs([1] * 200, lambda r: None, 100, 0.1, rng))
        first = plans[0]
        stop = first.second[1] if first.second else first.first[1] + first.other_length
        short += stop < 100
    assert abs(short / 3000 - 0.1 * 98 / 99) < 0.02


def test_put_back_sentences_cover_the_document():
    """Without truncation every sentence of the document is in some A or real B."""
    rng = random.Random(4)
    for _ in range(200):
        used = set()
        for plan in plan_pairs([4] * 30, lambda r: None, 40, 0.2, rng):
            used |= set(range(*plan.first)) | set(range(*(plan.second or (0, 0))))
        assert used == set(range(30))


def test_random_fraction_of_a_toy_corpus_with_short_documents():
    """The known share of a 200-document toy corpus is above one half (forced randoms)."""
    rng = random.Random(12345)
    sizes = random.Random(5)
    docs = [[[d] * sizes.randint(4, 20) for _ in range(sizes.randint(3, 20))] for d in range(200)]
    labels = []
    for d in range(200):
        for a, b, is_random in build_pairs(docs, d, 128, 0.1, rng):
            labels.append(is_random)
            mask_tokens(
                ["[CLS]", *a, "[SEP]", *b, "[SEP]"],
                rng,
                vocabulary=range(200),
                special_tokens={"[CLS]", "[SEP]"},
                mask_token="[MASK]",
                max_predictions=20,
            )
    assert 0.5 < np.mean(labels) < 0.65


def test_single_segments():
    assert plan_single_segments([3, 3, 3, 25, 2], 10) == [(0, 9), (9, 19), (19, 29), (29, 36)]
    assert plan_single_segments([], 10) == []
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 30, 200).tolist()
    ranges = plan_single_segments(lengths, 20)
    assert [i for begin, end in ranges for i in range(begin, end)] == list(range(sum(lengths)))
    assert max(end - begin for begin, end in ranges) == 20
