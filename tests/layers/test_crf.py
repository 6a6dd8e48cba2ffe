"""The CRF against golden values and against the sum over all tag sequences."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import CRF, tag_probabilities, tag_transitions
from tests.gradients import gradient

TRANSITIONS = [[0.1, 0.2, -0.3], [0.4, -0.1, 0.0], [-0.2, 0.3, 0.5]]
START, END = [0.2, -0.1, 0.0], [0.1, 0.0, -0.2]
EMISSIONS = [[1, 0.5, -0.5], [0.2, 1.2, 0.3], [0, -0.4, 0.8]]


def golden_crf():
    crf = CRF(3)
    crf.build((None, None, 3))
    crf.set_weights([np.array(x, "float32") for x in (TRANSITIONS, START, END)])
    return crf


def random_crf(num_tags, allowed=None, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    crf = CRF(num_tags, allowed)
    crf.build((None, None, num_tags))
    crf.set_weights([scale * rng.normal(size=w.shape) for w in crf.get_weights()])
    return crf


def numpy_of(x):
    return ops.convert_to_numpy(x)


def path_scores(crf, emissions):
    """Every tag sequence of one row of emissions (W, C), and its score, in float64."""
    transitions, start, end = (x.astype("float64") for x in crf.get_weights())
    steps, num_tags = emissions.shape
    scores = {}
    for tags in itertools.product(range(num_tags), repeat=steps):
        score = start[tags[0]] + end[tags[-1]]
        score += sum(emissions[t, tag] for t, tag in enumerate(tags))
        score += sum(transitions[i, j] for i, j in itertools.pairwise(tags))
        scores[tags] = score
    return scores


def test_golden_values():
    crf = golden_crf()
    x = np.array([EMISSIONS, EMISSIONS], "float32")
    mask = np.array([[True, True, True], [True, True, False]])
    gold = np.array([[0, 1, 2], [0, 1, -1]], "int32")
    nll = -numpy_of(crf.log_likelihood(x, gold, mask))
    np.testing.assert_allclose(nll, [1.762089011759, 0.948565150771], rtol=0, atol=1e-6)
    tags, scores = crf.decode(x, mask)
    np.testing.assert_array_equal(numpy_of(tags), [[0, 1, 2], [0, 1, 0]])
    np.testing.assert_allclose(numpy_of(scores), [3.2, 2.6], rtol=0, atol=1e-6)
    assert keras.backend.standardize_dtype(tags.dtype) == "int32"
    np.testing.assert_allclose(
        numpy_of(crf(x, mask))[0, 1], [0.185202689, 0.589631396, 0.225165915], rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_equal_to_brute_force(scale):
    crf = random_crf(4, scale=scale)
    rng = np.random.default_rng(1)
    x = (scale * rng.normal(size=(6, 5, 4))).astype("float32")
    lengths = np.array([5, 4, 3, 2, 1, 0])
    mask = np.arange(5) < lengths[:, None]
    gold = np.where(mask, rng.integers(0, 4, (6, 5)), -1).astype("int32")
    likelihood = numpy_of(crf.log_likelihood(x, gold, mask))
    tags, best = (numpy_of(y) for y in crf.decode(x, mask))
    probabilities = numpy_of(crf(x, mask))
    assert likelihood[5] == best[5] == 0
    assert not probabilities[~mask].any() and not tags[~mask].any()
    for row, length in enumerate(lengths[:5]):
        scores = path_scores(crf, x[row, :length].astype("float64"))
        log_z = np.logaddexp.reduce(list(scores.values()))
        wanted = scores[tuple(gold[row, :length])] - log_z
        np.testing.assert_allclose(likelihood[row], wanted, rtol=1e-5, atol=1e-5)
        path = max(scores, key=scores.get)
        assert tuple(tags[row, :length]) == path
        np.testing.assert_allclose(best[row], scores[path], rtol=1e-5, atol=1e-5)
        for step in range(length):
            for tag in range(4):
                of_tag = [score for tags_, score in scores.items() if tags_[step] == tag]
                probability = np.exp(np.logaddexp.reduce(of_tag) - log_z)
                np.testing.assert_allclose(probabilities[row, step, tag], probability, atol=1e-4)


def test_what_stands_at_padding_does_not_matter():
    crf = random_crf(3)
    x = np.random.default_rng(2).normal(size=(2, 4, 3)).astype("float32")
    mask = np.array([[True] * 4, [True, True, False, False]])
    gold = np.array([[0, 1, 2, 0], [2, 1, 0, 0]], "int32")
    changed, other = x.copy(), gold.copy()
    changed[~mask], other[~mask] = np.nan, 77
    for one, two in zip(
        (crf.log_likelihood(x, gold, mask), *crf.decode(x, mask), crf(x, mask)),
        (crf.log_likelihood(changed, other, mask), *crf.decode(changed, mask), crf(changed, mask)),
        strict=True,
    ):
        np.testing.assert_array_equal(numpy_of(one), numpy_of(two))
    short = crf.log_likelihood(x[:, :2], gold[:, :2], mask[:, :2])
    np.testing.assert_allclose(numpy_of(short)[1], numpy_of(crf.log_likelihood(x, gold, mask))[1])


def test_without_mask_all_is_real():
    crf = random_crf(3)
    x = np.random.default_rng(2).normal(size=(2, 4, 3)).astype("float32")
    mask = np.ones((2, 4), bool)
    gold = np.zeros((2, 4), "int32")
    np.testing.assert_array_equal(
        numpy_of(crf.log_likelihood(x, gold)), numpy_of(crf.log_likelihood(x, gold, mask))
    )
    np.testing.assert_array_equal(numpy_of(crf.decode(x)[0]), numpy_of(crf.decode(x, mask)[0]))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_half_precision_emissions_are_summed_in_float32(policy):
    """200 steps of scores near 300 overflow float16 and would lose all digits of bfloat16."""
    crf = random_crf(3)
    keras.config.set_dtype_policy(policy)
    half = CRF(3)
    half.build((None, None, 3))
    half.set_weights(crf.get_weights())
    x = 300 + np.random.default_rng(3).normal(size=(2, 200, 3))
    x = ops.cast(ops.convert_to_tensor(x), policy.removeprefix("mixed_"))
    gold = np.zeros((2, 200), "int32")
    wanted = numpy_of(crf.log_likelihood(ops.cast(x, "float32"), gold))
    assert np.isfinite(wanted).all()
    np.testing.assert_array_equal(numpy_of(half.log_likelihood(x, gold)), wanted)
    for found in (half.log_likelihood(x, gold), half.decode(x)[1], half(x)):
        assert keras.backend.standardize_dtype(found.dtype) == "float32"


def legal(tags, allowed):
    path = [-1, *tags, -1]
    return all(allowed[i][j] for i, j in itertools.pairwise(path))


@pytest.mark.parametrize(
    ("scheme", "tags"),
    [
        ("BIO", ["O", "B-X", "I-X", "B-Y", "I-Y"]),
        ("BIOES", ["O", "B-X", "I-X", "E-X", "S-X"]),
        ("BMES", ["B", "M", "E", "S"]),
    ],
)
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_decoding_keeps_to_the_scheme(scheme, tags, scale):
    """The best of the legal sequences, however much the scores speak for others."""
    allowed = tag_transitions(tags, scheme)
    crf = random_crf(len(tags), allowed, scale=scale)
    free = random_crf(len(tags), scale=scale)
    x = (scale * np.random.default_rng(4).normal(size=(20, 4, len(tags)))).astype("float32")
    mask = np.arange(4) < np.tile([1, 2, 3, 4], 5)[:, None]
    found, unbound = numpy_of(crf.decode(x, mask)[0]), numpy_of(free.decode(x, mask)[0])
    broken = 0
    for row, length in enumerate(mask.sum(1)):
        scores = path_scores(crf, x[row, :length].astype("float64"))
        best = max((path for path in scores if legal(path, allowed)), key=scores.get)
        assert tuple(found[row, :length]) == best
        broken += not legal(unbound[row, :length], allowed)
    assert broken > 5  # or the rules had nothing to do


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_probabilities_under_rules_are_shares_of_the_legal_sequences(scale):
    tags = ["O", "B-X", "I-X", "E-X", "S-X"]
    allowed = tag_transitions(tags, "BIOES")
    crf = random_crf(len(tags))
    crf.set_weights([np.zeros_like(w) for w in crf.get_weights()])
    x = (scale * np.random.default_rng(4).normal(size=(6, 4, 5))).astype("float32")
    mask = np.arange(4) < np.array([4, 3, 2, 1, 0, 4])[:, None]
    found = numpy_of(tag_probabilities(x, mask, allowed))
    assert not found[~mask].any()
    for row, length in enumerate(mask.sum(1)):
        if not length:
            continue
        paths = path_scores(crf, x[row, :length].astype("float64"))
        scores = {path: score for path, score in paths.items() if legal(path, allowed)}
        log_z = np.logaddexp.reduce(list(scores.values()))
        for step, tag in itertools.product(range(length), range(5)):
            of_tag = [score for path, score in scores.items() if path[step] == tag]
            share = np.exp(np.logaddexp.reduce(of_tag) - log_z) if of_tag else 0
            np.testing.assert_allclose(found[row, step, tag], share, atol=1e-4)


def test_where_no_sequence_is_legal_the_fewest_rules_are_broken():
    """One word cannot be tagged without S; three words only with one rule broken at the end."""
    tags = ["B", "M", "E"]
    allowed = tag_transitions(tags, "BMES")
    crf = random_crf(3, allowed)
    x = np.random.default_rng(5).normal(size=(8, 1, 3)).astype("float32")
    found, score = (numpy_of(y) for y in crf.decode(x))
    for row in range(8):
        scores = path_scores(crf, x[row])
        best = max(((0,), (2,)), key=scores.get)  # M breaks two rules, B and E one
        assert tuple(found[row]) == best
        np.testing.assert_allclose(score[row], scores[best], rtol=1e-5)
    # M breaks two rules, so that it has no share in the sequences that break one.
    shares = numpy_of(tag_probabilities(x, np.ones((8, 1), bool), allowed))
    two = np.exp(x[..., ::2]) / np.exp(x[..., ::2]).sum(-1, keepdims=True)
    np.testing.assert_allclose(shares[..., ::2], two, atol=1e-3)
    assert not shares[..., 1].any()


def test_fits_a_pattern():
    """Emissions say nothing; the tags alternate, so all must come from the transitions."""
    crf = CRF(2)
    crf.build((None, None, 2))
    inputs = keras.Input((None, 2), name="x")
    gold = np.tile([0, 1], (8, 3)).astype("int32")

    class Likelihood(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.crf = crf

        def call(self, x, tags):
            return -self.crf.log_likelihood(x, tags)

    tags = keras.Input((None,), dtype="int32", name="tags")
    model = keras.Model([inputs, tags], Likelihood()(inputs, tags))
    model.compile(keras.optimizers.SGD(0.5), lambda y, p: ops.mean(p))
    x, y = np.zeros((8, 6, 2), "float32"), np.zeros(8)
    losses = [float(model.train_on_batch([x, gold], y)) for _ in range(40)]
    assert losses[-1] < 0.2 < losses[0]
    np.testing.assert_array_equal(numpy_of(crf.decode(x)[0]), gold)


def test_gradient_of_the_likelihood():
    """By the emissions: 1 at the gold tag, less the probabilities; 0 in a row without steps."""
    crf = random_crf(3)
    x = np.random.default_rng(2).normal(size=(3, 4, 3)).astype("float32")
    mask = np.arange(4) < np.array([[4], [2], [0]])
    tags = np.array([[0, 2, 1, 1], [2, 0, 0, 0], [0, 0, 0, 0]], "int32")
    found = gradient(lambda x: ops.sum(crf.log_likelihood(x, tags, mask)), x)
    wanted = np.eye(3)[tags] * mask[..., None] - numpy_of(crf(x, mask))
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_errors():
    with pytest.raises(ValueError, match="`num_tags` must be an integer of at least 1. Rec.*=0"):
        CRF(0)
    with pytest.raises(ValueError, match="`allowed` must be 4 lists of 4 bools.*Received: 2 lists"):
        CRF(3, [[True, True], [True, True]])
    with pytest.raises(ValueError, match="`allowed` must be 4 lists of 4 bools. Received: 3"):
        CRF(3, 3)
    with pytest.raises(ValueError, match="`emissions` must have 3 values.*Received: 5"):
        CRF(3)(np.zeros((1, 2, 5), "float32"))


@pytest.mark.parametrize(
    ("scheme", "legal_paths", "illegal_paths"),
    [
        (
            "BIO",
            ["O", "B-X", "B-X I-X I-X", "B-X B-X", "B-X I-X B-Y", "O B-X O"],
            ["I-X", "O I-X", "B-X I-Y", "B-X O I-X"],
        ),
        (
            "BIOES",
            ["O", "S-X", "B-X E-X", "B-X I-X E-X S-Y O", "S-X S-X"],
            ["B-X", "E-X", "B-X O", "B-X E-Y", "B-X I-X", "S-X E-X", "O I-X"],
        ),
        (
            "BMES",
            ["O", "S-X", "B-X E-X", "B-X M-X M-X E-X", "S-X B-Y E-Y"],
            ["B-X", "M-X", "B-X S-X", "B-X M-Y", "B-X M-X"],
        ),
        (
            "BILOU",
            ["O", "U-X", "B-X L-X", "B-X I-X L-X U-Y O", "U-X U-X"],
            ["B-X", "L-X", "B-X O", "B-X L-Y", "B-X I-X", "U-X L-X", "O I-X"],
        ),
    ],
)
def test_tag_transitions(scheme, legal_paths, illegal_paths):
    middle = {"BIO": "BI", "BIOES": "BIES", "BMES": "BMES", "BILOU": "BILU"}[scheme]
    tags = ["O", *(f"{prefix}-{kind}" for kind in "XY" for prefix in middle)]
    allowed = tag_transitions(tags, scheme)
    assert [len(row) for row in allowed] == [len(tags) + 1] * (len(tags) + 1)
    for path in legal_paths:
        assert legal([tags.index(tag) for tag in path.split()], allowed), path
    for path in illegal_paths:
        assert not legal([tags.index(tag) for tag in path.split()], allowed), path


def test_tag_transitions_of_no_scheme_and_errors():
    assert tag_transitions(["a", "b"], None) is None
    assert tag_transitions(["B", "M", "E", "S"], "BMES")[0] == [False, True, True, False, False]
    with pytest.raises(ValueError, match="`scheme` must be one of BIO.*Received: 'IOB1'"):
        tag_transitions(["O"], "IOB1")
    with pytest.raises(ValueError, match="`tags` of the scheme BIO must.*Received: E-X, NOUN"):
        tag_transitions(["O", "B-X", "E-X", "NOUN"], "BIO")


def test_tags_that_emissions_rule_out():
    crf = random_crf(3)
    x = np.random.default_rng(6).normal(size=(2, 4, 3)).astype("float32")
    x[:, 1, 0] = -np.inf
    mask = np.array([[True] * 4, [True, True, False, False]])
    tags, score = (numpy_of(y) for y in crf.decode(x, mask))
    probabilities = numpy_of(crf(x, mask))
    assert (tags[:, 1] != 0).all() and np.isfinite(score).all()
    assert np.isfinite(probabilities).all() and not probabilities[:, 1, 0].any()
    likelihood = numpy_of(crf.log_likelihood(x, np.ones((2, 4), "int32"), mask))
    scores = path_scores(crf, x[1, :2].astype("float64"))
    wanted = scores[1, 1] - np.logaddexp.reduce(list(scores.values()))
    np.testing.assert_allclose(likelihood[1], wanted, rtol=1e-5)


@pytest.mark.once
def test_exported_graph_takes_any_length(tmp_path):
    """A SavedModel whose batch and length are free: decoding with rules, and probabilities."""
    import tensorflow as tf

    crf = random_crf(3, tag_transitions(["O", "B-X", "I-X"], "BIO"))
    module = tf.Module()
    module.variables_ = [weight.value for weight in crf.weights]
    x, mask = tf.TensorSpec((None, None, 3)), tf.TensorSpec((None, None), tf.bool)

    @tf.function(input_signature=[x, mask])
    def decode(x, mask):
        tags, score = crf.decode(x, mask)
        return {"tags": tags, "score": score, "probabilities": crf(x, mask)}

    module.decode = decode
    tf.saved_model.save(module, tmp_path / "m")
    loaded = tf.saved_model.load(tmp_path / "m")
    rng = np.random.default_rng(7)
    for rows, steps in ((2, 5), (1, 1), (3, 9), (0, 4), (0, 0), (2, 0)):
        x = rng.normal(size=(rows, steps, 3)).astype("float32")
        mask = np.arange(steps) < rng.integers(0, steps + 1, (rows, 1))
        found = loaded.decode(tf.constant(x), tf.constant(mask))
        assert found["tags"].shape == (rows, steps) and found["score"].shape == (rows,)
        if rows and steps:
            tags, score = crf.decode(x, mask)
            np.testing.assert_array_equal(found["tags"], tags)
            np.testing.assert_allclose(found["score"], score, rtol=1e-6)
            np.testing.assert_allclose(found["probabilities"], crf(x, mask), rtol=1e-6)


def test_a_batch_of_none_is_decoded():
    tags, score = golden_crf().decode(np.zeros((0, 3, 3), "float32"))
    assert tags.shape == (0, 3) and score.shape == (0,)


def test_infinite_emissions_have_a_likelihood():
    """A tag that is ruled out by -inf has none of the probability."""
    emissions = np.array([EMISSIONS], "float32")
    emissions[0, :, 2] = -np.inf
    crf = golden_crf()
    found = [
        float(crf.log_likelihood(emissions, np.array([tags]))[0])
        for tags in itertools.product((0, 1), repeat=3)
    ]
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-5)
    tags, score = crf.decode(emissions)
    assert np.isfinite(float(score[0])) and 2 not in ops.convert_to_numpy(tags)


def test_tags_beyond_the_last_are_an_error():
    with pytest.raises(Exception, match=r"`tags` must lie in \[0, 3\)"):
        golden_crf().log_likelihood(np.array([EMISSIONS], "float32"), np.array([[0, 1, 3]]))


def test_masks_with_holes_are_an_error():
    """Else a step behind the hole would count in the score of the tags and in no other."""
    crf, x = random_crf(3), np.zeros((2, 3, 3), "float32")
    mask = ops.convert_to_tensor([[True, True, False], [True, False, True]])
    rules = tag_transitions(["O", "B-X", "I-X"], "BIO")
    for ask in (
        lambda: crf.log_likelihood(x, np.zeros((2, 3), "int32"), mask),
        lambda: crf.decode(x, mask),
        lambda: crf(x, mask),
        lambda: tag_probabilities(x, mask, rules),
    ):
        with pytest.raises(ValueError, match="`mask` must hold the real steps first"):
            ask()


def test_builds_itself():
    scores = numpy_of(CRF(3).log_likelihood(np.zeros((1, 2, 3), "float32"), [[0, 1]]))
    assert scores.shape == (1,) and scores[0] < 0
