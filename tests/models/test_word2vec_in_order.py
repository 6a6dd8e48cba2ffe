"""The plain path against values of the C tool (tmikolov/word2vec at 20c129a, one thread)."""

import bisect

import numpy as np
import pytest

from kctx.convert import save_vectors
from kctx.models.word2vec_in_order import (
    Word2VecInOrder,
    initial_table,
    noise_ends,
    sigmoid_table,
)
from kctx.vectors import Vectors
from kctx.vectors.huffman import huffman_tree

pytestmark = pytest.mark.once

WORDS = ["</s>", "a", "b", "c", "d", "e"]
COUNTS = [3, 4, 4, 2, 1, 1]
LINES = [[WORDS.index(word) for word in line.split()] for line in ("a b c a b", "b a d", "c a b e")]


def trained(architecture, objective, epochs=1):
    model = Word2VecInOrder(
        COUNTS,
        dim=4,
        architecture=architecture,
        tree=huffman_tree(COUNTS) if objective == "tree" else None,
        num_negatives=0 if objective == "tree" else 2,
        window=1,
        sample=0,
        learning_rate=0.05 if architecture == "cbow" else 0.025,
        epochs=epochs,
    )
    model.train(LINES)
    return model


def test_initial_table():
    table = initial_table(6, 4)
    expected = [
        [0.10006714, 0.11048508, -0.09575653, -0.08195114],
        [0.03416443, 0.07552719, 0.02352142, 0.00528336],
        [-0.09008789, 0.05546188, -0.10890961, 0.03123856],
    ]
    np.testing.assert_allclose(table[:3], expected, atol=5e-9)


@pytest.mark.parametrize(
    ("architecture", "objective", "a", "b", "c"),
    [
        (
            *("cbow", "tree", "0.034897 0.075711 0.024271 0.005101"),
            "-0.090425 0.055403 -0.109245 0.031337",
            "-0.019095 -0.024027 -0.083206 -0.046971",
        ),
        (
            *("skip_gram", "tree", "0.034349 0.075621 0.023698 0.005236"),
            "-0.090197 0.055416 -0.109051 0.031241",
            "-0.018865 -0.023933 -0.082976 -0.047022",
        ),
        (
            *("cbow", "negatives", "0.034749 0.075394 0.024181 0.005107"),
            "-0.090509 0.055344 -0.109224 0.031240",
            "-0.019075 -0.024055 -0.083142 -0.046964",
        ),
        (
            *("skip_gram", "negatives", "0.034404 0.075477 0.023760 0.005189"),
            "-0.090235 0.055388 -0.109053 0.031299",
            "-0.018859 -0.023949 -0.082959 -0.047026",
        ),
    ],
)
def test_one_pass(architecture, objective, a, b, c):
    table = trained(architecture, objective).input_table
    expected = [[float(x) for x in row.split()] for row in (a, b, c)]
    np.testing.assert_allclose(table[1:4], expected, atol=2e-6)
    np.testing.assert_array_equal(table[0], initial_table(6, 4)[0])  # no line's end is a context


@pytest.mark.parametrize(
    ("architecture", "a"),
    [
        ("cbow", [0.037053, 0.077160, 0.026018, 0.005180]),
        ("skip_gram", [0.035042, 0.076017, 0.024211, 0.005309]),
    ],
)
def test_two_passes(architecture, a):
    np.testing.assert_allclose(trained(architecture, "tree", 2).input_table[1], a, atol=2e-6)


def test_binary_file(tmp_path):
    path = tmp_path / "vectors.bin"
    save_vectors(Vectors(WORDS, trained("cbow", "tree").input_table), path, "word2vec")
    content = path.read_bytes()
    assert content.startswith(b"6 4\n</s> \x00\xf0\xcc\x3d")
    assert content.endswith(b"\n") and len(content) == 4 + sum(len(w) + 2 + 16 for w in WORDS)


def filled_table(counts, slots):
    """The tool's table itself."""
    powers = [count**0.75 for count in counts]
    word, bound, table = 0, powers[0] / sum(powers), []
    for slot in range(slots):
        table.append(word)
        if slot / slots > bound:
            word += 1
            bound += powers[word] / sum(powers) if word < len(counts) else 0
        word = min(word, len(counts) - 1)
    return table


@pytest.mark.parametrize("counts", [[3, 4, 4, 2, 1, 1], [1] * 7, [10**9, 5, 1, 1, 1], [1, 10**6]])
@pytest.mark.parametrize("slots", [1000, 8192, 50])
def test_noise_slots_equal_the_table(counts, slots):
    ends = noise_ends(counts, slots)
    assert [bisect.bisect_left(ends, slot) for slot in range(slots)] == filled_table(counts, slots)


