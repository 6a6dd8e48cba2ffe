"""Batches of blocks: everything once an epoch, and the same after a resume."""

import collections
import itertools
import threading
import time

import numpy as np
import pytest

from kctx.data.ahead import ahead
from kctx.data.id_corpus import IdCorpus
from kctx.data.window_stream import WindowStream
from kctx.data.window_targets import HierarchicalSoftmax, NegativeSampling
from kctx.data.word_features import WordFeatures
from kctx.data.word_vocabulary import WordVocabulary

pytestmark = pytest.mark.once

RNG = np.random.default_rng(0)
LINES = [" ".join(f"w{i}" for i in RNG.zipf(1.4, n) if i < 60) for n in RNG.integers(0, 30, 200)]
VOCABULARY = WordVocabulary.train(lines=LINES, min_count=2)
CORPUS = IdCorpus.build(VOCABULARY, lines=LINES)


class SmallChunks(IdCorpus):
    """So that a small corpus has several."""

    def chunks(self, size=300, start=0):
        return super().chunks(300, start)


def stream_of(corpus=CORPUS, counts=VOCABULARY.counts, targets=None, **options):
    targets = targets or NegativeSampling(counts, shared=3)
    small = {"epochs": 2, "window": 3, "block_words": 4, "step_blocks": 5, "steps": 2}
    return WindowStream(corpus, counts, targets, **{**small, **options})


def batches(stream):
    return [batch for (batch,) in stream.batches()]


def centres(batch, window=3):
    """Ids of the centres that have a window."""
    size = batch["first"].shape[-1]
    return batch["words"][..., window : window + size][batch["first"] <= batch["last"]]


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("corpus", [CORPUS, SmallChunks(CORPUS.ids)], ids=["one", "several"])
@pytest.mark.parametrize("kind", [NegativeSampling, HierarchicalSoftmax])
def test_all_words_are_there_in_each_epoch(corpus, kind):
    stream = stream_of(corpus, targets=kind(VOCABULARY.counts), sample=0)
    made = batches(stream)
    assert len(made) == stream.total_steps == 2 * stream.steps_per_epoch
    expected = np.bincount(CORPUS.ids[CORPUS.ids >= 0])
    for epoch in range(2):
        part = made[epoch * stream.steps_per_epoch :][: stream.steps_per_epoch]
        seen = np.bincount(np.concatenate([centres(batch) for batch in part]))
        np.testing.assert_array_equal(seen, expected)
    assert stream.words_per_batch * stream.steps_per_epoch == pytest.approx(expected.sum())


def test_epochs_differ():
    stream = stream_of(sample=0)
    made = batches(stream)
    first, second = made[0], made[stream.steps_per_epoch]
    assert not np.array_equal(first["words"], second["words"])
    assert not np.array_equal(first["negatives"], second["negatives"])
    other = next(stream_of(sample=0, seed=1).batches())[0]
    assert not np.array_equal(first["words"], other["words"])
    assert_equal(first, batches(stream_of(sample=0))[0])


@pytest.mark.parametrize("corpus", [CORPUS, SmallChunks(CORPUS.ids)], ids=["one", "several"])
@pytest.mark.parametrize("kind", [NegativeSampling, HierarchicalSoftmax])
def test_resumed_batches_are_those_of_an_unbroken_run(corpus, kind):
    targets = kind(VOCABULARY.counts)
    whole = batches(stream_of(corpus, targets=targets, sample=1e-2))
    for step in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
        resumed = stream_of(corpus, targets=targets, sample=1e-2)
        resumed.restore(resumed.state_at(step))
        rest = batches(resumed)
        assert len(rest) == len(whole) - step
        for one, other in zip(rest, whole[step:], strict=True):
            assert_equal(one, other)


def test_shapes_and_dtypes():
    batch = batches(stream_of())[0]
    described = {name: (array.shape, str(array.dtype)) for name, array in batch.items()}
    assert described == {
        "words": ((2, 5, 10), "int32"),
        "first": ((2, 5, 4), "int32"),
        "last": ((2, 5, 4), "int32"),
        "negatives": ((2, 5, 3), "int32"),
        "input_rates": ((2, 5, 10), "float32"),
        "output_rates": ((2, 5, 7), "float32"),
    }
    batch = batches(stream_of(targets=HierarchicalSoftmax(VOCABULARY.counts)))[0]
    nodes = batch["nodes"].shape[-1]
    assert batch["nodes"].shape == batch["output_rates"].shape == (2, 5, nodes)
    assert batch["paths"].shape == (2, 5, 4, nodes)


