"""Word2Vec: its steps, what it learns, and that only rows of a batch are touched."""

import inspect
import textwrap

import keras
import numpy as np
import pytest

import kctx
from kctx import training
from kctx.data import (
    HierarchicalSoftmax,
    IdCorpus,
    NegativeSampling,
    WindowStream,
    WordVocabulary,
)
from kctx.models import Word2Vec
from kctx.models.word2vec_in_order import Word2VecInOrder
from kctx.vectors.huffman import huffman_tree
from tests.layers.window_loops import by_loops, rows_of
from tests.models.runs import DieAt, Died

VARIANTS = [
    ("skip_gram", "negative_sampling"),
    ("skip_gram", "hierarchical_softmax"),
    ("cbow", "negative_sampling"),
    ("cbow", "hierarchical_softmax"),
]
every_variant = pytest.mark.parametrize(("architecture", "objective"), VARIANTS)
# Where the four differ in nothing that is looked at; compiling takes most of the time.
two_variants = pytest.mark.parametrize(("architecture", "objective"), [VARIANTS[0], VARIANTS[3]])


def array(x):
    return keras.ops.convert_to_numpy(x)


def tables(model):
    return [array(model.input_table), array(model.output_table)]


def toy_lines(number=240, seed=0):
    """Sentences about animals and about cars, with words that both share."""
    rng = np.random.default_rng(seed)
    topics = ["cat dog mouse purrs barks fur".split(), "car truck wheel drives brakes fuel".split()]
    lines = []
    for _ in range(number):
        words = [*topics[rng.integers(2)], "the"]
        lines.append(" ".join(rng.choice(words, rng.integers(3, 9))))
    return lines


LINES = toy_lines()
VOCABULARY = WordVocabulary.train(lines=LINES, min_count=1)
CORPUS = IdCorpus.build(VOCABULARY, lines=LINES)
SIZE = len(VOCABULARY)


def stream_of(objective, corpus=CORPUS, vocabulary=VOCABULARY, **options):
    if objective == "negative_sampling":
        targets = NegativeSampling(vocabulary.counts, shared=4)
    else:
        targets = HierarchicalSoftmax(vocabulary.counts)
    small = {"sample": 0, "window": 2, "block_words": 4, "step_blocks": 8, "steps": 2, "epochs": 1}
    return WindowStream(corpus, vocabulary.counts, targets, **{**small, **options})


def model_of(architecture, objective, size=SIZE, dim=8, **options):
    """The same values on each backend."""
    model = Word2Vec(size, dim, architecture, objective, **options)
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=w.shape, scale=0.3) for w in model.trainable_weights])
    return model


def in_stream(model, stream, **options):
    """Trains to the end; returns the loss of each epoch."""
    history = training.fit_steps(
        model, lambda: stream, stream.total_steps, stream.steps_per_epoch, verbose=0, **options
    )
    return history.history["loss"]


class Exact(Word2VecInOrder):
    """The plain path with an exact sigmoid and given negatives."""

    negatives = ()

    def _sigmoid(self, score):
        return 1 / (1 + np.exp(-np.float64(score)))

    def _targets(self, centre):
        return [(centre, 1), *((word, 0) for word in self.negatives)]


@pytest.mark.parametrize("context", [[3], [3, 1]])
@every_variant
def test_one_centre_is_one_update_of_the_original(architecture, objective, context):
    """Where no row occurs twice, the values before a step are those that the original reads."""
    if architecture == "skip_gram" and len(context) > 1:
        return  # the original updates between the two
    counts, centre, negatives = [9, 8, 7, 5, 4, 2], 2, [0, 4, 5]
    tree = huffman_tree(counts) if objective == "hierarchical_softmax" else None
    model = model_of(architecture, objective, size=6, dim=4, num_negatives=3)
    plain = Exact(counts, 4, architecture, tree, learning_rate=0.5)
    plain.negatives = negatives
    plain.input_table, outputs = tables(model)
    if tree is None:
        plain.output_table, targets = outputs, NegativeSampling(counts, shared=3)
    else:
        plain._targets = lambda centre: []
        plain.node_table, targets = outputs, HierarchicalSoftmax(counts)
    # The words of the context stand on both sides of the centre.
    words = np.int32([[context[0], centre, context[-1]]])
    arrays, rows = targets(np.int32([[centre]]), np.ones((1, 1), bool), np.random.default_rng(0))
    if tree is None:
        arrays["negatives"] = np.int32([negatives])
        rows = np.int32([[centre, *negatives]])
    batch = {
        "words": words,
        "first": np.int32([[0]]),
        "last": np.int32([[len(context)]]),
        "input_rates": np.full((1, 3), 0.5, "float32"),
        "output_rates": np.full(rows.shape, 0.5, "float32"),
        **arrays,
    }
    model.update({name: keras.ops.convert_to_tensor(value[None]) for name, value in batch.items()})
    if architecture == "skip_gram":
        plain.input_table[context[0]] += plain._predict(centre, plain.input_table[context[0]])
    else:
        error = plain._predict(centre, plain.input_table[context].mean(axis=0))
        plain.input_table[context] += error
    made = tables(model)
    np.testing.assert_allclose(made[0], plain.input_table, atol=1e-6)
    expected = plain.output_table if tree is None else plain.node_table
    np.testing.assert_allclose(made[1], expected, atol=1e-6)


