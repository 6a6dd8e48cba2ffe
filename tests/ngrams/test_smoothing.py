"""Smoothings against values of KenLM, values by hand, and the sum over the vocabulary."""

import warnings

import numpy as np
import pytest

from kctx.ngrams import NGramLM, count_ngrams
from kctx.ngrams.estimators import good_turing
from kctx.ngrams.jelinek_mercer import bengio_buckets, doubling_buckets, nested_weights
from tests.ngrams.texts import CATS, FIVE_LINES, plain_counts, random_lines

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:The Kneser-Ney discounts"),
    pytest.mark.filterwarnings("ignore:The Good-Turing discounts"),
]


def train(lines, order, smoothing="kneser_ney", **options):
    return NGramLM.train(lines=lines, order=order, smoothing=smoothing, progress=False, **options)


def log10_of(model, ngram):
    """What a table lists for an n-gram, and its back-off weight."""
    ids = model.ids(ngram.split())
    place = int(model.tables.chain([ids[k : k + 1] for k in range(len(ids) - 1, -1, -1)])[-1][0])
    assert place >= 0, ngram
    order = len(ids)
    backoff = model.tables.backoffs[order - 1][place] if order < model.order else 0.0
    return float(model.tables.probabilities[order - 1][place]), float(backoff)


KENLM_BIGRAM = {
    "<unk>": (-0.89085555, 0.0),
    "<s>": (0.0, -0.09691001),
    "</s>": (-0.89085555, 0.0),
    "a": (-0.69896996, -0.23408322),
    "b": (-0.69896996, -0.30103),
    "e": (-0.46488678, -0.20412),
    "<s> a": (-0.79587996, 0.0),
    "<s> b": (-0.5850266, 0.0),
    "<s> e": (-0.42679673, 0.0),
    "a e": (-0.43572855, 0.0),
    "a </s>": (-0.48811665, 0.0),
    "b </s>": (-0.24850096, 0.0),
    "e </s>": (-0.34164786, 0.0),
}


def test_bigrams_of_kenlm_with_discounts_of_the_text():
    model = train(FIVE_LINES, 2)
    assert model.sizes == [6, 7]
    for ngram, expected in KENLM_BIGRAM.items():
        assert log10_of(model, ngram) == pytest.approx(expected, abs=1e-6), ngram
    np.testing.assert_allclose(model.details["discounts"], [[0.5, 0.5, 3], [0.5, 1.25, 3]])
    scores = model.score(["a e", "a z b"])
    np.testing.assert_allclose(scores, [-1.5732564, -2.8682897], atol=1e-6)
    _, z, b, _ = model.score(["a z b"], per_token=True)[0]
    assert z == pytest.approx(-0.23408322 - 0.89085555, abs=1e-6)
    assert b == pytest.approx(-0.69896996, abs=1e-6)
    found = model.perplexity(lines=["a e", "a z b"])
    assert found.including_oov == pytest.approx(4.310290917, rel=1e-6)
    assert found.excluding_oov == pytest.approx(3.570819458, rel=1e-6)
    assert (found.tokens, found.oov, found.words, found.sentences) == (7, 1, 5, 2)


KENLM_TRIGRAM = {
    "<unk>": -1.2278343,
    "the": -1.2278343,
    "cat": -1.0919555,
    "on": -1.0547075,
    "</s>": -0.83524495,
    "<s> the": -0.28094107,
    "the cat": -0.90730643,
    "sat on": -0.42318028,
    "cat sat": -0.707177,
    "<s> the cat": -0.50599,
    "the cat sat": -0.458261,
    "on the mat": -0.5034748,
    "sat on the": -0.11645512,
}


def test_trigrams_of_kenlm_with_the_fallback():
    model = train(CATS, 3)
    assert model.sizes == [13, 23, 23]
    discounts = [[1 / 3, 1.5, 3], [0.5, 1, 1.5], [0.5, 1, 1.5]]
    np.testing.assert_allclose(model.details["discounts"], discounts)
    for ngram, expected in KENLM_TRIGRAM.items():
        assert log10_of(model, ngram)[0] == pytest.approx(expected, abs=1e-6), ngram
    for word in model.vocabulary:
        expected = {"<s>": -0.39794, "</s>": 0.0, "<unk>": 0.0}.get(word, -0.30103)
        assert log10_of(model, word)[1] == pytest.approx(expected, abs=1e-6), word
    for first, second in plain_counts(CATS, 2)[1]:
        expected = 0.0 if second == "</s>" else -0.30103
        assert log10_of(model, f"{first} {second}")[1] == pytest.approx(expected, abs=1e-6)
    scores = model.score(["the cat sat", "a log ran"])
    np.testing.assert_allclose(scores, [-2.166492, -4.899097], atol=1e-6)
    found = model.perplexity(lines=["the cat sat", "a log ran"])
    assert found.including_oov == pytest.approx(7.641851938, rel=1e-6)
    assert found.excluding_oov == pytest.approx(6.179604098, rel=1e-6)
    assert (found.tokens, found.oov) == (8, 1)


