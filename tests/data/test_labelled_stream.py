"""Batches of labelled lines: each line once an epoch, targets, and the same after a resume."""

import collections

import numpy as np
import pytest

from kctx.data import LabelledLines, LabelledStream
from kctx.vectors import LineFeatures, Subwords
from kctx.vectors.huffman import huffman_tree

pytestmark = pytest.mark.once

OBJECTIVES = ("softmax", "hierarchical_softmax", "negative_sampling", "one_vs_all")
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)
# Line i is word i alone, `i % 7` times; its label tells i, too.
LABELS = ["a", "b", "c", "d"]
COUNTS = np.array([9, 6, 5, 3])
LINES = [([LABELS[i % 4]], [f"w{i}"] * (1 + i % 7)) for i in range(23)]
FEATURES = LineFeatures(["</s>", *(f"w{i}" for i in range(23))], Subwords(0, 0, 0))


def stream_of(objective="softmax", lines=LINES, counts=COUNTS, **options):
    labelled = LabelledLines(lines, LABELS, FEATURES)
    small = {"step_lines": 3, "steps": 2, "epochs": 2}
    return LabelledStream(labelled, counts, objective, **{**small, **options})


def batches(stream):
    return [batch for (batch,) in stream.batches()]


def lines_of(batch):
    """(line, sorted features, position) of every line of a batch."""
    for place in range(len(batch["rate"])):
        for line in range(batch["sizes"].shape[1]):
            rows = batch["features"][place][batch["feature_lines"][place] == line]
            if len(rows):
                assert batch["sizes"][place, line] == len(rows)
                yield int(rows[0]) - 1, rows.tolist(), (place, line)


@every_objective
def test_every_line_once_an_epoch(objective):
    stream = stream_of(objective)
    made = batches(stream)
    assert len(made) == stream.total_steps == 2 * stream.steps_per_epoch == 8
    orders = []
    for epoch in (made[:4], made[4:]):
        found = [entry for batch in epoch for entry in lines_of(batch)]
        assert sorted(i for i, _, _ in found) == list(range(23))
        assert all(rows == [i + 1] * (1 + i % 7) + [0] for i, rows, _ in found)
        orders.append([i for i, _, _ in found])
    assert orders[0] != orders[1]
    tokens = sum(len(words) + 2 for _, words in LINES)
    assert stream.words_per_batch * stream.steps_per_epoch == tokens


@every_objective
def test_targets(objective):
    tree, drawn = huffman_tree(COUNTS), collections.Counter()
    for batch in batches(stream_of(objective, epochs=40)):
        for i, _, place in lines_of(batch):
            rows, labels, weights = (batch[name][place] for name in ("rows", "labels", "weights"))
            gold = i % 4
            if objective in ("softmax", "one_vs_all"):
                assert rows.tolist() == [0, 1, 2, 3] and (weights == 1).all()
                assert labels.tolist() == [float(x == gold) for x in range(4)]
            elif objective == "hierarchical_softmax":
                length = tree.lengths[gold]
                assert weights.tolist() == [1.0] * length + [0.0] * (len(weights) - length)
                assert rows[:length].tolist() == tree.points[gold, :length].tolist()
                assert labels[:length].tolist() == tree.codes[gold, :length].tolist()
            else:
                assert rows[0] == gold and labels.tolist() == [1, 0, 0, 0, 0, 0]
                assert (rows[1:][weights[1:] > 0] != gold).all() and weights.min() == 1
                drawn.update(rows[1:].tolist())
        # What fills a step up does not count.
        real = batch["sizes"] > 0
        filler = np.ones(real.shape, bool)
        for _, _, place in lines_of(batch):
            filler[place] = False
        assert not batch["weights"][filler].any()
    if objective == "negative_sampling":
        assert drawn[0] > drawn[3]  # by the square root of the counts


def test_of_several_labels_one_is_drawn():
    lines = [(["a", "c"], ["w0"])] * 40
    drawn = collections.Counter()
    for batch in batches(stream_of(lines=lines, epochs=5)):
        for _, _, place in lines_of(batch):
            drawn[int(batch["labels"][place].argmax())] += 1
            assert batch["labels"][place].sum() == 1
    assert set(drawn) == {0, 2} and min(drawn.values()) > 60
    for batch in batches(stream_of("one_vs_all", lines=lines, epochs=1)):
        for _, _, place in lines_of(batch):
            assert batch["labels"][place].tolist() == [1, 0, 1, 0]


