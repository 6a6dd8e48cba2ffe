"""Every head on every encoder: it learns a toy task, and is the same after saving and loading.

The toy texts have one word that matters, `SIGNAL`: which class, which tag, which place, which
choice, how similar. A model that sees the words can learn all of it.
"""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from kctx import heads, models, presets

VOCABULARY_SIZE, WIDTH, ROWS, LENGTH, CHOICES = 20, 8, 16, 7, 3
SIGNAL = 1
STEPS = 20

ENCODERS = {
    "BERT": lambda: models.BERT(
        VOCABULARY_SIZE, 1, WIDTH, 2, 16, max_sequence_length=16, dropout=0.0, attention_dropout=0.0
    ),
    "StaticEncoder": lambda: models.StaticEncoder(VOCABULARY_SIZE, WIDTH),
    "SubwordEncoder": lambda: models.SubwordEncoder(VOCABULARY_SIZE, WIDTH),
}
# Head -> how it is made and attached.
HEADS = {
    "Classifier": lambda encoder: heads.attach(encoder, heads.Classifier(2, dropout=0.0)),
    "Regressor": lambda encoder: heads.attach(encoder, heads.Regressor(dropout=0.0)),
    "Tagger": lambda encoder: heads.attach(encoder, heads.Tagger(3, dropout=0.0)),
    "CRFTagger": lambda encoder: heads.attach(encoder, heads.CRFTagger(3, dropout=0.0)),
    "RoleTagger": lambda encoder: heads.attach(
        encoder, heads.RoleTagger(3, indicator_dim=4, hidden_dim=16, dropout=0.0)
    ),
    "Span": lambda encoder: heads.attach(encoder, heads.Span()),
    "ChoiceScorer": lambda encoder: heads.attach_choices(encoder, heads.ChoiceScorer(dropout=0.0)),
    "BiEncoder": lambda encoder: heads.attach_pair(encoder, heads.BiEncoder()),
    "MentionRanker": lambda encoder: heads.attach(
        encoder, heads.MentionRanker(hidden_dim=16, feature_dim=4, dropout=0.0)
    ),
}
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


def toy_words(rng, rows):
    """Words (rows, LENGTH) with one signal among them, real ones (bool), the signal's places."""
    lengths = rng.integers(4, LENGTH + 1, rows)
    words = rng.integers(2, VOCABULARY_SIZE, (rows, LENGTH)).astype("int32")
    places = rng.integers(1, 4, rows)
    words[np.arange(rows), places] = SIGNAL
    mask = np.arange(LENGTH) < lengths[:, None]
    return np.where(mask, words, 0).astype("int32"), mask, places


