"""Every head on every encoder: it learns a toy task, and is the same after saving and loading in
another process; exported, it answers raw text alike.

The toy texts have one word that matters, `SIGNAL`: which class, which tag, which place, which
choice, how similar. A model that sees the words can learn all of it.
"""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from keras import ops

from kctx import heads, models, presets
from kctx.preprocessors import BERTPreprocessor, SubwordsPreprocessor, WordsPreprocessor
from kctx.tokenizers import WordPieceTokenizer, WordTokenizer
from kctx.vectors import Subwords
from tests.tasks.toys import assert_alike

ROOT = Path(__file__).resolve().parent.parent.parent
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
WORDS = "the a film was good bad in paris anna saw , . who é ##s".split()
PREPROCESSORS = {
    "BERT": lambda: BERTPreprocessor(
        WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]), 12
    ),
    "StaticEncoder": lambda: WordsPreprocessor(WordTokenizer(WORDS), 12),
    "SubwordEncoder": lambda: SubwordsPreprocessor(
        WordTokenizer(WORDS[:9]), Subwords(2, 3, 10), sequence_length=12
    ),
}
# Raw requests: plain, empty, longer than the models, of letters that no vocabulary has.
TEXTS = ["anna saw the film in paris.", "", "the bad film , " * 6, "\U0001f600 é 中文"]
OTHERS = [*TEXTS[1:], TEXTS[0]]
MENTIONS = [[(9, 17), (0, 4)], [], [(x, x + 3) for x in range(0, 90, 15)], [(2, 3)]]
CHOSEN = [["a", "the film"], ["é"], ["bad", "good", "anna saw " * 6], ["a", "b"]]
# Head -> further parts of requests beside the texts.
PARTS = {
    "RoleTagger": ([1, 0, 14, 1],),
    "Span": (OTHERS,),
    "ChoiceScorer": (CHOSEN,),
    "BiEncoder": (OTHERS,),
    "MentionRanker": (MENTIONS,),
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


@functools.cache
def trained(name, encoder):
    """(model, losses): 20 steps on the toy task."""
    keras.utils.set_random_seed(0)
    model = HEADS[name](ENCODERS[encoder]())
    head = heads.head_of(model)
    inputs, labels = toy_task(name, heads.encoder_of(model))
    # For so few steps it costs more to compile than to run: as little as a backend allows.
    model.compile(
        keras.optimizers.Adam(0.03),
        head.output_loss(),
        metrics=head.output_metrics(),
        jit_compile=keras.config.backend() == "jax",
    )
    logs = model.fit(inputs, labels, epochs=STEPS, batch_size=ROWS, shuffle=False, verbose=0)
    return model, logs.history["loss"]


@every_encoder
@pytest.mark.parametrize("name", HEADS)
def test_loss_falls(name, encoder):
    model, losses = trained(name, encoder)
    head = heads.head_of(model)
    assert type(head).__name__ == name and isinstance(head.task, str)
    assert np.isfinite(losses).all()
    assert losses[-1] < 0.8 * losses[0], losses


def run(*command, **environment):
    child = subprocess.run(
        [sys.executable, *map(str, command)],
        env={**os.environ, **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr[-3000:]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Dict of (head, encoder) to (preset folder, text model): all of them trained and saved."""
    root, found = tmp_path_factory.mktemp("heads"), {}
    for encoder in ENCODERS:
        for name in HEADS:
            model, _ = trained(name, encoder)
            text_model = presets.TextModel(
                model, PREPROCESSORS[encoder](), *presets_task(model), {}
            )
            folder = root / f"{encoder}-{name}"
            text_model.save(folder)
            inputs, _ = toy_task(name, heads.encoder_of(model))
            np.savez(f"{folder}.npz", **inputs, output=ops.convert_to_numpy(model(inputs)))
            found[name, encoder] = folder, text_model
    return found


def presets_task(model):
    """Task and labels of a model, as told by its head."""
    head = heads.head_of(model)
    labels = {"classification": ["no", "yes"], "tagging": ["O", "B-X", "I-X"]}.get(head.task)
    return head.task, labels


def test_saved_and_loaded_in_another_process(saved):
    """All pairs by one process."""
    run("-m", "tests.heads.other_process", *(folder for folder, _ in saved.values()))


# Under other backends than TensorFlow, where an export is traced, a pair of each encoder is enough.
FEW = {("CRFTagger", "BERT"), ("Span", "StaticEncoder"), ("MentionRanker", "SubwordEncoder")}


def test_exported_graphs_answer_raw_text_alike(saved, tmp_path):
    """Rebuilt under TensorFlow by one process, asked by another one that has TensorFlow alone."""
    if keras.config.backend() != "tensorflow":
        saved = {pair: found for pair, found in saved.items() if pair in FEW}
    folders = [folder for folder, _ in saved.values()]
    run(
        "-m",
        "tests.heads.other_process",
        "--export",
        tmp_path,
        *folders,
        KERAS_BACKEND="tensorflow",
    )
    requests, expected = [], []
    for (name, _), (folder, text_model) in saved.items():
        columns = [TEXTS, *PARTS.get(name, ())]
        columns = columns[::-1] if name == "Span" else columns  # the question comes first
        task = text_model.asked()
        fields = task.signatures()["serving_default"]
        inputs = dict(zip(fields, map(plain, task.tensors(columns)), strict=True))
        requests.append({"signature": f"{folder.name}.serving_default", "inputs": inputs})
        expected.append((task, text_model.predict(*columns)))
    (tmp_path / "requests.json").write_text(json.dumps(requests), encoding="utf-8")
    libraries = Path(tensorflow_text.__file__).parent.glob("python/ops/*.so")
    server = ROOT / "tests" / "export" / "bare_server.py"
    made = tmp_path / "requests.json", tmp_path / "answers.npz"
    run(server, tmp_path / "model", *made, *libraries)
    with np.load(tmp_path / "answers.npz") as answers:
        for number, (task, rows) in enumerate(expected):
            found = {key: answers[f"{number}/{key}"] for key in task.meanings}
            if task.name == "multiple_choice":  # of rows in a rectangle, those that are real
                found["mask"] = found["scores"] > 0
            assert_alike(task.rows(found), rows)


def plain(tensor):
    """A tensor as nested lists; strings as hexadecimal bytes."""

    def hexadecimal(value):
        return [hexadecimal(x) for x in value] if isinstance(value, list) else value.hex()

    value = np.asarray(tensor).tolist()
    return hexadecimal(value) if tensor.dtype == tf.string else value