@every_variant
def test_training_equals_loops_over_pairs(architecture, objective):
    """So the three backends learn the same: tables after some batches, and the mean loss."""
    lines = LINES[:40]
    stream = stream_of(objective, IdCorpus.build(VOCABULARY, lines=lines), learning_rate=0.2)
    model = model_of(architecture, objective)
    inputs, outputs = (table.astype("float64") for table in tables(model))
    losses = numbers = 0
    looked_up = stream_of(
        objective, IdCorpus.build(VOCABULARY, lines=lines), learning_rate=0.2, by_kernel=False
    )
    for (batch,) in looked_up.batches():
        for place in range(2):
            step = {name: value[place] for name, value in batch.items()}
            by_inputs, by_outputs, loss, number = by_loops(
                step, inputs[step["words"]], outputs[rows_of(step)], architecture, 5, True, False
            )
            np.add.at(outputs, rows_of(step), step["output_rates"][..., None] * by_outputs)
            np.add.at(inputs, step["words"], step["input_rates"][..., None] * by_inputs)
            losses, numbers = losses + loss[0], numbers + number[0]
    (loss,) = in_stream(model, stream)
    made = tables(model)
    np.testing.assert_allclose(made[0], inputs, atol=2e-5)
    np.testing.assert_allclose(made[1], outputs, atol=2e-5)
    assert loss == pytest.approx(losses / numbers, rel=1e-4)


@two_variants
def test_learns(architecture, objective):
    """The loss falls, and words of one topic become more similar than those of the two."""
    model = Word2Vec(SIZE, 8, architecture, objective)
    stream = stream_of(objective, epochs=6, learning_rate=0.1)
    losses = in_stream(model, stream)
    assert losses[-1] < 0.95 * losses[0], losses
    table = array(model.input_table)
    units = table / np.linalg.norm(table, axis=1, keepdims=True)
    of = {word: units[i] for i, word in enumerate(VOCABULARY.words)}
    animals, cars = ("cat", "dog", "purrs"), ("car", "truck", "drives")
    within = [of[a] @ of[b] for words in (animals, cars) for a in words for b in words if a != b]
    between = [of[a] @ of[b] for a in animals for b in cars]
    assert min(within) > max(between) + 0.1, (min(within), max(between))


@pytest.mark.once
@pytest.mark.parametrize(("architecture", "rate"), [("skip_gram", 0.05), ("cbow", 0.1)])
def test_fast_and_plain_path_find_the_same_neighbours(architecture, rate):
    """Shared negatives and values before the step change the numbers, not what is learnt."""
    counts = np.r_[len(LINES), VOCABULARY.counts]  # with the ends of lines
    plain = Word2VecInOrder(
        counts, 8, architecture, None, 5, window=2, sample=0, learning_rate=rate, epochs=5
    )
    plain.train([[VOCABULARY.words.index(word) + 1 for word in line.split()] for line in LINES])
    model = Word2Vec(SIZE, 8, architecture)
    in_stream(
        model,
        stream_of(
            "negative_sampling",
            learning_rate=rate,
            row_rates="sum",
            epochs=5,
            step_blocks=1,
            steps=4,
        ),
    )

    def cosines(table):
        units = table / np.linalg.norm(table, axis=1, keepdims=True)
        return (units @ units.T)[np.triu_indices(SIZE, 1)]

    agree = np.corrcoef(cosines(array(model.input_table)), cosines(plain.input_table[1:]))[0, 1]
    assert agree > 0.9, agree


def test_numbers_of_parameters():
    for objective, rows in (("negative_sampling", 2 * 10), ("hierarchical_softmax", 2 * 10 - 1)):
        assert Word2Vec(10, 4, objective=objective).count_params() == rows * 4


