"""fastText's classifier: its steps against differences of its loss, and what it learns."""

import functools

import keras
import numpy as np
import pytest

from kctx import training
from kctx.convert.fasttext_model import to_fasttext_file
from kctx.data.labelled_lines import LabelledLines
from kctx.data.labelled_stream import LabelledStream
from kctx.models import FastTextClassifier
from kctx.vectors import FastTextPredictor, LineFeatures, Subwords
from tests.models.fasttext_data import (
    LABELLED,
    LABELLED_VOCABULARY,
    LINE_SUBWORDS,
    WORD_NGRAMS,
    lines_stream,
)
from tests.models.runs import DieAt, Died, in_stream, tables, with_values

OBJECTIVES = ("softmax", "hierarchical_softmax", "negative_sampling", "one_vs_all")
every_objective = pytest.mark.parametrize("objective", OBJECTIVES)
SIZE, LABELS = len(LABELLED_VOCABULARY.words), len(LABELLED_VOCABULARY.labels)


def model_of(objective, dim=5, **options):
    return with_values(
        FastTextClassifier(SIZE, LABELS, LINE_SUBWORDS.buckets, dim, objective, **options)
    )


def update_first(model, stream):
    """The first batch as `fit` would take it, by a kernel or not."""
    batches = stream.line_batches() if model.by_kernel else stream.batches()
    (batch,) = next(batches)
    return model.update({name: keras.ops.convert_to_tensor(x) for name, x in batch.items()})


def loss_of(step, inputs, outputs, objective):
    """Sum of the losses of a step's lines, line after line in float64."""
    total = 0.0
    for line, row in enumerate(step["rows"]):
        weights, labels = step["weights"][line], step["labels"][line]
        if not weights.any():
            continue
        features = step["features"][step["feature_lines"] == line]
        assert len(features) == step["sizes"][line]
        scores = outputs[row] @ inputs[features].mean(axis=0)
        if objective == "softmax":
            total += np.log(np.exp(scores).sum()) - scores[labels.argmax()]
        else:
            signs = np.where(labels > 0, 1, -1)
            total += (weights * np.log1p(np.exp(-signs * scores))).sum()
    return total


def differences(loss, table, epsilon=1e-5):
    """The gradient of a loss by a table, from central differences."""
    gradient = np.zeros_like(table)
    for place in np.ndindex(table.shape):
        value, found = table[place], []
        for change in (epsilon, -epsilon):
            table[place] = value + change
            found.append(loss())
        table[place] = value
        gradient[place] = (found[0] - found[1]) / (2 * epsilon)
    return gradient


@every_objective
def test_a_step_goes_down_the_gradient(objective):
    """By rate times the gradient of the sum of the lines' losses, with every number checked."""
    model = model_of(objective, dim=2)
    (batch,) = next(lines_stream(objective, LABELLED[:10]).batches())
    inputs, outputs = (table.astype("float64") for table in tables(model))
    losses = lines = 0
    for place in range(len(batch["rate"])):
        step = {name: value[place] for name, value in batch.items()}
        losses += loss_of(step, inputs, outputs, objective)
        lines += step["weights"].any(axis=1).sum()
        rate = step["rate"]
        assert rate == pytest.approx(0.5 * (1 - place / 6))
        loss = functools.partial(loss_of, step, inputs, outputs, objective)
        changes = [differences(loss, table) for table in (inputs, outputs)]
        inputs -= rate * changes[0]
        outputs -= rate * changes[1]
    loss, count = update_first(model, lines_stream(objective, LABELLED[:10]))
    made = tables(model)
    np.testing.assert_allclose(made[0], inputs, atol=1e-5)
    np.testing.assert_allclose(made[1], outputs, atol=1e-5)
    assert float(loss) == pytest.approx(losses, rel=1e-5) and float(count) == lines == 10


def damping_of(step, inputs, outputs, objective):
    """What the changes of the two tables' rows are divided by: rate times curvature, if above 1."""
    of_outputs, of_lines = np.zeros(len(outputs)), 0.0
    for line, row in enumerate(step["rows"]):
        features = step["features"][step["feature_lines"] == line]
        if not len(features):
            continue
        hidden = inputs[features].mean(axis=0)
        scores = outputs[row] @ hidden
        chances = np.exp(scores) / np.exp(scores).sum()
        if objective != "softmax":
            chances = 1 / (1 + np.exp(-scores))
        curvature = step["rate"] * chances * (1 - chances) * step["weights"][line]
        np.add.at(of_outputs, row, curvature * (hidden @ hidden))
        of_lines += (curvature * (outputs[row] ** 2).sum(axis=1)).sum()
    shares = np.zeros(len(inputs))
    shares[step["features"]] = step["shares"]
    return [np.maximum(x, 1)[:, None] for x in (of_lines * shares, of_outputs)]


