"""fastText's vectors: their steps, what they learn, and that only rows of a batch are touched."""

import keras
import numpy as np
import pytest

from kctx import training
from kctx.data.word_vocabulary import WordVocabulary
from kctx.models import FastText
from kctx.vectors import Subwords
from tests.layers.window_loops import by_loops, rows_of
from tests.models.fasttext_data import LINES, SUBWORDS, TOPICS, VOCABULARY, words_stream
from tests.models.runs import DieAt, Died, array, in_stream, tables, with_values

VARIANTS = [
    (architecture, objective)
    for architecture in ("skip_gram", "cbow")
    for objective in ("negative_sampling", "hierarchical_softmax")
]
every_variant = pytest.mark.parametrize(("architecture", "objective"), VARIANTS)
SIZE = len(VOCABULARY)


def model_of(architecture, objective, size=SIZE, buckets=SUBWORDS.buckets, **options):
    return with_values(FastText(size, buckets, 8, architecture, objective, **options))


def stream_for(architecture, objective, **options):
    """In skip-gram the centre predicts, as in the reference."""
    predicted = "context" if architecture == "skip_gram" else "centres"
    return words_stream(objective, **{"predicted": predicted, **options})


def steps_of(stream):
    """Each step of a stream, as `by_loops` takes it."""
    for (batch,) in stream.batches():
        for place in range(len(batch["words"])):
            yield {name: value[place] for name, value in batch.items()}


@pytest.mark.parametrize(
    ("architecture", "objective", "predicted"),
    [(*variant, "centres") for variant in VARIANTS]
    + [(*variant, "context") for variant in VARIANTS if variant[0] == "skip_gram"],
)
def test_training_equals_loops_over_pairs(architecture, objective, predicted):
    """So the three backends learn the same: tables after some batches, and the mean loss."""
    options = {"lines": LINES[:40], "learning_rate": 0.2, "predicted": predicted}
    model = model_of(architecture, objective)
    inputs, outputs = (table.astype("float64") for table in tables(model))
    losses = numbers = 0
    for step in steps_of(words_stream(objective, by_kernel=False, **options)):
        number = len(step["word_sizes"])
        real = step["feature_words"] < number
        rows, owners = step["features"][real], step["feature_words"][real]
        vectors = np.zeros((number, 8))
        np.add.at(vectors, owners, inputs[rows])
        vectors /= step["word_sizes"][:, None]
        positions, sizes = step["positions"], step["word_sizes"][step["positions"]]
        by_inputs, by_outputs, loss, count = by_loops(
            *(step, vectors[positions], outputs[rows_of(step)], architecture, 5, True, False),
            sizes=sizes,
        )
        np.add.at(outputs, rows_of(step), step["output_rates"][..., None] * by_outputs)
        changes = np.zeros_like(vectors)
        np.add.at(changes, positions, step["input_rates"][..., None] * by_inputs)
        losses, numbers = losses + loss[0], numbers + count[0]
        np.add.at(inputs, rows, step["feature_scales"][real][:, None] * changes[owners])
    (loss,) = in_stream(model, words_stream(objective, **options))
    made = tables(model)
    np.testing.assert_allclose(made[0], inputs, atol=3e-5)
    np.testing.assert_allclose(made[1], outputs, atol=3e-5)
    assert loss == pytest.approx(losses / numbers, rel=1e-4)


@every_variant
def test_learns(architecture, objective):
    """Words of one topic become more similar than those of the two."""
    model = FastText(SIZE, SUBWORDS.buckets, 8, architecture, objective)
    stream = stream_for(architecture, objective, epochs=20, learning_rate=0.05)
    losses = in_stream(model, stream)
    assert losses[-1] < 0.95 * losses[0], losses
    table, features = array(model.input_table), stream.features
    vectors = [
        table[features.rows[a:b]].mean(axis=0)
        for a, b in zip(features.offsets[:-1], features.offsets[1:], strict=True)
    ]
    units = np.array(vectors) / np.linalg.norm(vectors, axis=1, keepdims=True)
    of = {word: units[i] for i, word in enumerate(VOCABULARY.words)}
    pairs = [(a, b) for words in TOPICS for a in words for b in words if a != b]
    within = np.mean([of[a] @ of[b] for a, b in pairs])
    between = np.mean([of[a] @ of[b] for a in TOPICS[0] for b in TOPICS[1]])
    assert within > between + 0.3, (within, between)


@every_variant
def test_other_rows_stay_bit_for_bit(architecture, objective):
    """Words that do not occur, their nodes, and buckets of none of the words."""
    words = [*VOCABULARY.words, *(f"<{x}" for x in range(500))]
    counts = np.r_[VOCABULARY.counts, np.ones(500, np.int64)]
    vocabulary = WordVocabulary(words, counts)
    stream, looked_up = (
        stream_for(
            *(architecture, objective),
            vocabulary=vocabulary,
            subwords=Subwords(3, 5, 3000),
            by_kernel=by_kernel,
        )
        for by_kernel in (None, False)
    )
    model = model_of(architecture, objective, len(words), 3000)
    before, touched = tables(model), [set(), set()]
    for step in steps_of(looked_up):
        real = step["feature_words"] < len(step["word_sizes"])
        touched[0] |= set(step["features"][real].tolist())
        touched[1] |= set(rows_of(step).ravel().tolist())
    in_stream(model, stream)
    for old, new, rows in zip(before, tables(model), touched, strict=True):
        others = np.setdiff1d(np.arange(len(old)), list(rows))
        assert len(others) > 20
        assert new[others].tobytes() == old[others].tobytes()
        assert (new[list(rows)] != old[list(rows)]).any()