def test_noise_of_the_whole_table_has_the_right_shares():
    ends = np.array(noise_ends([7, 4, 2, 1]))
    shares = np.diff(ends, prepend=-1) / 1e8
    np.testing.assert_allclose(shares, [0.438520, 0.288211, 0.171371, 0.101898], atol=1e-6)


def test_sigmoid_has_83_steps_a_unit():
    table = sigmoid_table()
    model = trained("cbow", "tree")
    assert model._sigmoid(np.float32(1.0)) == table[7 * 83]
    # That place holds the sigmoid of 0.972: the tool's own inaccuracy.
    assert abs(table[7 * 83] - 1 / (1 + np.exp(-1.0))) > 5e-3
    assert table[500] == np.float32(0.5)


class Fixed:
    """Draws that follow a script, and are counted."""

    def __init__(self, values):
        self.values, self.used = list(values), 0

    def next(self):
        self.used += 1
        return self.values[self.used - 1] if self.used <= len(self.values) else 0

    def uniform(self):
        return (self.next() & 0xFFFF) / 65536


def model_of(**options):
    options = {"num_negatives": 2, "window": 1, "sample": 0, "epochs": 1, **options}
    return Word2VecInOrder(COUNTS, 4, **options)


def test_a_negative_that_is_the_centre_is_skipped_and_zero_is_replaced():
    model = model_of(num_negatives=3)
    slot = model.noise[0] + 1  # of the word 1
    # The word 1 itself; the slot 0, of the line's end, whose low bits give 12 % 5 + 1 = 3.
    model.draws = Fixed([slot << 16, 12, slot << 16])
    assert list(model._targets(1)) == [(1, 1), (3, 0)]
    assert model.draws.used == 3


def test_large_scores():
    """Negative sampling saturates outside of (-6, 6); the tree leaves the node out."""
    hidden = np.float32([1, 0, 0, 0])
    model = model_of(num_negatives=1)
    model.draws = Fixed([(model.noise[1] + 1) << 16])  # the word 2
    model.output_table[1:3, 0] = 7, 7
    error = model._predict(1, hidden)
    # The centre has its label, so nothing is left to learn; the negative gets a whole step back.
    np.testing.assert_allclose(error, [-0.025 * 7, 0, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(model.output_table[1:3, 0], [7, 6.975], rtol=1e-6)
    model = model_of(num_negatives=0, tree=huffman_tree(COUNTS))
    model.node_table[:, 0] = 7
    assert not model._predict(1, hidden).any()
    assert (model.node_table[:, 0] == 7).all()


def test_subsampling_and_empty_lines_take_draws():
    model = model_of(sample=1e-9)
    model.draws = Fixed([0xFFFF] * 100)
    model.train([[1, 2, 3], [], [4]])
    # A draw for each word, all of them dropped, and one for each sentence without a word.
    assert model.draws.used == 4 + 3


def test_long_sentences_are_cut():
    model = model_of(max_sentence_words=3)
    assert list(model._sentences([[1, 2, 3, 4], [1, 2, 3], []])) == [
        [1, 2, 3],
        [4],
        [1, 2, 3],
        [],
        [],
    ]
    assert model._seen == 7 + 3


def test_the_rate_falls_every_ten_thousand_words():
    model = Word2VecInOrder([60, 6000, 6000], 2, sample=0, epochs=2, learning_rate=0.5)
    rates = []
    model._train_position = lambda sentence, position: rates.append(float(model.rate))
    model.train([[1, 2] * 100 for _ in range(60)])
    # The line that begins with 9849 words behind it ends with 10,050: its first word is trained
    # before the tool looks. It then counts anew in each pass.
    changes = [i for i in range(1, len(rates)) if rates[i] != rates[i - 1]]
    assert changes == [49 * 200 + 1, 12000 + 49 * 200 + 1]
    expected = [0.5 * (1 - seen / (2 * 12060 + 1)) for seen in (50 * 201, 12060 + 50 * 201)]
    assert [rates[i] for i in changes] == pytest.approx(expected, rel=1e-6)
    model._seen += 10**6
    model._renew_rate()
    assert model.rate == pytest.approx(0.5e-4)


def test_bad_arguments():
    with pytest.raises(ValueError, match="`architecture` must be one of .* architecture='bag'"):
        model_of(architecture="bag")
    with pytest.raises(ValueError, match="`num_negatives` must be an integer of at least 0"):
        model_of(num_negatives=-1)