def test_size_of_the_published_model():
    """3 million words of 300 numbers: 900 million in each table. The shapes alone are made."""
    shapes = {}

    class Shapes(Word2Vec):
        def add_weight(self, shape, name, **options):
            shapes[name] = shape
            return super().add_weight(shape=(1, 1), name=name, **options)

    Shapes(3_000_000, 300)
    assert {name: np.prod(shape) for name, shape in shapes.items()} == {
        "input_table": 900_000_000,
        "output_table": 900_000_000,
    }


def test_initial_values():
    model = Word2Vec(50, 20, seed=3)
    inputs, outputs = tables(model)
    assert np.abs(inputs).max() <= 0.5 / 20 and inputs.std() == pytest.approx(1 / 20 / 12**0.5, 0.1)
    assert not outputs.any()
    np.testing.assert_array_equal(tables(Word2Vec(50, 20, seed=3))[0], inputs)
    assert (tables(Word2Vec(50, 20, seed=4))[0] != inputs).any()


@two_variants
def test_other_rows_stay_bit_for_bit(architecture, objective):
    """The vocabulary is larger than the corpus: words and nodes that do not occur stay."""
    counts = np.r_[VOCABULARY.counts, np.ones(2000, np.int64)]
    words = [*VOCABULARY.words, *map(str, range(2000))]
    vocabulary = WordVocabulary(words, counts)
    stream, looked_up = (
        stream_of(objective, vocabulary=vocabulary, learning_rate=0.5, by_kernel=whole)
        for whole in (None, False)
    )
    model = model_of(architecture, objective, size=len(counts))
    before = tables(model)
    touched = [set(), set()]
    for (batch,) in looked_up.batches():
        touched[0] |= set(batch["words"].ravel().tolist())
        for place in range(2):
            step = {name: value[place] for name, value in batch.items()}
            touched[1] |= set(rows_of(step).ravel().tolist())
    in_stream(model, stream)
    for old, new, rows in zip(before, tables(model), touched, strict=True):
        others = np.setdiff1d(np.arange(len(old)), list(rows))
        assert len(others) > 20
        assert new[others].tobytes() == old[others].tobytes()
        assert (new[list(rows)] != old[list(rows)]).any()


def largest_made(model, batch):
    """How many numbers the largest array holds that a step makes, the tables themselves apart."""
    backend = keras.config.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        signature = {name: tf.TensorSpec(x.shape, x.dtype) for name, x in batch.items()}
        graph = tf.function(model._step).get_concrete_function(signature).graph
        sizes = [x.shape.num_elements() or 0 for op in graph.get_operations() for x in op.outputs]
        return max(sizes)
    if backend == "jax":
        import jax

        groups = (
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        )
        state = tuple([jax.ShapeDtypeStruct(v.shape, v.dtype) for v in group] for group in groups)
        step = jax.jit(lambda s, b: model.train_step(s, b), donate_argnums=0)
        shapes = {name: jax.ShapeDtypeStruct(x.shape, x.dtype) for name, x in batch.items()}
        sizes = step.lower(state, shapes).compile().memory_analysis()
        # All outputs of the size of a table lie in the buffers that were given away.
        assert sizes.output_size_in_bytes - sizes.alias_size_in_bytes < 1000
        return sizes.temp_size_in_bytes // 4
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    kept = {v.value.untyped_storage().data_ptr() for v in model.trainable_variables}
    made = [0]

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor) and result.untyped_storage().data_ptr() not in kept:
                made.append(result.numel())
            return result

    batch = {name: torch.as_tensor(x) for name, x in batch.items()}
    kept |= {x.untyped_storage().data_ptr() for x in batch.values()}
    with Watch(), torch.no_grad():
        model._step(batch)
    return max(made)


@pytest.mark.parametrize(("architecture", "objective"), VARIANTS[:2])
def test_nothing_of_the_size_of_a_table_is_made(architecture, objective):
    counts = np.r_[VOCABULARY.counts, np.ones(100_000, np.int64)]
    words = [*VOCABULARY.words, *map(str, range(100_000))]
    stream = stream_of(objective, vocabulary=WordVocabulary(words, counts), by_kernel=False)
    model = Word2Vec(len(counts), 8, architecture, objective)
    model.kernel = None  # which makes no tensors at all
    (batch,) = next(stream.batches())
    assert 100 < largest_made(model, batch) < 100_000 * 8 / 2


@two_variants
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(architecture, objective, policy):
    options = {"learning_rate": 0.2}
    reference = model_of(architecture, objective)
    expected = in_stream(reference, stream_of(objective, **options))
    model = model_of(architecture, objective, dtype=policy)
    losses = in_stream(model, stream_of(objective, **options))
    np.testing.assert_allclose(losses, expected, rtol=0.02)
    for made, wanted in zip(tables(model), tables(reference), strict=True):
        assert made.dtype == np.float32 and np.isfinite(made).all()
        assert np.abs(made - wanted).mean() < 0.05 * np.abs(wanted).mean()


