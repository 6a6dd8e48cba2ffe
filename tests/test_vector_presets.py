"""From word vectors to a classifier that answers raw text, served or not: the same answers."""

import json

import numpy as np
import pytest
import tensorflow as tf

from kctx import export, heads, models, preprocessors, presets, training
from kctx.data import Examples, ExampleStream
from kctx.vectors import SubwordRows, Subwords, SubwordTable, Vectors
from kctx.vectors.tables import as_table
from kctx_cli.main import main
from tests.recipes import scripts

LABELS = ["bad", "good"]
WORDS = ["the", "good", "bad", "film", "caf\udce9", "日本", "a\\b", "und", "."]
TEXTS = [
    "the good film .",
    "bad films",
    "",
    "日本語 goodness\tbadly\r\nthe",
    b"caf\xe9 caf\xe9s \xff\xfe a\\b",
    "the bad film . " * 20,
]


def make_vectors(subwords, pruned=False):
    generator = np.random.default_rng(0)
    if not subwords:
        return Vectors(WORDS, generator.normal(size=(len(WORDS), 8)).astype("float32"))
    subwords = Subwords(3, 5, 50)
    prune_map = np.array([(b, i) for i, b in enumerate(range(1, 50, 2))]) if pruned else None
    rows = SubwordRows(WORDS, subwords, prune_map)
    inputs = as_table(generator.normal(size=(len(WORDS) + 50, 8)).astype("float32"))
    return Vectors(WORDS, SubwordTable(inputs, WORDS, rows), subwords, inputs, rows)


def means(vectors, texts):
    """The mean vector of each text's words, by the vectors themselves: (N, D)."""
    found = []
    for text in texts:
        text = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text
        known = [
            vectors[word] if vectors.subwords or word in vectors else np.zeros(vectors.dim)
            for word in text.split()
        ]
        found.append(np.mean(known, axis=0) if known else np.zeros(vectors.dim))
    return np.stack(found)


def examples(count=24):
    """Texts of two classes that one word tells apart."""
    words = ["film", "the", "und", "日本語", "x"]
    labels = [i % 2 for i in range(count)]
    texts = [f"{words[i % 5]} {LABELS[label]} {words[i % 3]}" for i, label in enumerate(labels)]
    return Examples(texts, None, labels, LABELS, list(range(count)))


@pytest.mark.parametrize("subwords", [False, True])
def test_preset_of_vectors(tmp_path, subwords):
    vectors = make_vectors(subwords)
    presets.from_vectors(tmp_path / "p", vectors, sequence_length=40, lowercase=True)
    loaded = presets.load(tmp_path / "p")
    assert type(loaded.encoder) is (models.SubwordEncoder if subwords else models.StaticEncoder)
    assert loaded.preprocessor.sequence_length == 40 and loaded.preprocessor.tokenizer.lowercase
    assert loaded.preprocessor.tokenizer.words == WORDS
    assert "up to 40 tokens" in loaded.describe() and loaded.task is None
    inputs = {key: value.numpy() for key, value in loaded.preprocessor(TEXTS).items()}
    outputs = loaded.encoder.predict(inputs, verbose=0)["sequence_output"]
    mask = inputs["padding_mask"][..., None]
    found = (outputs * mask).sum(1) / np.maximum(mask.sum(1), 1)
    wanted = means(vectors, [*TEXTS[:-1], "the bad film . " * 10])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@pytest.mark.once
def test_from_vectors_chooses_the_encoder(tmp_path):
    vectors = make_vectors(subwords=True)
    presets.from_vectors(tmp_path / "p", vectors, subwords=False, unknown="mean")
    assert type(presets.load(tmp_path / "p").encoder) is models.StaticEncoder
    with pytest.raises(ValueError, match="must have subwords"):
        presets.from_vectors(tmp_path / "q", make_vectors(False), subwords=True)
    assert not (tmp_path / "q").exists()


@pytest.mark.parametrize(("subwords", "trainable"), [(False, False), (True, True)])
def test_fine_tuned_and_answered(tmp_path, subwords, trainable):
    """A few steps on top of the preset, saved and loaded again; a frozen table stays."""
    presets.from_vectors(tmp_path / "p", make_vectors(subwords), trainable=trainable)
    loaded = presets.load(tmp_path / "p")
    before = loaded.encoder.get_weights()[0]
    head = heads.Classifier(2)
    model = heads.attach(loaded.encoder, head)
    padded = loaded.preprocessor.with_options(sequence_length=4, pad_to_multiple=4)
    stream = ExampleStream(examples(), padded, 8)
    optimizer = training.AdamW(0.05, bias_correction=True)
    model.compile(optimizer, head.output_loss(), jit_compile=training.default_jit())
    model.fit(stream.dataset(), steps_per_epoch=24, verbose=0)
    presets.save(tmp_path / "q", model, loaded.preprocessor, labels=LABELS)
    again = presets.load(tmp_path / "q")
    answers = again.predict(["the good film", "bad x"])
    assert [answer["label"] for answer in answers] == ["good", "bad"]
    assert np.array_equal(again.encoder.get_weights()[0], before) is not trainable
    alone = [again.predict(text)[0]["score"] for text in TEXTS]
    together = [answer["score"] for answer in again.predict(TEXTS)]
    assert alone == pytest.approx(together, abs=1e-5)


