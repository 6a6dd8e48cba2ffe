"""Preset folders: a model, its preprocessor and its labels, written and read by one call."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import keras
import keras_nlp
import numpy as np
import pytest

from kctx import presets
from kctx.heads import Classifier, Regressor, attach
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from kctx.preprocessors import BERTPreprocessor
from kctx.tasks import Classification, batches, task_of
from kctx.tokenizers import WordPieceTokenizer

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"the a good bad film was".split()]
TEXTS = ["the good film", "bad", "", "was the film a good film was it " * 5, "ein Film, 好"]
INPUTS = {
    "token_ids": np.array([[2, 5, 6, 3], [2, 7, 3, 0]], "int32"),
    "segment_ids": np.array([[0, 1, 1, 1], [0, 0, 0, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool),
    "mask_positions": np.array([[1, 2], [0, 1]], "int32"),
}


def make_encoder(**options):
    encoder = BERT(30, 2, 8, 2, 16, max_sequence_length=48, **options)
    rng = np.random.default_rng(0)
    for weight in encoder.weights:
        weight.assign(weight + 0.3 * rng.normal(size=weight.shape).astype("float32"))
    return encoder


def make_preprocessor(**options):
    return BERTPreprocessor(WordPieceTokenizer(VOCABULARY), **{"sequence_length": 40, **options})


def make_classifier(head=None, **options):
    model = attach(make_encoder(**options), head or Classifier(3))
    kernel = model.layers[-1].dense.kernel
    kernel.assign(np.random.default_rng(1).normal(size=kernel.shape).astype("float32"))
    return model


def make_text_model(labels=("bad", "good", "neutral")):
    return presets.TextModel(make_classifier(), make_preprocessor(), "classification", list(labels))


def make_joint(**options):
    encoder = make_encoder(**options)
    return Joint([MaskedLM(encoder), NextSentence(encoder)])


def outputs_of(model):
    outputs = model({key: INPUTS[key] for key in model.input})
    return [
        keras.ops.convert_to_numpy(keras.ops.cast(output, "float32"))
        for output in keras.tree.flatten(outputs)
    ]


def assert_same_outputs(found, expected, tolerance=1e-6):
    for mine, theirs in zip(outputs_of(found), outputs_of(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance)


MODELS = {
    "encoder": (make_encoder, None),
    "no pooler": (lambda: make_encoder(pooler=False), None),
    "joint": (make_joint, None),
    "classifier": (make_classifier, "classification"),
    "mean pooling": (lambda: make_classifier(Classifier(2, pooling="mean")), "classification"),
    "regressor": (lambda: make_classifier(Regressor()), "regression"),
    "bfloat16": (lambda: make_encoder(dtype="bfloat16"), None),
    "mixed": (lambda: make_joint(dtype="mixed_bfloat16"), None),
}


@pytest.mark.parametrize("kind", MODELS)
def test_round_trip(tmp_path, kind):
    make, task = MODELS[kind]
    model = make()
    presets.save(tmp_path / "p", model)
    files = sorted(path.name for path in (tmp_path / "p").iterdir())
    expected = ["config.json", "metadata.json", "model.weights.h5"]
    assert files == (expected if task is None else [*expected, "task.json"])
    loaded = presets.load(tmp_path / "p")
    assert type(loaded.model) is type(model)
    assert loaded.task == task
    assert [w.dtype for w in loaded.model.weights] == [w.dtype for w in model.weights]
    assert_same_outputs(loaded.model, model)


def test_in_the_middle_of_training(tmp_path):
    """The moments of the optimizer stay out of the preset, and with the model that goes on."""
    model = make_joint()
    model.compile_for(keras.optimizers.Adam(0.01))
    inputs = {key: INPUTS[key][:2] for key in model.input}
    masked = np.ones(inputs["mask_positions"].shape, "int32")
    labels = {"masked_lm": masked, "next_sentence": np.array([0, 1])}

    class Save(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if keras.config.backend() == "jax":
                self.model.jax_state_sync()
            presets.save(tmp_path / str(epoch), self.model)

    history = model.fit(inputs, labels, epochs=4, callbacks=[Save()], verbose=0).history["loss"]
    assert history[3] < history[0]
    assert int(model.optimizer.iterations) == 4
    assert_same_outputs(presets.load(tmp_path / "3").model, model)


def test_all_parts(tmp_path):
    text_model = make_text_model()
    text_model.save(tmp_path / "p")
    loaded = presets.load(tmp_path / "p")
    assert loaded.labels == ["bad", "good", "neutral"]
    assert isinstance(loaded.encoder, BERT)
    assert loaded.preprocessor.get_config() == text_model.preprocessor.get_config()
    assert loaded.preprocessor.tokenizer.vocabulary == VOCABULARY
    assert loaded.predict(TEXTS) == text_model.predict(TEXTS)
    described = loaded.describe()
    for part in ("BERT", "classification", "bad, good, neutral", "11 entries", "40 tokens"):
        assert part in described


def test_dtype_on_load(tmp_path):
    model = make_classifier()
    presets.save(tmp_path / "p", model)
    loaded = presets.load(tmp_path / "p", dtype="mixed_bfloat16")
    assert loaded.encoder.dtype_policy.name == "mixed_bfloat16"
    assert loaded.encoder.blocks[1].attention.query.compute_dtype == "bfloat16"
    assert loaded.model.layers[-1].dense.compute_dtype == "float32"  # logits stay
    assert_same_outputs(loaded.model, model, tolerance=0.2)
    presets.save(tmp_path / "q", make_joint(dtype="mixed_bfloat16"))
    loaded = presets.load(tmp_path / "q", dtype="float32")
    policies = {layer.dtype_policy.name for layer in loaded.model._flatten_layers()}
    assert policies == {"float32"}


@pytest.mark.once
def test_keras_nlp_reads_an_encoder(tmp_path):
    encoder = make_encoder()
    presets.save(tmp_path / "p", encoder, make_preprocessor())
    loaded = keras_nlp.models.Backbone.from_preset(str(tmp_path / "p"))
    assert type(loaded) is BERT
    assert_same_outputs(loaded, encoder)
    loaded = keras_nlp.models.Backbone.from_preset(str(tmp_path / "p"), dtype="bfloat16")
    assert loaded.token_embedding.embeddings.dtype == "bfloat16"


@pytest.mark.once
@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_other_backends_read_it(tmp_path, backend):
    """In a child process, which writes another preset that this backend reads in turn."""
    pytest.importorskip(backend)
    text_model = make_text_model()
    text_model.save(tmp_path / "p")
    program = (
        "import json, sys; from kctx import presets\n"
        "loaded = presets.load(sys.argv[1]); loaded.save(sys.argv[2])\n"
        "print(json.dumps(loaded.predict(json.loads(sys.argv[3]))))"
    )
    child = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "p", tmp_path / "q", json.dumps(TEXTS)],
        env={**os.environ, "KERAS_BACKEND": backend, "PYTHONUTF8": "1"},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert child.returncode == 0, child.stderr
    expected = text_model.predict(TEXTS)
    for answers in (json.loads(child.stdout), presets.load(tmp_path / "q").predict(TEXTS)):
        for answer, other in zip(answers, expected, strict=True):
            assert answer["label"] == other["label"]
            assert answer["scores"] == pytest.approx(other["scores"], abs=1e-5)


# Answers to raw text


@pytest.mark.once
def test_predict_by_hand():
    """Label and scores are the softmax of the logits of the text alone."""
    text_model = make_text_model()
    answers = text_model.predict(TEXTS)
    assert len(answers) == len(TEXTS)
    for text, answer in zip(TEXTS, answers, strict=True):
        inputs = {k: np.asarray(v) for k, v in text_model.preprocessor([text]).items()}
        logits = keras.ops.convert_to_numpy(text_model.model(inputs))[0].astype("float64")
        scores = np.exp(logits) / np.exp(logits).sum()
        assert list(answer["scores"]) == text_model.labels
        assert list(answer["scores"].values()) == pytest.approx(list(scores), abs=1e-5)
        assert answer["label"] == text_model.labels[int(logits.argmax())]
        assert answer["score"] == answer["scores"][answer["label"]]
    assert len({answer["score"] for answer in answers}) == len(TEXTS)  # order is seen


def test_predict_is_the_same_alone_and_in_any_batch():
    text_model = make_text_model()
    texts = [" ".join(VOCABULARY[5 + (i * j) % 6] for j in range(i)) for i in range(12)]
    alone = [text_model.predict([text])[0] for text in texts]
    for batch_size in (3, 32):
        for found, expected in zip(
            text_model.predict(texts, batch_size=batch_size), alone, strict=True
        ):
            assert found["label"] == expected["label"]
            assert found["scores"] == pytest.approx(expected["scores"], abs=1e-5)


@pytest.mark.once
def test_predict_compiles_few_shapes(monkeypatch):
    text_model = make_text_model()
    seen = []
    predict = text_model.model.predict_on_batch

    def spy(inputs):
        seen.append(inputs["token_ids"].shape)
        return predict(inputs)

    text_model.model.predict_on_batch = spy
    monkeypatch.setattr(batches, "BATCH_TOKENS", 256)
    text_model.predict(["the " * (i % 40) for i in range(70)], batch_size=8)
    assert {length for _, length in seen} <= {16, 32, 40}  # 40: the most the preprocessor gives
    assert {batch for batch, _ in seen} <= {2, 4, 8}  # fewer of long rows, and the last ones
    assert all(batch * length <= 256 for batch, length in seen)
    assert (4, 40) in seen
    assert [length for _, length in seen] == sorted(length for _, length in seen)
    seen.clear()
    text_model.predict(["the"] * 5, batch_size=8)
    text_model.predict(["the"] * 3, batch_size=3)
    assert seen == [(8, 16), (3, 16)]


@pytest.mark.once
def test_predict_pairs_and_order_over_many_chunks(monkeypatch):
    monkeypatch.setattr(Classification, "batches_at_once", 2)
    text_model = make_text_model()
    texts = ["the good film " * (i % 3) for i in range(9)]
    pairs = ["bad " * (i % 4) for i in range(9)]
    answers = text_model.predict(texts, pairs, batch_size=2)
    for text, pair, answer in zip(texts, pairs, answers, strict=True):
        expected = text_model.predict(text, pair)[0]
        assert answer["scores"] == pytest.approx(expected["scores"], abs=1e-5)
    assert answers[0]["scores"] != pytest.approx(text_model.predict([""])[0]["scores"], abs=1e-5)


@pytest.mark.once
def test_predict_edges():
    text_model = make_text_model()
    assert text_model.predict([]) == []
    assert text_model.predict("the film") == text_model.predict(["the film"])
    assert text_model.predict(np.array(["the film"])) == text_model.predict((b"the film",))
    regressor = presets.TextModel(
        make_classifier(Regressor()), make_preprocessor(pad_to_length=True), "regression"
    )
    (answer,) = regressor.predict(["the film"])
    assert list(answer) == ["score"] and isinstance(answer["score"], float)


@pytest.mark.once
def test_labels_may_be_renamed():
    text_model = make_text_model()
    before = text_model.predict("the film")[0]["label"]
    text_model.labels[text_model.labels.index(before)] = "other"
    assert text_model.predict("the film")[0]["label"] == "other"


@pytest.mark.once
def test_predict_refusals():
    text_model = make_text_model()
    for stream in (text_model.predict_stream, text_model.embed_stream, text_model.embed_words):
        with pytest.raises(TypeError, match="must stand in a list. Received: 'a text'"):
            list(stream("a text"))
    with pytest.raises(TypeError, match=r"`texts\[1\]` must be a str. Received: None"):
        text_model.predict(["a", None])
    with pytest.raises(TypeError, match=r"`pairs\[0\]` must be a str. Received: 3"):
        text_model.predict(["a"], [3])
    with pytest.raises(ValueError, match="`pairs` must be as many as `texts`: 2. Received: 1"):
        text_model.predict(["a", "b"], ["c"])
    single = make_preprocessor()
    single.takes_pairs = False
    with pytest.raises(ValueError, match="`pairs` must be None: BERTPreprocessor takes single"):
        presets.TextModel(text_model.model, single, "classification").predict("a", "b")
    with pytest.raises(ValueError, match="`batch_size`"):
        text_model.predict(["a"], batch_size=0)
    with pytest.raises(ValueError, match="needs a task and a preprocessor.* kctx embed"):
        presets.TextModel(make_encoder(), make_preprocessor()).predict(["a"])
    with pytest.raises(ValueError, match="needs a task and a preprocessor"):
        presets.TextModel(make_classifier(), None, "classification", ["a"]).predict(["a"])


def test_a_model_taught_on_pairs_asks_for_them(tmp_path):
    plain = make_text_model()
    model = presets.TextModel(
        plain.model, plain.preprocessor, "classification", plain.labels, {"pairs": True}
    )
    model.save(tmp_path)
    model = presets.load(tmp_path)
    with pytest.raises(TypeError, match="classification needs `pairs`"):
        model.predict(["a film"])
    with pytest.raises(ValueError, match="must have the parts text, text_pair"):
        list(model.predict_stream(["a film"]))
    assert model.predict("a film", "a book") == plain.predict("a film", "a book")
    both = ("text", "text_pair")
    assert model.asked().signatures() == {"serving_default": both, "pair": both}
    assert plain.asked().signatures() == {"serving_default": both[:1], "pair": both}
    single = make_preprocessor()
    single.takes_pairs = False
    with pytest.raises(ValueError, match="pairs=True needs a preprocessor of two texts"):
        presets.TextModel(plain.model, single, "classification", None, {"pairs": True}).asked()


# What a model is for


@pytest.mark.once
def test_task_is_told_by_head_outputs_or_labels():
    encoder = make_encoder()
    dense = keras.Model(encoder.input, keras.layers.Dense(2)(encoder.output["pooled_output"]))
    cases = [
        (make_classifier(), "classification"),
        (make_classifier(Classifier(1)), "regression"),  # one class is always probable by 1
        (make_classifier(Regressor()), "regression"),
        (encoder, "embedding"),
        (MaskedLM(encoder), "masked_lm"),
        (make_joint(), "masked_lm"),
        (NextSentence(encoder), "classification"),
        (dense, None),
    ]
    assert [task_of(model) for model, _ in cases] == [task for _, task in cases]
    assert task_of(dense, labels=["a", "b"]) == "classification"
    assert task_of(make_classifier(Regressor()), labels=["a"]) == "regression"


@pytest.mark.once
def test_encoder_and_head_in_one_graph(tmp_path):
    """A model without a part that is the encoder: nothing but `encoder` asks for one."""
    encoder = make_encoder()
    model = keras.Model(encoder.input, Classifier(3)(encoder.output))
    with pytest.raises(ValueError, match="31 entries but the model's embedding table only 30"):
        tokenizer = WordPieceTokenizer([*VOCABULARY, *(f"w{i}" for i in range(20))])
        presets.save(tmp_path / "p", model, BERTPreprocessor(tokenizer, 40))
    with pytest.raises(ValueError, match="more than the 48 positions"):
        presets.save(tmp_path / "p", model, make_preprocessor(sequence_length=49))
    presets.save(tmp_path / "p", model, make_preprocessor(), labels=["a", "b", "c"])
    loaded = presets.load(tmp_path / "p")
    assert_same_outputs(loaded.model, model)
    assert set(loaded.predict(TEXTS)[0]["scores"]) == {"a", "b", "c"}
    assert "classification" in loaded.describe() and "encoder" not in loaded.describe()
    with pytest.raises(ValueError, match=r"exactly one encoder.*heads.attach\(encoder, head\)"):
        _ = loaded.encoder


# What must be refused


@pytest.mark.once
def test_scores_that_are_no_numbers_are_an_error():
    model = make_classifier()
    model.set_weights([np.full_like(weight, np.nan) for weight in model.get_weights()])
    with pytest.raises(FloatingPointError, match="no finite numbers"):
        presets.TextModel(model, make_preprocessor(), "classification", list("abc")).predict(["a"])


def test_the_working_directory_is_not_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("", "."):
        with pytest.raises(ValueError, match="must not be the folder that the process works in"):
            presets.save(folder, make_classifier())
    assert list(tmp_path.iterdir()) == []


def test_parts_that_do_not_fit(tmp_path):
    model = make_classifier()

    def save(message, *arguments, **options):
        with pytest.raises(ValueError, match=message):
            presets.save(tmp_path / "p", *arguments, **options)
        assert list(tmp_path.iterdir()) == []

    save("`labels` must be one for each class: 3. Received: 2", model, labels=["a", "b"])
    save("`labels` must be different", model, labels=["a", "b", "a"])
    save("`labels` must be a list of strings. Received: 'abc'", model, labels="abc")
    save("`labels` must be different strings", model, labels=["a", "b", 3])
    save("`task` must be one of", model, task="translation")
    save("must have a head for tagging", model, task="tagging")
    save("1 output for regression. Received: 3", model, task="regression")
    save(
        "belong to classification and tagging only",
        make_classifier(Regressor()),
        labels=["a"],
        task="regression",
    )
    save("classification and tagging only", make_classifier(Regressor()), labels=["a"])
    save(r"one output \(B, C\)", make_encoder(), labels=["a"])
    save("more than the 48 positions", model, make_preprocessor(sequence_length=49))
    tokenizer = WordPieceTokenizer([*VOCABULARY, *(f"w{i}" for i in range(20))])
    preprocessor = BERTPreprocessor(tokenizer, sequence_length=40)
    save("31 entries but the model's embedding table only 30", model, preprocessor)
    inputs = keras.Input((3,))
    code = keras.Model(inputs, keras.layers.Lambda(lambda x: x * 2)(inputs))
    save("must not hold a `Lambda`", code)


@pytest.mark.once
def test_broken_folders(tmp_path):
    folder = tmp_path / "p"

    def load(error, message):
        with pytest.raises(error, match=message):
            presets.load(folder)
        make_text_model().save(folder)

    load(FileNotFoundError, "must be a preset folder")
    (folder / "model.weights.h5").unlink()
    load(FileNotFoundError, "lacks model.weights.h5")
    (folder / "config.json").unlink()
    load(FileNotFoundError, "lacks config.json")
    (folder / "config.json").write_text("{", encoding="utf-8")
    load(ValueError, "config.json is not valid JSON")
    (folder / "config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    load(ValueError, "is not the configuration of a preset.*kctx.convert")
    weights = folder / "model.weights.h5"
    weights.write_bytes(weights.read_bytes()[:-1000])
    load(ValueError, "is not a whole file of weights")
    weights.write_bytes(b"")
    load(ValueError, "is not a whole file of weights")
    task = {"task": "classification", "labels": ["a", "b"]}
    (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
    load(ValueError, r"task.json does not fit the model.*each class: 3. Received: 2")
    (folder / "metadata.json").write_text('{"format_version": 2}', encoding="utf-8")
    load(ValueError, "written by a newer kctx")
    vocabulary = "".join(f"{token}\n" for token in [*VOCABULARY, *map(str, range(20))])
    (folder / "vocabulary.txt").write_text(vocabulary, encoding="utf-8")
    load(ValueError, "31 entries but the model's embedding table only 30")


@pytest.mark.once
@pytest.mark.parametrize("change", [{"num_layers": 1}, {"num_layers": 3}, {"hidden_dim": 4}])
def test_weights_of_another_configuration(tmp_path, change):
    presets.save(tmp_path / "p", make_encoder())
    path = tmp_path / "p" / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["config"] |= change
    path.write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match=r"another configuration|does not fit the model"):
        presets.load(tmp_path / "p")


@pytest.mark.once
def test_code_in_a_configuration_is_not_run(tmp_path):
    inputs = keras.Input((3,))
    layer = keras.layers.Lambda(lambda x: x * 2)
    config = keras.saving.serialize_keras_object(keras.Model(inputs, layer(inputs)))
    presets.save(tmp_path / "p", make_encoder())
    (tmp_path / "p" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(ValueError, match="Cannot build the model"):
        presets.load(tmp_path / "p")
    for module, name in (("os", "system"), ("builtins", "eval"), ("subprocess", "Popen")):
        config = {"module": module, "class_name": name, "config": {}, "registered_name": name}
        (tmp_path / "p" / "config.json").write_text(json.dumps(config), encoding="utf-8")
        with pytest.raises(ValueError, match="Cannot build the model"):
            presets.load(tmp_path / "p")


# Nothing is lost


@pytest.mark.once
def test_other_files_are_never_deleted(tmp_path):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match="files that would be lost: notes.txt"):
        presets.save(tmp_path, make_encoder())
    with pytest.raises(FileExistsError, match="must not be a file"):
        presets.save(tmp_path / "notes.txt", make_encoder())
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.once
def test_files_of_any_tokenizer_are_replaced(tmp_path):
    """A preset says itself which files are its own; no table of all tokenizers is needed."""

    class Merging(WordPieceTokenizer):
        def save_assets(self, folder):
            super().save_assets(folder)
            (folder / "merges.txt").write_text("a b", encoding="utf-8")

    text_model = make_text_model()
    text_model.preprocessor = BERTPreprocessor(Merging(VOCABULARY), sequence_length=40)
    text_model.save(tmp_path / "p")
    text_model.save(tmp_path / "p")
    assert (tmp_path / "p" / "merges.txt").is_file()
    make_text_model().save(tmp_path / "p")
    assert not (tmp_path / "p" / "merges.txt").exists()
    (tmp_path / "p" / "merges.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(FileExistsError, match=r"would be lost: merges.txt"):
        make_text_model().save(tmp_path / "p")


@pytest.mark.once
def test_previous_preset_stays_when_saving_fails(tmp_path, monkeypatch):
    text_model = make_text_model()
    text_model.save(tmp_path / "p")
    expected = text_model.predict(TEXTS)

    def full_disk(self, *args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(keras.Model, "save_weights", full_disk)
    with pytest.raises(OSError, match="No space left"):
        text_model.save(tmp_path / "p")
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert presets.load(tmp_path / "p").predict(TEXTS) == expected


@pytest.mark.once
def test_stale_parts_do_not_survive(tmp_path):
    """A bare encoder saved over a classifier has no labels of the classifier's."""
    make_text_model().save(tmp_path / "p")
    presets.save(tmp_path / "p", make_encoder())
    loaded = presets.load(tmp_path / "p")
    assert (loaded.task, loaded.labels, loaded.preprocessor) == (None, None, None)