@every_objective
def test_large_steps_are_damped(objective):
    model = model_of(objective, dim=2)
    stream = lines_stream(objective, learning_rate=200.0, step_lines=24, steps=1)
    (batch,) = next(stream.batches())
    step = {name: value[0] for name, value in batch.items()}
    inputs, outputs = (table.astype("float64") for table in tables(model))
    loss = functools.partial(loss_of, step, inputs, outputs, objective)
    damping = damping_of(step, inputs, outputs, objective)
    assert all(1 < x.max() < 1e4 for x in damping)
    expected = [
        table - 200.0 * differences(loss, table) / divisor
        for table, divisor in zip((inputs, outputs), damping, strict=True)
    ]
    update_first(model, stream)
    for made, wanted in zip(tables(model), expected, strict=True):
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-4)


@every_objective
def test_a_high_rate_learns_in_large_steps_too(objective):
    """Without damping this grows beyond all bounds."""
    losses, _ = trained(objective, step_lines=120, steps=1, learning_rate=5.0, epochs=60)
    assert losses[-1] < 0.5 * losses[0]


def test_shares_are_means_over_the_lines():
    """Word 0 alone fills the first line, half of the second, which has a double word 1."""
    features = LineFeatures(["</s>", "a"], Subwords(0, 0, 0))
    lines = LabelledLines([(["x"], []), (["y"], ["a", "a"])], ["x", "y"], features)
    stream = LabelledStream(lines, [1, 1], step_lines=2, steps=1)
    (batch,) = next(stream.batches())
    expected = np.array([(1 + 1 / 3) / 2, (2 / 3) / 2])
    np.testing.assert_allclose(batch["shares"], expected[batch["features"]], rtol=1e-6)


def test_a_step_by_hand():
    """Two labels, one line of one word and its end: h = (1, 0), scores (0.5, 0)."""
    features = LineFeatures(["</s>", "good"], Subwords(0, 0, 0))
    lines = LabelledLines([(["up"], ["good"])], ["up", "down"], features)
    stream = LabelledStream(lines, [2, 1], epochs=1, learning_rate=0.4, step_lines=1, steps=1)
    model = FastTextClassifier(2, 2, dim=2)
    model.set_weights([np.array([[0, 0], [2, 0]]), np.array([[0.5, 0], [0, 0]])])
    (loss,) = in_stream(model, stream)
    up = 1 / (1 + np.exp(-0.5))
    assert loss == pytest.approx(-np.log(up), rel=1e-5)
    step = 0.4 * (1 - up)
    # Both rows get half of the gradient of the mean, (1 - up) * ((0.5, 0) - (0, 0)).
    expected = [[[step / 4, 0], [2 + step / 4, 0]], [[0.5 + step, 0], [-step, 0]]]
    for made, wanted in zip(tables(model), expected, strict=True):
        np.testing.assert_allclose(made, wanted, atol=1e-6)


def trained(objective, lines=LABELLED, **options):
    model = FastTextClassifier(SIZE, LABELS, LINE_SUBWORDS.buckets, 8, objective)
    losses = in_stream(model, lines_stream(objective, lines, **{"epochs": 15, **options}))
    file = to_fasttext_file(model, LABELLED_VOCABULARY, LINE_SUBWORDS, WORD_NGRAMS)
    return losses, FastTextPredictor(file)


@every_objective
def test_learns(objective):
    losses, predictor = trained(objective)
    assert losses[-1] < 0.7 * losses[0], losses
    single = [(labels[0], " ".join(words)) for labels, words in LABELLED if len(labels) == 1]
    answers = predictor.predict([text for _, text in single])
    right = np.mean([a[0][0] == label for a, (label, _) in zip(answers, single, strict=True)])
    assert right > 0.95