@pytest.mark.parametrize(
    ("smoothing", "options", "expected"),
    [
        ("mle", {}, 2 / 7),
        ("add_k", {"k": 1}, 3 / 19),
        ("add_k", {"k": 0.1}, 2.1 / 8.2),
        ("jelinek_mercer", {"weights": (0.6, 0.3, 0.1)}, 0.6 * 2 / 7 + 0.3 * 3 / 30 + 0.1 / 12),
    ],
)
def test_simple_estimates(smoothing, options, expected):
    model = train(CATS, 2, smoothing, **options)
    assert len(model.vocabulary) - 1 == 12
    assert model.probability("cat", ["the"]) == pytest.approx(expected, rel=1e-6)


def test_add_one_score():
    model = train(CATS, 2, "add_k")
    assert model.score(["the cat sat"])[0] == pytest.approx(-3.083233790, abs=1e-6)
    found = model.perplexity(lines=["the cat sat"])
    assert found.including_oov == pytest.approx(5.899408200, rel=1e-6)
    assert model.probability("cat", ["zebra"]) == pytest.approx(1 / 12, rel=1e-6)


TEXT = random_lines(5, 400)
SMOOTHINGS = [
    ("mle", {}),
    ("mle", {"prune": [0, 1, 2]}),
    ("add_k", {"k": 0.5}),
    ("add_k", {"k": 2, "prune": [0, 0, 1]}),
    ("jelinek_mercer", {"held_out": random_lines(6, 60, words=14)}),
    ("jelinek_mercer", {"held_out": random_lines(6, 60), "prune": 1}),
    ("jelinek_mercer", {"held_out": random_lines(6, 60, words=14), "buckets": "joint"}),
    ("jelinek_mercer", {"held_out": random_lines(6, 60), "buckets": "joint", "prune": [0, 1]}),
    ("katz", {}),
    ("katz", {"katz_limit": 0}),
    ("katz", {"katz_limit": 2, "prune": [0, 0, 1]}),
    ("kneser_ney", {}),
    ("kneser_ney", {"prune": [0, 1, 2]}),
    ("kneser_ney", {"prune": 1}),
    ("kneser_ney", {"interpolate_unigrams": False}),
]


@pytest.mark.parametrize("clipped", [False, True])
@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize(("smoothing", "options"), SMOOTHINGS)
def test_sums_to_one(smoothing, options, order, clipped):
    """Over everything but `<s>`, after contexts that occur and contexts that do not."""
    options = dict(options)
    if isinstance(options.get("prune"), list):
        options["prune"] = options["prune"][:order]
    vocabulary = ["w0", "w2", "w1", "w7", "never"] if clipped else None
    model = train(TEXT, order, smoothing, vocabulary=vocabulary, **options)
    size = len(model.vocabulary)
    contexts = np.random.default_rng(0).integers(-1, size, (150, 4))
    seen = [["<s>", *line.split()][:4] for line in TEXT if len(line.split()) > 2][:150]
    contexts = np.concatenate([contexts, [model.ids(words) for words in seen]])
    p = model.distribution(contexts)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-6)
    assert (p >= 0).all() and not p[:, 1].any()
    logs = model.log_probabilities(
        np.repeat(contexts, size, axis=0), np.tile(np.arange(size), len(contexts))
    )
    np.testing.assert_allclose(10.0**logs, p.ravel(), rtol=1e-6, atol=1e-12)


def test_padding_pads_the_unigrams():
    plain, padded = train(CATS, 1), train(CATS, 1, vocabulary_pad=120)
    # Ten times the types share what was discounted.
    ratio = padded.probability("<unk>") / plain.probability("<unk>")
    assert ratio == pytest.approx(0.1, rel=1e-5)


