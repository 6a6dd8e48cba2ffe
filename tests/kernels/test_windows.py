"""The kernels of Word2Vec and fastText against the products that need Keras alone."""

import keras
import numpy as np
import pytest

from kctx import kernels
from kctx.data import HierarchicalSoftmax, IdCorpus, NegativeSampling, WindowStream, WordVocabulary
from kctx.data.word_features import WordFeatures
from kctx.models import FastText, Word2Vec
from kctx.vectors import Subwords
from kctx.vectors.subword_table import SubwordRows

pytestmark = pytest.mark.skipif(
    not kernels.usable(), reason="kernels are for torch on a CPU, with Numba installed"
)
VARIANTS = pytest.mark.parametrize("objective", ["negative_sampling", "hierarchical_softmax"])
ARCHITECTURES = pytest.mark.parametrize("architecture", ["skip_gram", "cbow"])


def text(seed=0, words=60, lines=300):
    rng = np.random.default_rng(seed)
    chance = 1 / np.arange(1, words + 1)
    chance /= chance.sum()
    return [
        " ".join(f"word{i}" for i in rng.choice(words, rng.integers(0, 25), p=chance))
        for _ in range(lines)
    ]


LINES = text()
VOCABULARY = WordVocabulary.train(lines=LINES, min_count=1)
CORPUS = IdCorpus.build(VOCABULARY, lines=LINES)
BUCKETS = 50


def features():
    rows = SubwordRows(VOCABULARY.words, Subwords(3, 4, BUCKETS))
    return WordFeatures(*rows.of_words(VOCABULARY.words, np.arange(len(VOCABULARY))))


def stream(objective, by_kernel, with_features=False, **options):
    counts = VOCABULARY.counts
    targets = {
        "negative_sampling": lambda: NegativeSampling(counts, shared=7),
        "hierarchical_softmax": lambda: HierarchicalSoftmax(counts),
    }[objective]()
    return WindowStream(
        CORPUS,
        counts,
        targets,
        features=features() if with_features else None,
        epochs=1,
        window=3,
        block_words=5,
        step_blocks=9,
        steps=3,
        by_kernel=by_kernel,
        **options,
    )


def trained(model, data, by_kernel):
    if not by_kernel:
        model.kernel = None
    history = model.fit(data, epochs=1, steps_per_epoch=data.steps_per_epoch, verbose=0)
    weights = [keras.ops.convert_to_numpy(x) for x in (model.input_table, model.output_table)]
    return history.history["loss"][0], *(weight.copy() for weight in weights)


def check_equal(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6)


@ARCHITECTURES
@VARIANTS
def test_word2vec_agrees_with_the_products(architecture, objective):
    runs = []
    for by_kernel in (True, False):
        # 17 wide: no multiple of what a vector register holds.
        model = Word2Vec(len(VOCABULARY), 17, architecture, objective)
        start = keras.ops.convert_to_numpy(model.input_table).copy()
        runs.append(trained(model, stream(objective, by_kernel), by_kernel))
        assert np.abs(runs[-1][1] - start).max() > 1e-3
    check_equal(*runs)


@pytest.mark.parametrize("options", [{"cbow_average": False}, {"cbow_corrected": True}])
@VARIANTS
def test_kinds_of_bags_agree_with_the_products(objective, options):
    check_equal(
        *(
            trained(
                Word2Vec(len(VOCABULARY), 8, "cbow", objective, **options),
                stream(objective, by_kernel, learning_rate=0.02),
                by_kernel,
            )
            for by_kernel in (True, False)
        )
    )


@VARIANTS
def test_a_centre_that_predicts_agrees_with_the_products(objective):
    check_equal(
        *(
            trained(
                Word2Vec(len(VOCABULARY), 17, objective=objective),
                stream(objective, by_kernel, predicted="context"),
                by_kernel,
            )
            for by_kernel in (True, False)
        )
    )


@ARCHITECTURES
@VARIANTS
def test_fasttext_agrees_with_the_products(architecture, objective):
    check_equal(
        *(
            trained(
                FastText(len(VOCABULARY), BUCKETS, 16, architecture, objective),
                stream(
                    *(objective, by_kernel),
                    with_features=True,
                    predicted="context" if architecture == "skip_gram" else "centres",
                ),
                by_kernel,
            )
            for by_kernel in (True, False)
        )
    )


@VARIANTS
@pytest.mark.parametrize("kind", [Word2Vec, FastText])
def test_results_do_not_depend_on_the_number_of_cores(kind, objective, monkeypatch):
    from kctx.kernels import bags, windows

    runs = []
    for cores in (1, 2, 5):
        for module in (bags, windows):
            monkeypatch.setattr(module, "num_cores", lambda cores=cores: cores)
        if kind is Word2Vec:
            model = Word2Vec(len(VOCABULARY), 12, objective=objective)
        else:
            model = FastText(len(VOCABULARY), BUCKETS, 12, objective=objective)
        data = stream(objective, True, with_features=kind is FastText)
        runs.append(trained(model, data, True))
    for other in runs[1:]:
        for a, b in zip(runs[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_sigmoid_is_right_to_float32():
    from kctx.kernels.rows import gradients_of_scores

    scores = np.concatenate([np.linspace(-40, 40, 4001), [-np.inf, np.inf]]).astype(np.float32)
    found, ones = scores.copy(), np.ones_like(scores)
    gradients_of_scores(found, ones, ones, len(found))
    exact = 1 - 1 / (1 + np.exp(-scores.astype(np.float64).clip(-700, 700)))
    assert np.abs(found - exact).max() < 4e-7
