"""Heads of tags: which vectors they score, what they decode, and what padding does."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.heads import CRFTagger, RoleTagger, Tagger, attach, head_of
from kctx.layers import tag_transitions
from kctx.models import BERT, StaticEncoder
from kctx.training import default_jit
from tests.catalogue import batch

TAGS = ["O", "B-X", "I-X"]
ALLOWED = tag_transitions(TAGS, "BIO")
LABELS = np.array([[1, 2, 0, 1, 2, 2], [0, 1, 2, 0, -1, -1], [1, -1, -1, -1, -1, -1]], "int32")


def numpy_of(x):
    return ops.convert_to_numpy(x)


def make_encoder(**options):
    return BERT(30, 2, 8, 2, 16, max_sequence_length=16, **options)


@pytest.fixture(scope="module")
def encoder():
    return make_encoder()


def inputs_of(model):
    """Rows of 6, 4 and 1 words whose first pieces are at odd places."""
    inputs = batch(model.input, lengths=(13, 9, 3), length=14)
    mask = np.arange(6) < np.array([6, 4, 1])[:, None]
    inputs["word_mask"] = mask
    inputs["word_positions"] = np.where(mask, 1 + 2 * np.arange(6), 0).astype("int32")
    if "predicate_indicator" in model.input:
        inputs["predicate_indicator"] = np.where(mask, np.arange(6) == 1, 0).astype("int32")
    return inputs


@pytest.mark.parametrize("kind", [Tagger, CRFTagger])
def test_logits_are_of_each_words_first_piece(encoder, kind):
    model = attach(encoder, kind(3))
    inputs = inputs_of(model)
    kernel, bias = head_of(model).dense.get_weights()
    x = numpy_of(encoder({name: inputs[name] for name in encoder.input})["sequence_output"])
    wanted = x[:, 1:13:2] @ kernel + bias
    found = numpy_of(model(inputs))
    mask = inputs["word_mask"]
    np.testing.assert_allclose(found[mask], wanted[mask], atol=1e-5)
    assert found.shape == (3, 6, 3) and not found[~mask].any()


def test_roles_depend_on_the_predicate(encoder):
    model = attach(encoder, RoleTagger(3, indicator_dim=4, hidden_dim=16))
    inputs = inputs_of(model)
    moved = {**inputs, "predicate_indicator": np.roll(inputs["predicate_indicator"], 1, axis=1)}
    one, other = numpy_of(model(inputs)), numpy_of(model(moved))
    # Of all words, since each sees the predicate's vector.
    assert (np.abs(one - other).max(axis=-1)[:1] > 1e-6).all()
    # An indicator at padding is none.
    stray = inputs["predicate_indicator"].copy()
    stray[1:, 5] = 1
    np.testing.assert_array_equal(numpy_of(model({**inputs, "predicate_indicator": stray})), one)


def test_decode_takes_the_best_tag_or_keeps_to_the_scheme():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(40, 5, 3)).astype("float32")
    mask = np.arange(5) < rng.integers(0, 6, (40, 1))
    free = numpy_of(Tagger(3).decode(logits, mask))
    np.testing.assert_array_equal(free, np.where(mask, logits.argmax(-1), 0))
    assert free.dtype == np.int32
    bound = numpy_of(Tagger(3, allowed=ALLOWED).decode(logits, mask))

    def broken(tags):
        before = np.pad(tags, ((0, 0), (1, 0)))[:, :-1]
        return ((tags == 2) & (before == 0) & mask).any(axis=1)

    assert broken(free).sum() > 10 and not broken(bound).any()
    # Rows that were legal already stay as they are.
    np.testing.assert_array_equal(bound[~broken(free)], free[~broken(free)])


def test_probabilities():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 4, 3)).astype("float32")
    mask = np.array([[True] * 4, [True, False, False, False]])
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    found = numpy_of(Tagger(3).probabilities(logits, mask))
    np.testing.assert_allclose(found, softmax * mask[..., None], atol=1e-6)
    head = CRFTagger(3)
    head.build({"sequence_output": (None, None, 8)})
    head.crf.set_weights([np.zeros_like(w) for w in head.crf.get_weights()])
    np.testing.assert_allclose(numpy_of(head.probabilities(logits, mask)), found, atol=1e-6)


def test_losses_are_means_over_real_words(encoder):
    """Of a tagger, and of a CRF without transitions, which then is the same."""
    logits = np.random.default_rng(0).normal(size=(3, 6, 3)).astype("float32")
    log_softmax = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    mask = LABELS >= 0
    each = -np.take_along_axis(log_softmax, np.maximum(LABELS, 0)[..., None], -1)[..., 0] * mask
    crf = CRFTagger(3)
    attach(encoder, crf)
    crf.crf.set_weights([np.zeros_like(w) for w in crf.crf.get_weights()])
    weights = np.array([1.0, 0.5, 2.0], "float32")
    for head in (Tagger(3), crf):
        loss = head.output_loss()
        np.testing.assert_allclose(numpy_of(loss(LABELS, logits)), each.sum() / 11, rtol=1e-5)
        wanted = (each * weights[:, None]).sum() / (mask * weights[:, None]).sum()
        np.testing.assert_allclose(numpy_of(loss(LABELS, logits, weights)), wanted, rtol=1e-5)
        assert float(loss(np.full((3, 6), -1), logits)) == 0
    np.testing.assert_allclose(
        numpy_of(Tagger(3).output_loss()(LABELS, logits, mask.astype("float32"))),
        each.sum() / 11,
        rtol=1e-5,
    )


def test_accuracy_is_of_decoded_real_words():
    head = Tagger(3)
    (accuracy,) = head.output_metrics()
    logits = 9 * np.eye(3, dtype="float32")[np.maximum(LABELS, 0)]
    logits[0, :2] = logits[0, 1::-1]  # the two are changed: both wrong
    accuracy.update_state(LABELS, logits)
    np.testing.assert_allclose(float(accuracy.result()), 9 / 11)
    accuracy.reset_state()
    accuracy.update_state(np.full((3, 6), -1), logits)
    assert float(accuracy.result()) == 0


def test_crf_learns_what_a_tagger_cannot():
    """Each word is the same, so its tag is only told by those before."""
    shares = {}
    for kind in (Tagger, CRFTagger):
        model = attach(StaticEncoder(30, 4), kind(2, dropout=0.0))
        head = head_of(model)
        mask = np.arange(6) < np.array([6, 4, 5])[:, None]
        inputs = {
            "token_ids": np.ones((3, 6), "int32"),
            "padding_mask": mask,
            "word_positions": np.where(mask, np.arange(6), 0).astype("int32"),
            "word_mask": mask,
        }
        labels = np.where(mask, np.arange(6) % 2, -1).astype("int32")
        model.compile(keras.optimizers.Adam(0.1), head.output_loss(), metrics=head.output_metrics())
        # 40 steps in one epoch: TensorFlow takes longer to begin one than for all of the steps.
        often = {name: np.tile(x, (40, 1)) for name, x in inputs.items()}
        model.fit(often, np.tile(labels, (40, 1)), batch_size=3, shuffle=False, verbose=0)
        found = numpy_of(head.decode(model.predict(inputs, verbose=0), mask))
        shares[kind] = (found == labels)[mask].mean()
    assert shares[Tagger] < 0.7 and shares[CRFTagger] == 1.0


def test_saved_models_compute_with_the_transitions_that_were_saved(tmp_path):
    """Tags, and the compiled loss and metric of a model that was saved while training."""
    model = attach(StaticEncoder(30, 8), CRFTagger(3, allowed=ALLOWED))
    head = head_of(model)
    head.crf.set_weights([9 * w + 1 for w in head.crf.get_weights()])
    model.compile(
        keras.optimizers.Adam(1e-2),
        head.output_loss(),
        metrics=head.output_metrics(),
        jit_compile=default_jit(),
    )
    inputs = inputs_of(model)
    model.train_on_batch(inputs, LABELS)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    again = head_of(loaded)
    assert again.get_config() == head.get_config() and again.allowed == ALLOWED
    logits = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(loaded.predict(inputs, verbose=0), logits, atol=1e-6)
    np.testing.assert_array_equal(
        numpy_of(again.decode(logits, inputs["word_mask"])),
        numpy_of(head.decode(logits, inputs["word_mask"])),
    )
    for one, other in zip(
        loaded.evaluate(inputs, LABELS, verbose=0),
        model.evaluate(inputs, LABELS, verbose=0),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    before = again.crf.get_weights()
    loaded.train_on_batch(inputs, LABELS)
    moved = [np.abs(a - b).max() for a, b in zip(again.crf.get_weights(), before, strict=True)]
    assert min(moved) > 0


def test_errors(encoder):
    with pytest.raises(ValueError, match="`num_tags` must be an integer of at least 1. Rec.*=0"):
        Tagger(0)
    with pytest.raises(ValueError, match="`allowed` must be 3 lists of 3 bools"):
        CRFTagger(2, allowed=ALLOWED)
    with pytest.raises(ValueError, match="`crf_loss` belongs to a head"):
        type(CRFTagger(2).output_loss())()(LABELS, np.zeros((3, 6, 3), "float32"))
    model = attach(encoder, Tagger(3))
    with pytest.raises(ValueError, match="must hold .*word_positions.*Received: token_ids"):
        model({"token_ids": np.zeros((1, 2), "int32")})


def test_first_pieces_outside_the_sequence_are_an_error(encoder):
    model = attach(encoder, Tagger(3))
    inputs = inputs_of(model)
    inputs["word_positions"] = inputs["word_positions"] + 9
    with pytest.raises(Exception, match="`word_positions` must lie within the length"):
        model(inputs)