def test_katz_by_hand():
    lines = ["a"] * 3 + ["b"] * 2 + ["c"] * 2 + ["d", "e", "f", "g"]
    model = train(lines, 1, "katz", katz_limit=2)
    # Counts of counts 4, 2, 1: r* = 2 * 2/4 = 1 and 3 * 1/2 = 1.5; A = 3 * 1/4.
    d1, d2 = (1.0 - 0.75) / 0.25, (0.75 - 0.75) / 0.25
    assert d1 == 1 and d2 == 0  # out of (0, 1]: nothing is discounted
    with pytest.warns(UserWarning, match="Good-Turing discounts of order 1.*count 2 came out"):
        train(lines, 1, "katz", katz_limit=2)
    assert model.probability("a") == pytest.approx(3 / 23)  # 22 tokens, one for `<unk>`
    assert model.probability("<unk>") == pytest.approx(1 / 23)

    lines = ["a"] * 9 + ["b"] * 2 + ["c"] * 2 + ["d", "e", "f", "g", "h", "i"]
    # n_1 = 6, n_2 = 2, limit 1: d_1 = (2 * 2/6 - 2 * 2/6) / .. would be 0 at any text, so limit 2,
    # n_3 = 0: A = 0, d_1 = 2 * 2/6 = 2/3, d_2 = 0: refused as well.
    assert good_turing(np.array([9, 2, 2, 1, 1, 1, 1, 1, 1]), 2, 1).tolist() == [1] * 4
    found = good_turing(np.array([1] * 10 + [2] * 4 + [3] * 2 + [4]), 2, 1)
    a = 3 * 2 / 10
    d1, d2 = (2 * 4 / 10 - a) / (1 - a), (3 * 2 / 4 / 2 - a) / (1 - a)
    np.testing.assert_allclose(found, [1, d1, d2, 1])


def test_katz_backs_off_by_the_formula():
    draw = np.random.default_rng(7).zipf(1.4, 4000).clip(max=200)
    lines = [" ".join(f"w{n}" for n in row) for row in draw.reshape(-1, 8)]
    model = train(lines, 2, "katz", katz_limit=[0, 3])
    unigrams, bigrams = plain_counts(lines, 2)
    ratios = good_turing(np.array(list(bigrams.values())), 3, 2)
    assert (ratios[1:4] < 1).all()
    heads = {word for word, _ in bigrams}
    totals = {h: sum(c for (a, _), c in bigrams.items() if a == h) for h in heads}
    tokens = sum(unigrams.values())

    def unigram(word):  # none is discounted: `<unk>` gets one of tokens + 1
        return unigrams.get((word,), 1) / (tokens + 1)

    for head in ["<s>", "w1", "w3", "w30"]:
        seen = {w: c for (a, w), c in bigrams.items() if a == head}
        p = {w: ratios[min(c, 4)] * c / totals[head] for w, c in seen.items()}
        alpha = (1 - sum(p.values())) / (1 - sum(map(unigram, seen)))
        for word in ["w1", "w5", "w40", "</s>", "<unk>"]:
            expected = p.get(word, alpha * unigram(word))
            assert model.probability(word, [head]) == pytest.approx(expected, rel=1e-5)


def test_estimated_weights_raise_the_likelihood():
    held_out = random_lines(9, 100, words=14)
    for buckets in ("nested", "joint"):
        found = [
            train(TEXT, 3, "jelinek_mercer", held_out=held_out, buckets=buckets, iterations=n)
            .perplexity(lines=held_out)
            .including_oov
            for n in (1, 2, 5, 30)
        ]
        assert found == sorted(found, reverse=True) and found[0] > found[-1] * 1.001
    fixed = train(TEXT, 3, "jelinek_mercer", weights=(0.25, 0.25, 0.25, 0.25))
    assert fixed.perplexity(lines=held_out).including_oov > found[-1]


def test_joint_mixture_by_hand():
    model = train(CATS, 3, "jelinek_mercer", held_out=CATS, buckets="joint", iterations=5)
    counts = count_ngrams(lines=CATS, order=3, progress=False)
    weights = np.array(model.details["weights"])
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    bucket = int(np.ceil(-np.log((1 + counts.count("on", "the")) / 30)))
    expected = weights[bucket] @ [1 / 12, 7 / 30 * 0 + 3 / 30, 2 / 7, 0 / 2]
    # c(cat) = 3 of 30, c(the cat) = 2 of 7, "on the cat" never.
    assert model.probability("cat", ["on", "the"]) == pytest.approx(expected, rel=1e-5)
    # An unknown context counts as the shorter one, in the bucket of frequency 0.
    bucket = min(int(np.ceil(-np.log(1 / 30))), len(weights) - 1)
    expected = weights[bucket] @ [1 / 12, 3 / 30, 2 / 7, 2 / 7]
    assert model.probability("cat", ["zebra", "the"]) == pytest.approx(expected, rel=1e-5)