@pytest.mark.once
@pytest.mark.parametrize("kind", ["words", "pruned"])
def test_served_answers_are_those_of_the_model(tmp_path, kind):
    vectors = make_vectors(kind != "words", pruned=True)
    presets.from_vectors(tmp_path / "p", vectors, sequence_length=30)
    loaded = presets.load(tmp_path / "p")
    model = heads.attach(loaded.encoder, heads.Classifier(3, dropout=0))
    generator = np.random.default_rng(1)
    head = [generator.normal(size=w.shape) for w in model.get_weights()[1:]]
    model.set_weights([model.get_weights()[0], *head])
    text_model = presets.TextModel(model, loaded.preprocessor, "classification", list("abc"))
    folder = export.saved_model(
        model, loaded.preprocessor, tmp_path / "served", labels=list("abc"), verbose=False
    )
    signatures = tf.saved_model.load(str(folder)).signatures
    found = signatures["serving_default"](text=tf.constant(TEXTS))
    expected = text_model.predict(TEXTS)
    for row, answer in enumerate(expected):
        assert found["label"][row].numpy().decode() == answer["label"]
        np.testing.assert_allclose(found["scores"][row], list(answer["scores"].values()), atol=1e-5)
    empty = signatures["serving_default"](text=tf.constant([], tf.string))
    assert empty["scores"].shape == (0, 3)
    assert set(signatures) == {"serving_default", "pair", "token_ids"}
    pairs = signatures["pair"](text=tf.constant(TEXTS), text_pair=tf.constant(TEXTS[::-1]))
    for row, answer in enumerate(text_model.predict(TEXTS, TEXTS[::-1])):
        np.testing.assert_allclose(pairs["scores"][row], list(answer["scores"].values()), atol=1e-5)

    # By ids, checked.
    inputs = loaded.preprocessor(TEXTS)
    by_ids = signatures["token_ids"](**inputs)
    np.testing.assert_allclose(by_ids["scores"], found["scores"], atol=1e-6)
    name = "token_ids" if kind == "words" else "subword_ids"
    with pytest.raises(tf.errors.InvalidArgumentError, match=rf"`{name}` must lie in \[0,"):
        signatures["token_ids"](**{**inputs, name: inputs[name] + 1000})
    reference = "token_ids" if kind == "words" else "padding_mask"
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"of `{reference}`"):
        signatures["token_ids"](**{**inputs, "padding_mask": inputs["padding_mask"][:, :1]})
    described = json.loads((folder / "assets.extra" / "signature.json").read_text("utf-8"))
    entry = described["signatures"]["token_ids"]["inputs"][name]
    assert entry["shape"] == ("(B, T)" if kind == "words" else "(B, T, S)")
    assert "Nothing but TensorFlow" in (folder / "assets.extra" / "README.md").read_text("utf-8")


@pytest.mark.once
def test_recipes_from_vectors_to_the_server(tmp_path):
    presets.from_vectors(tmp_path / "vectors", make_vectors(subwords=True))
    rows = examples(40)
    pairs = zip(rows.texts, rows.labels, strict=True)
    lines = [f"{text}\t{LABELS[label]}" for text, label in pairs]
    train = tmp_path / "train.tsv"
    train.write_text("text\tlabel\n" + "\n".join(lines) + "\n", encoding="utf-8")
    output = tmp_path / "run"
    scripts.run(
        "finetune_classification",
        *("--encoder", tmp_path / "vectors", "--train", train, "--text", "text"),
        *("--label", "label", "--epochs", 2, "--batch-size", 8, "--output", output),
        *("--learning-rate", 0.05, "--sequence-length", 16),
    )
    text_model = presets.load(output / "preset")
    expected = text_model.predict(TEXTS)
    served = ("--name", "films", "--saved-models", tmp_path / "s")
    main(["export", str(output / "preset"), *map(str, served)])
    signatures = tf.saved_model.load(str(tmp_path / "s" / "films" / "1")).signatures
    found = signatures["serving_default"](text=tf.constant(TEXTS))
    np.testing.assert_allclose(found["score"], [answer["score"] for answer in expected], atol=1e-5)


@pytest.mark.once
def test_a_table_that_is_too_small_is_refused(tmp_path):
    vectors = make_vectors(subwords=True)
    preprocessor = preprocessors.SubwordsPreprocessor.from_vectors(vectors)
    with pytest.raises(ValueError, match="`subword_ids` of up to 59, but the table .* 59 rows"):
        presets.save(tmp_path / "p", models.SubwordEncoder(59, 8), preprocessor)
    presets.save(tmp_path / "p", models.SubwordEncoder(60, 8), preprocessor)
    words = preprocessors.WordsPreprocessor.from_vectors(vectors)
    with pytest.raises(ValueError, match="11 entries but the model's embedding table only 10"):
        presets.save(tmp_path / "q", models.StaticEncoder(10, 8), words)