@every_variant
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(architecture, objective, policy):
    reference, model = (model_of(architecture, objective, dtype=x) for x in (None, policy))
    variant = (architecture, objective)
    expected = in_stream(reference, stream_for(*variant, learning_rate=0.2))
    losses = in_stream(model, stream_for(*variant, learning_rate=0.2))
    np.testing.assert_allclose(losses, expected, rtol=0.02)
    for made, wanted in zip(tables(model), tables(reference), strict=True):
        assert made.dtype == np.float32 and np.isfinite(made).all()
        assert np.abs(made - wanted).mean() < 0.05 * np.abs(wanted).mean()


def test_initial_values_and_sizes():
    model = FastText(20, 30, 10, seed=3)
    inputs, outputs = tables(model)
    assert inputs.shape == (50, 10) and outputs.shape == (20, 10) and not outputs.any()
    assert np.abs(inputs).max() <= 0.1 and inputs.std() == pytest.approx(
        0.2 / 10 * 10 / 12**0.5, 0.1
    )
    np.testing.assert_array_equal(tables(FastText(20, 30, 10, seed=3))[0], inputs)


def test_without_buckets():
    """Words have their own row alone."""
    model = FastText(SIZE, 0, 8)
    stream = words_stream("negative_sampling", subwords=Subwords(0, 0, 0))
    assert np.isfinite(in_stream(model, stream)).all() and tables(model)[0].shape == (SIZE, 8)


def test_saves_and_loads(tmp_path):
    model = model_of("cbow", "negative_sampling", num_negatives=3)
    in_stream(model, words_stream("negative_sampling"))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    for one, two in zip(tables(loaded), tables(model), strict=True):
        np.testing.assert_array_equal(one, two)
    again = [in_stream(x, words_stream("negative_sampling")) for x in (loaded, model)]
    assert again[0] == again[1]


def test_a_resumed_run_has_the_same_losses(tmp_path):
    def run(folder, resume=False, die_at=None):
        model = model_of("skip_gram", "negative_sampling")
        stream = words_stream("negative_sampling", epochs=2, learning_rate=0.2)
        log = training.CSVLog(folder / "log.csv", every=1)
        in_stream(
            *(model, stream),
            every=4,
            checkpoints=training.Checkpoints(folder / "checkpoints", every=4, stream=stream),
            callbacks=[log] + ([DieAt(die_at)] if die_at else []),
            resume=resume,
        )
        return tables(model), (folder / "log.csv").read_text()

    tables_, log = run(tmp_path / "whole")
    with pytest.raises(Died):
        run(tmp_path / "broken", die_at=11)
    made, other_log = run(tmp_path / "broken", resume=True)
    assert log == other_log and log.count("\n") > 15
    for one, two in zip(made, tables_, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary_size": 1}, "`vocabulary_size` must be an integer of at least 2. Received"),
        ({"buckets": -1}, "`buckets` must be an integer of at least 0. Received: buckets=-1"),
        ({"dim": 0}, "`dim` must be an integer of at least 1. Received: dim=0"),
        ({"num_negatives": 0}, "`num_negatives` must be"),
        ({"architecture": "bag"}, "`architecture` must be one of .* architecture='bag'"),
        ({"objective": "softmax"}, "`objective` must be one of .* objective='softmax'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        FastText(**{"vocabulary_size": 10, "buckets": 5, **options})


@every_variant
def test_targets_of_another_objective(architecture, objective):
    other = next(name for _, name in VARIANTS if name != objective)
    with pytest.raises(ValueError, match=f"targets of the stream .* objective='{objective}'"):
        (batch,) = next(words_stream(other).batches())
        FastText(SIZE, SUBWORDS.buckets, 8, architecture, objective).update(batch)


def test_cbow_does_not_predict_the_context():
    (batch,) = next(words_stream("negative_sampling", predicted="context").batches())
    with pytest.raises(ValueError, match="must have predicted='centres'. Received: a stream of"):
        FastText(SIZE, SUBWORDS.buckets, 8, "cbow").update(batch)


def test_batches_for_kernels_need_a_kernel():
    model = FastText(SIZE, SUBWORDS.buckets, 8)
    model.kernel = None
    (batch,) = next(words_stream("negative_sampling", by_kernel=True).batches())
    with pytest.raises(ValueError, match="the stream must have by_kernel=False"):
        model.update(batch)


def test_a_rate_that_is_too_high_stops_with_an_error():
    model = model_of("skip_gram", "negative_sampling")
    stream = words_stream("negative_sampling", learning_rate=1e30, epochs=20, row_rates="sum")
    with pytest.raises(FloatingPointError, match="loss is not finite.*learning rate"):
        in_stream(model, stream)


def test_a_stream_of_rows_that_the_model_does_not_have():
    """Else a backend passes the index over, or writes elsewhere in memory."""
    stream = words_stream("negative_sampling")
    for model, message in (
        (FastText(SIZE - 1, SUBWORDS.buckets + 1, 4), f"`vocabulary_size` of at least {SIZE}"),
        (FastText(SIZE, 3, 4), "`buckets` of at least .* Received: buckets=3"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(stream, steps_per_epoch=1, verbose=0)
    stream.features = None
    with pytest.raises(ValueError, match="must have `features`"):
        FastText(SIZE, 50, 4).fit(stream, steps_per_epoch=1, verbose=0)