def test_buckets():
    assert doubling_buckets([0, 1, 2, 3, 4, 7, 8, 1e9]).tolist() == [0, 1, 2, 2, 3, 3, 4, 20]
    assert bengio_buckets([0, 1, 9, 999], 1000).tolist() == [7, 7, 5, 0]
    assert nested_weights([0.6, 0.3, 0.1]) == pytest.approx([0.75, 0.6])


def test_the_fallback_warns_or_raises():
    with pytest.warns(UserWarning, match="discounts of order 2 cannot be estimated: no 2-gram"):
        model = train(CATS, 2, discount_fallback=(0.2, 0.4, 0.6))
    assert model.details["discounts"][1] == [0.2, 0.4, 0.6]
    with pytest.raises(ValueError, match="discounts of order 2 cannot be estimated.*Give `disc"):
        train(CATS, 2, discount_fallback=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(FIVE_LINES, 2, discount_fallback=None)


def test_no_mass_for_unseen_words_is_minus_infinity():
    model = train(CATS, 2, "mle")
    assert model.score(["the the"])[0] == -np.inf
    found = model.perplexity(lines=["the the", "the cat zebra"])
    assert found.including_oov == np.inf and found.oov == 1
    # "the the", "cat zebra" is unknown, `<unk> </s>` backs off to `</s>`.
    assert found.impossible >= 1 and np.isfinite(found.srilm_ppl)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": "witten_bell"}, "`smoothing` must be one of"),
        ({"smoothing": "add_k", "k": 0}, "`k` must be a number above 0. Received: k=0"),
        ({"smoothing": "add_k", "k": float("nan")}, "`k` must be a number above 0"),
        ({"prune": [1, 0]}, "thresholds that do not fall.*prune=\\[1, 0\\]"),
        ({"prune": [0, 0, 0]}, "at most 2 thresholds"),
        ({"prune": -1}, "`prune` must be an integer of at least 0"),
        ({"discount_fallback": (0.5, 1)}, "`discount_fallback` must be three discounts"),
        ({"discount_fallback": (1.5, 1, 1)}, "`discount_fallback` must be three discounts"),
        ({"discount_fallback": "abc"}, "`discount_fallback` must be three discounts"),
        ({"discount_fallback": 5}, "`discount_fallback` must be three discounts"),
        ({"prune": float("nan")}, "`prune` must be an integer of at least 0"),
        (
            {"smoothing": "jelinek_mercer", "weights": (float("nan"), 0.3, 0.2)},
            "`weights` must be 3 numbers",
        ),
        ({"vocabulary_pad": 9, "interpolate_unigrams": False}, "needs `interpolate_unigrams`"),
        ({"smoothing": "katz", "katz_limit": [1, 2, 3]}, "one for each of 2 orders"),
        ({"smoothing": "jelinek_mercer"}, "either fixed `weights`, or text"),
        ({"smoothing": "jelinek_mercer", "weights": (0.5, 0.5)}, "`weights` must be 3 numbers"),
        ({"smoothing": "jelinek_mercer", "weights": (2, -1, 0)}, "none below 0, that sum to 1"),
        ({"smoothing": "jelinek_mercer", "held_out": []}, "held-out text must hold"),
        ({"smoothing": "jelinek_mercer", "held_out": CATS, "buckets": "x"}, '"nested" or "joint"'),
        ({"smoothing": "jelinek_mercer", "held_out": CATS, "iterations": 0}, "`iterations`"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        train(CATS, 2, **options)


@pytest.mark.parametrize(
    "smoothing", ["kneser_ney", "katz", "jelinek_mercer", "joint", "add_k", "mle"]
)
@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.filterwarnings("ignore:The (Kneser-Ney|Good-Turing) discounts")
def test_text_shorter_than_the_order(smoothing, order):
    """One word: of the longer n-grams there are none."""
    options = {}
    if smoothing in ("jelinek_mercer", "joint"):
        options = {"held_out": ["a"], "buckets": "joint" if smoothing == "joint" else "nested"}
        smoothing = "jelinek_mercer"
    model = train(["a"], order, smoothing, **options)
    start = model.ids(["<s>"])[None]
    np.testing.assert_allclose(model.distribution(start).sum(), 1, rtol=1e-6)
    assert -2 < model.score(["a"])[0] < 0 or smoothing == "mle"