def test_saves_and_loads(tmp_path):
    stream = stream_of("negative_sampling")
    model = model_of("cbow", "negative_sampling", num_negatives=3, cbow_corrected=True)
    in_stream(model, stream)
    model.save_weights(tmp_path / "model.weights.h5")
    other = Word2Vec(SIZE, 8)
    other.load_weights(tmp_path / "model.weights.h5")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    for made in (other, loaded):
        for one, two in zip(tables(made), tables(model), strict=True):
            np.testing.assert_array_equal(one, two)
    # And trains on.
    assert in_stream(loaded, stream_of("negative_sampling")) == in_stream(
        model, stream_of("negative_sampling")
    )


def test_the_example_of_the_docstring(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = "\n".join(LINES).replace("cat", "king")
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    example = inspect.getdoc(Word2Vec).split("Example, from a text to vectors:\n")[1]
    names = {"kctx": kctx}
    exec(textwrap.dedent(example), names)
    vectors, model = names["vectors"], names["model"]
    assert names["stream"].steps_per_epoch * 5 == names["stream"].total_steps
    loaded = kctx.Vectors.load(tmp_path / "vectors")
    np.testing.assert_array_equal(loaded.get(vectors.words), array(model.input_table))
    assert vectors.counts.tolist() == names["vocabulary"].counts.tolist()
    # A copy: training goes on without it.
    before = vectors["king"].copy()
    model.input_table.assign(model.input_table + 1)
    np.testing.assert_array_equal(vectors["king"], before)
    with pytest.raises(ValueError, match=f"`vocabulary` must hold {SIZE} words. Received: 1"):
        model.vectors(WordVocabulary(["a"], [1]))


def test_a_resumed_run_has_the_same_losses(tmp_path):
    objective = "hierarchical_softmax"  # whose batches are of several shapes

    def run(folder, resume=False, die_at=None):
        model = model_of("skip_gram", objective)
        stream = stream_of(objective, epochs=2, learning_rate=0.2)
        checkpoints = training.Checkpoints(folder / "checkpoints", every=4, stream=stream)
        log = training.CSVLog(folder / "log.csv", every=1)
        callbacks = [log] + ([DieAt(die_at)] if die_at else [])
        training.fit_steps(
            model,
            lambda: stream,
            stream.total_steps,
            every=4,
            callbacks=callbacks,
            checkpoints=checkpoints,
            resume=resume,
            verbose=0,
        )
        return tables(model)

    expected = run(tmp_path / "whole")
    with pytest.raises(Died):
        run(tmp_path / "broken", die_at=11)
    made = run(tmp_path / "broken", resume=True)
    one, two = ((tmp_path / name / "log.csv").read_text() for name in ("whole", "broken"))
    assert one == two and one.count("\n") > 20
    for a, b in zip(made, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary_size": 1}, "`vocabulary_size` must be an integer of at least 2. Received"),
        ({"dim": 0}, "`dim` must be an integer of at least 1. Received: dim=0"),
        ({"num_negatives": 0}, "`num_negatives` must be"),
        ({"architecture": "bag"}, "`architecture` must be one of .* architecture='bag'"),
        ({"objective": "softmax"}, "`objective` must be one of .* objective='softmax'"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        Word2Vec(**{"vocabulary_size": 10, **options})


@every_variant
def test_targets_of_another_objective(architecture, objective):
    other = next(name for _, name in VARIANTS if name != objective)
    with pytest.raises(ValueError, match=f"targets of the stream .* objective='{objective}'"):
        (batch,) = next(stream_of(other).batches())
        Word2Vec(SIZE, 8, architecture, objective).update(batch)


@pytest.mark.parametrize("objective", ["negative_sampling", "hierarchical_softmax"])
def test_a_stream_of_rows_that_the_model_does_not_have(objective):
    """Else a backend passes the index over, or writes elsewhere in memory."""
    vocabulary = WordVocabulary.train(lines=["a b c d"], min_count=1)
    kind = NegativeSampling if objective == "negative_sampling" else HierarchicalSoftmax
    corpus = IdCorpus.build(vocabulary, lines=["a b c d"])
    stream = WindowStream(corpus, vocabulary.counts, kind(vocabulary.counts), sample=0)
    with pytest.raises(ValueError, match="`vocabulary_size` of at least 4. .*vocabulary_size=3"):
        Word2Vec(3, 4, objective=objective).fit(stream, steps_per_epoch=1, verbose=0)