def test_several_labels():
    """A decision for each: a line of words of two topics has both labels."""
    draws = np.random.default_rng(1)
    lines = []
    for _ in range(150):
        labels = [x for x in range(3) if draws.random() < 0.5] or [0]
        words = [f"w{x}{draws.integers(6)}" for x in labels for _ in range(3)]
        lines.append(([f"__label__{x}" for x in labels], words))
    _, predictor = trained("one_vs_all", lines, epochs=40)
    answers = dict(predictor.predict("w00 w01 w02 w20 w21 w22", k=-1))
    assert answers["__label__0"] > 0.8 and answers["__label__2"] > 0.8
    assert answers["__label__1"] < 0.2


@every_objective
def test_other_rows_stay_bit_for_bit(objective):
    model = FastTextClassifier(SIZE + 0, LABELS, 3000, 4, objective)
    stream = lines_stream(objective, LABELLED[:20], epochs=1)
    before = tables(with_values(model))
    touched = set()
    for (batch,) in stream.batches():
        touched |= set(batch["features"][batch["feature_lines"] < 4].tolist())
    in_stream(model, stream)
    after, others = tables(model), np.setdiff1d(np.arange(SIZE + 3000), list(touched))
    assert len(others) > 2000
    # What fills up the features adds zero to row 0, which every line has.
    assert 0 in touched
    assert after[0][others].tobytes() == before[0][others].tobytes()
    assert (after[0][list(touched)] != before[0][list(touched)]).any(axis=1).all()
    assert (after[1] != before[1]).any()


@every_objective
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(objective, policy):
    expected = in_stream(model_of(objective), lines_stream(objective))
    model = model_of(objective, dtype=policy)
    losses = in_stream(model, lines_stream(objective))
    np.testing.assert_allclose(losses, expected, rtol=0.02)
    assert all(t.dtype == np.float32 and np.isfinite(t).all() for t in tables(model))


def test_a_resumed_run_has_the_same_losses(tmp_path):
    def run(folder, resume=False, die_at=None):
        model, stream = model_of("negative_sampling"), lines_stream("negative_sampling")
        log = training.CSVLog(folder / "log.csv", every=1)
        in_stream(
            *(model, stream),
            every=2,
            checkpoints=training.Checkpoints(folder / "checkpoints", every=2, stream=stream),
            callbacks=[log] + ([DieAt(die_at)] if die_at else []),
            resume=resume,
        )
        return tables(model), (folder / "log.csv").read_text()

    expected, log = run(tmp_path / "whole")
    with pytest.raises(Died):
        run(tmp_path / "broken", die_at=7)
    made, other_log = run(tmp_path / "broken", resume=True)
    assert log == other_log and log.count("\n") > 10
    for one, two in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, two)


def test_saves_and_loads(tmp_path):
    model = model_of("one_vs_all")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    for one, two in zip(tables(loaded), tables(model), strict=True):
        np.testing.assert_array_equal(one, two)
    again = [in_stream(x, lines_stream("one_vs_all")) for x in (loaded, model)]
    assert again[0] == again[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary_size": 0}, "`vocabulary_size` must be an integer of at least 1. Received"),
        ({"num_labels": 0}, "`num_labels` must be an integer of at least 1. Received"),
        ({"buckets": -1}, "`buckets` must be an integer of at least 0. Received: buckets=-1"),
        ({"dim": True}, "`dim` must be an integer of at least 1. Received: dim=True"),
        ({"objective": "hinge"}, "`objective` must be one of .* objective='hinge'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        FastTextClassifier(**{"vocabulary_size": 9, "num_labels": 2, **options})


def test_a_stream_of_another_objective():
    with pytest.raises(ValueError, match="model's objective, 'softmax'. Received.*'one_vs_all'"):
        model_of("softmax").fit(lines_stream("one_vs_all"))


def test_a_rate_that_is_too_high_stops_with_an_error():
    with pytest.raises(FloatingPointError, match="loss is not finite"):
        in_stream(model_of("softmax"), lines_stream("softmax", learning_rate=1e30, epochs=9))


def test_a_stream_of_rows_that_the_model_does_not_have():
    for sizes, message in (
        ((SIZE, LABELS - 1, 30), "`num_labels` of at least 3. Received: num_labels=2"),
        ((SIZE, LABELS, 3), "`vocabulary_size . buckets` of at least"),
    ):
        with pytest.raises(ValueError, match=message):
            FastTextClassifier(*sizes, 4).fit(lines_stream("softmax"), steps_per_epoch=1, verbose=0)