def encoder_inputs(encoder, words, mask):
    """What an encoder takes, of words (..., T)."""
    made = {
        "token_ids": words,
        "segment_ids": np.zeros_like(words),
        "padding_mask": mask,
        # A word has its own row, and for every other word one more.
        "subword_ids": np.stack([words, words // 2], axis=-1),
    }
    return {name: made[name] for name in encoder.input}


def toy_task(name, encoder):
    """Inputs and labels for a head."""
    rng = np.random.default_rng(5)
    words, mask, places = toy_words(rng, ROWS)
    rows = np.arange(ROWS)
    if name in ("Classifier", "Regressor"):
        labels = (rows % 2).astype("int32")
        words[rows, places] = np.where(labels == 1, SIGNAL, 2)
    inputs = encoder_inputs(encoder, words, mask)
    word_inputs = {
        "word_positions": np.where(mask, np.arange(LENGTH), 0).astype("int32"),
        "word_mask": mask,
    }
    is_signal = (words == SIGNAL).astype("int32")
    if name == "Classifier":
        return inputs, labels
    if name == "Regressor":
        return inputs, labels[:, None].astype("float32")
    if name in ("Tagger", "CRFTagger"):
        # The signal is tag 1 and what comes after it tag 2.
        after = np.pad(is_signal, ((0, 0), (1, 0)))[:, :-1]
        return {**inputs, **word_inputs}, np.where(mask, is_signal + 2 * after, -1).astype("int32")
    if name == "RoleTagger":
        predicate = (np.arange(LENGTH) == 0).astype("int32") * mask
        labels = np.where(mask, is_signal + 2 * predicate, -1).astype("int32")
        return {**inputs, **word_inputs, "predicate_indicator": predicate.astype("int32")}, labels
    if name == "Span":
        return {**inputs, "answer_mask": mask}, np.stack([places, places], axis=1).astype("int32")
    if name == "ChoiceScorer":
        several = rng.integers(2, VOCABULARY_SIZE, (ROWS, CHOICES, LENGTH)).astype("int32")
        labels = (rows % CHOICES).astype("int32")
        several[rows, labels, 2] = SIGNAL
        every = np.ones(several.shape, bool)
        inputs = encoder_inputs(encoder, several, every)
        return {**inputs, "choice_mask": np.ones((ROWS, CHOICES), bool)}, labels
    if name == "BiEncoder":
        # Texts of one word each; those of two odd words are alike, and those of two even ones.
        pair = rng.integers(1, 7, (2, ROWS, 1))
        one, other = np.where(mask, pair, 0).astype("int32")
        second = encoder_inputs(encoder, other, mask)
        both = encoder_inputs(encoder, one, mask)
        both |= {f"{key}_b": value for key, value in second.items()}
        return both, np.where(pair[0] % 2 == pair[1] % 2, 0.9, -0.5).astype("float32")
    if name == "MentionRanker":
        # Spans of one token each; those of even words are one thing.
        spans = np.tile(np.arange(4, dtype="int32"), (ROWS, 1))
        labels = np.where(words[:, :4] % 2 == 0, 1, 0).astype("int32")
        extra = {
            "span_starts": spans,
            "span_ends": spans,
            "span_mask": np.ones((ROWS, 4), bool),
        }
        return {**inputs, **extra}, labels
    raise ValueError(name)


def test_every_public_head_is_here():
    public = {
        name
        for name in heads.__all__
        if isinstance(getattr(heads, name), type)
        and issubclass(getattr(heads, name), keras.layers.Layer)
    }
    assert public == set(HEADS)


@every_encoder
@pytest.mark.parametrize("name", HEADS)
def test_loss_falls(name, encoder):
    model = HEADS[name](ENCODERS[encoder]())
    head = heads.head_of(model)
    assert type(head).__name__ == name and isinstance(head.task, str)
    inputs, labels = toy_task(name, heads.encoder_of(model))
    model.compile(keras.optimizers.Adam(0.03), head.output_loss(), metrics=head.output_metrics())
    logs = model.fit(inputs, labels, epochs=STEPS, batch_size=ROWS, shuffle=False, verbose=0)
    losses = logs.history["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0], losses


CHILD = """
import sys
import numpy as np
from keras import ops
from kctx import presets

for folder in sys.argv[1:]:
    model = presets.load(folder).model
    stored = np.load(folder + ".npz")
    made = ops.convert_to_numpy(model({name: stored[name] for name in model.input}))
    np.testing.assert_allclose(made, stored["output"], atol=1e-5, err_msg=folder)
"""


@every_encoder
def test_saved_and_loaded_in_another_process(encoder, tmp_path):
    """All heads on one encoder, by one process."""
    folders = []
    for name, make in HEADS.items():
        model = make(ENCODERS[encoder]())
        inputs, _ = toy_task(name, heads.encoder_of(model))
        folder = str(tmp_path / name)
        presets.save(folder, model)
        np.savez(folder + ".npz", **inputs, output=ops.convert_to_numpy(model(inputs)))
        folders.append(folder)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, *folders],
        env={**os.environ, "KERAS_BACKEND": keras.config.backend()},
        cwd=Path(__file__).parent.parent.parent,
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr[-3000:]