@pytest.mark.parametrize("kind", [NegativeSampling, HierarchicalSoftmax])
def test_centres_that_predict(kind):
    """The centres have the rates, and the words of their windows the targets."""
    batch = batches(stream_of(targets=kind(VOCABULARY.counts), predicted="context"))[0]
    assert batch["input_rates"].shape == (2, 5, 4)
    if kind is NegativeSampling:
        assert batch["output_rates"].shape == (2, 5, 10 + batch["negatives"].shape[-1])
        return
    assert batch["paths"].shape[:3] == (2, 5, 10)
    place, centre = np.arange(10), np.arange(4)[:, None] + 3
    inside = (batch["first"][..., None] <= place) & (place <= batch["last"][..., None])
    inside &= place != centre
    np.testing.assert_array_equal(batch["paths"].any(axis=-1), inside.any(axis=-2))


@pytest.mark.parametrize("kind", [NegativeSampling, HierarchicalSoftmax])
def test_dataset_gives_the_same(kind):
    stream = stream_of(targets=kind(VOCABULARY.counts))
    stream.restore({"step": np.int64(2)})
    expected = batches(stream)
    made = list(stream.dataset().as_numpy_iterator())
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        assert_equal(one, other)


def test_rates_fall_in_a_line_and_stop():
    stream = stream_of(learning_rate=0.5, row_rates="sum", epochs=3, min_learning_rate=0.3)
    for step, batch in enumerate(batches(stream)):
        rate = 0.5 * max(1 - step / stream.total_steps, 0.3)
        np.testing.assert_allclose(batch["input_rates"], rate, rtol=1e-6)
        np.testing.assert_allclose(batch["output_rates"], rate, rtol=1e-6)


@pytest.mark.parametrize(
    ("predicted", "predicting", "targets"), [("centres", 10, 4), ("context", 4, 10)]
)
def test_rows_that_occur_often_in_a_step_go_slower(predicted, predicting, targets):
    """By the square root of how often: once is not slowed."""
    counts = np.array([900, 100, 1])
    ids = np.repeat(np.int32([0, 1, 2]), counts)
    features = WordFeatures([0, 3, 1, 3, 2], [0, 2, 4, 5])  # the first two share row 3
    stream = stream_of(
        *(IdCorpus(ids), counts, NegativeSampling(counts, 2)),
        features=features,
        sample=0,
        predicted=predicted,
        by_kernel=False,
    )
    share, noise = counts / 1001, counts**0.75 / (counts**0.75).sum()
    inputs, outputs = 5 * predicting * share, 5 * (targets * share + 2 * noise)
    np.testing.assert_allclose(stream._input_scale, np.maximum(inputs, 1) ** -0.5, rtol=1e-6)
    np.testing.assert_allclose(stream._output_scale, np.maximum(outputs, 1) ** -0.5, rtol=1e-6)
    there = 1 - np.exp(-inputs)  # the chance of each word to be in a step
    assert there[:2].sum() > 1
    np.testing.assert_allclose(stream._feature_scale, [1, 1, 1, there[:2].sum() ** -0.5], rtol=1e-6)
    batch = batches(stream)[0]
    words = batch["words"][..., 3:-3] if predicted == "context" else batch["words"]
    np.testing.assert_allclose(batch["input_rates"], 0.05 * stream._input_scale[words], rtol=1e-6)


@pytest.mark.parametrize(
    "lines", [["a b"], ["a"], ["", "", "a b", ""], ["a a a a", "b"], ["rare a b rare", "rare"]]
)
@pytest.mark.parametrize("sample", [0, 1e-9])
def test_tiny_texts(lines, sample):
    """Also where hardly a word is kept: batches are then full of places without a window."""
    vocabulary = WordVocabulary(["a", "b"], [9, 5])
    corpus = IdCorpus.build(vocabulary, lines=lines)
    stream = stream_of(corpus, vocabulary.counts, sample=sample)
    made = batches(stream)
    assert len(made) == stream.total_steps >= 2
    seen = collections.Counter(np.concatenate([centres(x) for x in made]).tolist())
    expected = collections.Counter(" ".join(lines).split())
    if sample == 0:
        assert seen == {i: 2 * expected[word] for i, word in enumerate("ab") if expected[word]}
    assert all(batch["words"].shape == (2, 5, 10) for batch in made)