@every_objective
def test_resumed_batches_are_those_of_an_unbroken_run(objective):
    whole = batches(stream_of(objective))
    for step in (0, 3, 7, 8):
        resumed = stream_of(objective)
        resumed.restore(resumed.state_at(step))
        rest = batches(resumed)
        assert len(rest) == 8 - step
        for one, other in zip(rest, whole[step:], strict=True):
            assert one.keys() == other.keys()
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])


@every_objective
def test_dataset_gives_the_same(objective):
    expected = batches(stream_of(objective))
    made = list(stream_of(objective).dataset().as_numpy_iterator())
    for one, other in zip(made, expected, strict=True):
        for name in other:
            np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.parametrize("objective", ["softmax", "one_vs_all"])
def test_batches_for_kernels_are_the_same(objective):
    """Line after line: the same features, sizes, labels and rates; after a resume, too."""
    lines = [*LINES, *[(["a", "c"], ["w0"])] * 9]
    whole = [stream_of(objective, lines, epochs=3, steps=4) for _ in range(2)]
    whole[1].restore(whole[1].state_at(3))
    for stream in whole:
        plain, made = batches(stream), [batch for (batch,) in stream.line_batches()]
        assert len(made) == len(plain) == stream.total_steps - stream.first_step
        for batch, expected in zip(made, plain, strict=True):
            np.testing.assert_array_equal(batch["rate"], expected["rate"])
            assert batch["bounds"][0] == 0 and batch["bounds"][-1] == len(batch["numbers"])
            places = iter(zip(batch["numbers"], batch["label_bounds"], strict=True))
            for step, number in enumerate(np.diff(batch["bounds"])):
                assert number == expected["weights"][step].any(axis=1).sum()
                for line in range(number):
                    i, (begin, end) = next(places)
                    rows = batch["rows"][slice(*batch["offsets"][i : i + 2])]
                    wanted = expected["feature_lines"][step] == line
                    np.testing.assert_array_equal(rows, expected["features"][step][wanted])
                    shares = batch["row_shares"][rows]
                    np.testing.assert_array_equal(shares, expected["shares"][step][wanted])
                    labels = np.flatnonzero(expected["labels"][step, line])
                    assert sorted(batch["label_ids"][begin:end]) == labels.tolist()


@pytest.mark.parametrize("objective", ["hierarchical_softmax", "negative_sampling"])
def test_batches_for_kernels_need_an_objective_they_know(objective):
    with pytest.raises(ValueError, match=f"must be one of .* objective='{objective}'"):
        next(stream_of(objective).line_batches())


def test_the_rate_falls_to_nothing():
    stream = stream_of(learning_rate=0.8)
    rates = [batch["rate"] for batch in batches(stream)]
    expected = [[0.8 * (1 - i / 8), 0.8 * (1 - (i + 0.5) / 8)] for i in range(8)]
    np.testing.assert_allclose(rates, expected, rtol=1e-6)


@pytest.mark.parametrize(("number", "expected"), [(1, 1), (640, 10), (20_000, 128)])
def test_steps_of_few_lines_are_small(number, expected):
    assert stream_of(lines=LINES[:1] * number, step_lines=None).step_lines == expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "hinge"}, "`objective` must be one of .* objective='hinge'"),
        ({"epochs": 0}, "`epochs` must be an integer of at least 1. Received: epochs=0"),
        ({"step_lines": 0}, "`step_lines` must be"),
        ({"num_negatives": 0}, "`num_negatives` must be"),
        ({"learning_rate": 0}, "`learning_rate` must be above 0. Received: learning_rate=0"),
        (
            {"learning_rate": float("nan")},
            "`learning_rate` must be above 0. Received: .*=nan",
        ),
        ({"learning_rate": float("inf")}, "`learning_rate` must be above 0. Received: .*=inf"),
        ({"learning_rate": "x"}, "`learning_rate` must be above 0. Received: .*='x'"),
        ({"counts": [5, 4], "objective": "softmax"}, "for each label of `lines`. Received: 2"),
        ({"counts": [5]}, "at least two labels.* Received: 1"),
        ({"lines": [(["rare"], ["w1"])]}, "must hold a line with a label.* 1 were left out"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        stream_of(**options)


def test_fingerprint():
    one = stream_of().fingerprint()
    assert one == stream_of().fingerprint()
    others = [stream_of(seed=1), stream_of(lines=LINES[:-1]), stream_of("one_vs_all")]
    assert all(other.fingerprint() != one for other in others)