@pytest.mark.once
def test_labels_and_tasks_that_are_not_the_models():
    for labels in (["a", "a", "b"], ["a", "b"], [1, 2, 3]):
        text_model = presets.TextModel(
            make_classifier(), make_preprocessor(), "classification", labels
        )
        with pytest.raises(ValueError, match="`labels` must be"):
            text_model.predict("a")
    with pytest.raises(ValueError, match="must have a head for span"):
        presets.TextModel(make_classifier(), make_preprocessor(), "span").predict("a", "b")
    with pytest.raises(TypeError, match="`texts` must be a list. Received: {'a': 1}"):
        make_text_model().predict({"a": 1})
    with pytest.raises(TypeError, match="`texts` must be a list. Received: None"):
        make_text_model().embed(None)


@pytest.mark.once
def test_parts_that_were_lost_are_noticed(tmp_path):
    folder = tmp_path / "p"

    def refused(error, message):
        with pytest.raises(error, match=message):
            presets.load(folder)
        make_text_model().save(folder)

    make_text_model().save(folder)
    (folder / "task.json").unlink()  # without it, labels would be numbers
    refused(FileNotFoundError, "lacks task.json")
    path = folder / "vocabulary.txt"
    path.write_text("".join(f"{token}\n" for token in VOCABULARY[:-1]), encoding="utf-8")
    refused(ValueError, "The vocabulary in .* is not whole: it has 10 entries, 11 were written")
    (folder / "metadata.json").write_text('{"format_version": "1"}', encoding="utf-8")
    refused(ValueError, "`format_version` in .* must be an integer. Received: '1'")


@pytest.mark.once
@pytest.mark.parametrize("name", ["vocabulary_size", "num_layers", "max_sequence_length"])
def test_sizes_that_no_weights_have_take_no_memory(tmp_path, name):
    make_text_model().save(tmp_path / "p")
    path = tmp_path / "p" / "config.json"
    text = re.sub(rf'("{name}": )\d+', r"\g<1>10000000000000", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"`{name}` in .*must fit to .* Received: 10000000000000"):
        presets.load(tmp_path / "p")