def test_windows_do_not_leave_their_line():
    """Words of a line are multiples of its number: a centre and its context share one."""
    lines = [[10 * line + i for i in range(5)] for line in range(30)]
    ids = np.int32([x for line in lines for x in (*line, -2)])
    stream = stream_of(IdCorpus(ids), np.ones(300, int), sample=0, window=2)
    for batch in batches(stream):
        words = batch["words"].reshape(-1, 8)
        for row, first, last in zip(
            words, batch["first"].reshape(-1, 4), batch["last"].reshape(-1, 4), strict=True
        ):
            for i, (a, b) in enumerate(zip(first, last, strict=True)):
                assert a > b or {x // 10 for x in row[a : b + 1].tolist()} == {
                    int(row[i + 2]) // 10
                }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "`epochs` must be an integer of at least 1. Received: epochs=0"),
        ({"window": 2.5}, "`window` must be"),
        ({"block_words": 0}, "`block_words` must be"),
        ({"step_blocks": 0}, "`step_blocks` must be"),
        ({"steps": 0}, "`steps` must be"),
        ({"max_sentence_words": 1}, "`max_sentence_words` must be"),
        ({"seed": -1}, "`seed` must be"),
        ({"learning_rate": 0}, "`learning_rate` must be above 0. Received: learning_rate=0"),
        (
            {"learning_rate": float("nan")},
            "`learning_rate` must be above 0. Received: .*=nan",
        ),
        ({"sample": -1e-3}, "`sample` must be at least 0. Received: sample=-0.001"),
        ({"row_rates": "mean"}, "`row_rates` must be one of .* Received: row_rates='mean'"),
        ({"predicted": "words"}, "`predicted` must be one of .* Received: predicted='words'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        stream_of(**options)


def test_fingerprint():
    one = stream_of().fingerprint()
    assert one == stream_of().fingerprint()
    others = [
        stream_of(seed=1),
        stream_of(SmallChunks(CORPUS.ids[:-1])),
        stream_of(targets=HierarchicalSoftmax(VOCABULARY.counts)),
        stream_of(targets=NegativeSampling(VOCABULARY.counts, shared=4)),
        stream_of(predicted="context"),
    ]
    assert all(other.fingerprint() != one for other in others)


def test_fingerprint_of_features():
    size = len(VOCABULARY)
    rows, offsets = np.arange(2 * size), 2 * np.arange(size + 1)
    shifted = np.minimum(offsets + (np.arange(size + 1) > 0), 2 * size)
    found = [
        stream_of(features=WordFeatures(*features)).fingerprint()
        for features in ((rows, offsets), (rows, offsets), (rows[::-1], offsets), (rows, shifted))
    ]
    assert found[0] == found[1] and found[0] not in found[2:] and found[2] != found[3]
    assert "features_sha256" not in stream_of().fingerprint()


def test_works_ahead():
    made = []

    def numbers():
        for i in itertools.count():
            made.append(i)
            yield i

    found = ahead(numbers(), 2)
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    deadline = time.time() + 5
    while len(made) < 6 and time.time() < deadline:
        time.sleep(0.005)
    assert len(made) in (5, 6)  # two wait, one is held
    threads = threading.active_count()
    found.close()
    while threading.active_count() >= threads and time.time() < deadline:
        time.sleep(0.01)
    assert threading.active_count() < threads and len(made) <= 7


def test_errors_of_the_thread_are_raised():
    def broken():
        yield 1
        raise ValueError("no more")

    found = ahead(broken(), 4)
    assert next(found) == 1
    with pytest.raises(ValueError, match="no more"):
        next(found)
    assert list(ahead(iter(range(10)), 1)) == list(range(10))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": float("inf")}, "`learning_rate` must be above 0. Received: .*=inf"),
        ({"learning_rate": "x"}, "`learning_rate` must be above 0. Received: .*='x'"),
        ({"min_learning_rate": float("nan")}, "`min_learning_rate` must be at least 0, at most 1"),
        ({"sample": float("nan")}, "`sample` must be at least 0. Received: sample=nan"),
        ({"num_tokens": -5}, "`num_tokens` must be an integer of at least 1"),
        ({"line_end_id": 999}, "`line_end_id` must be that of one of .* line_end_id=999"),
        ({"corpus": IdCorpus(np.array([0, 999, -2], np.int32))}, "an id of 999"),
        ({"corpus": IdCorpus(np.array([-1, -2], np.int32))}, "must hold a known word"),
        ({"corpus": IdCorpus(np.zeros(0, np.int32))}, "must hold a known word"),
        ({"targets": NegativeSampling([3, 2])}, "those of the words of `targets`.*of 2 words"),
    ],
)
def test_what_no_batches_can_be_made_of(options, message):
    with pytest.raises(ValueError, match=message):
        stream_of(**options)
