import json
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from kctx import export, heads, objectives, presets
from kctx.export import writing
from tests.export.films import (
    LABELS,
    TEXTS,
    VOCABULARY,
    make_encoder,
    make_preprocessor,
    predict,
    softmax,
)

SCORES_TOLERANCE = 1e-5


def listing(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*"))


def signature_table(folder):
    """Golden form of the signatures: {name: ({key: (dtype, shape)}, {the same})}."""
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())

    def side(tensors):
        return {
            key: (tf.dtypes.as_dtype(info.dtype).name, [dim.size for dim in info.tensor_shape.dim])
            for key, info in tensors.items()
        }

    definitions = saved.meta_graphs[0].signature_def
    return {
        name: (side(definition.inputs), side(definition.outputs))
        for name, definition in definitions.items()
        if not name.startswith("__")
    }


IDS = {
    "token_ids": ("int32", [-1, -1]),
    "segment_ids": ("int32", [-1, -1]),
    "padding_mask": ("bool", [-1, -1]),
}
TEXT = ("string", [-1])


def test_signatures_are_the_documented_ones(exported):
    answers = {"label": TEXT, "score": ("float32", [-1]), "scores": ("float32", [-1, 3])}
    assert signature_table(exported.folder) == {
        "serving_default": ({"text": TEXT}, answers),
        "pair": ({"text": TEXT, "text_pair": TEXT}, answers),
        "token_ids": (IDS, answers),
    }


def test_files_of_an_export(exported):
    assert exported.folder == exported.path / "1"
    assert sorted(entry.name for entry in exported.path.iterdir()) == ["1", "models.config"]
    assert 'base_path: "/models/films"' in (exported.path / "models.config").read_text()
    extra = exported.folder / "assets.extra"
    assert {entry.name for entry in extra.iterdir()} == {
        "README.md",
        "preset",
        "request_example.json",
        "request_example_pair.json",
        "request_example_token_ids.json",
        "response_example.json",
        "signature.json",
        "tf_serving_warmup_requests",
    }
    described = json.loads((extra / "signature.json").read_text(encoding="utf-8"))
    assert described["labels"] == LABELS
    table = signature_table(exported.folder)
    for name, (inputs, outputs) in table.items():
        assert set(described["signatures"][name]["inputs"]) == set(inputs)
        assert set(described["signatures"][name]["outputs"]) == set(outputs)
        for key in [*inputs, *outputs]:
            assert f"`{key}`" in (extra / "README.md").read_text(encoding="utf-8")


def test_answers_equal_predict(exported, served):
    answers = served.signatures["serving_default"](text=tf.constant(TEXTS))
    expected = softmax(predict(exported.model, exported.preprocessor, TEXTS))
    np.testing.assert_allclose(answers["scores"], expected, atol=SCORES_TOLERANCE)
    np.testing.assert_allclose(answers["score"], expected.max(-1), atol=SCORES_TOLERANCE)
    labels = [label.decode("utf-8") for label in answers["label"].numpy()]
    assert labels == [LABELS[index] for index in expected.argmax(-1)]
    assert len(set(labels)) > 1  # the comparison would mean little otherwise


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_any_batch_and_any_order(exported, served, batch):
    texts = TEXTS[:batch]
    together = served.signatures["serving_default"](text=tf.constant(texts, tf.string))
    assert together["scores"].shape == (batch, 3)
    assert together["label"].shape == (batch,)
    for index, text in enumerate(texts):
        alone = served.signatures["serving_default"](text=tf.constant([text]))
        np.testing.assert_allclose(
            alone["scores"][0], together["scores"][index], atol=SCORES_TOLERANCE
        )


@pytest.mark.parametrize("length", [3, 12])
def test_token_ids_equal_raw_text(exported, served, length):
    texts = TEXTS if length == 12 else ["a", "", "x"]
    inputs = exported.preprocessor(tf.constant(texts))
    assert inputs["token_ids"].shape[1] == length
    by_ids = served.signatures["token_ids"](**inputs)
    by_text = served.signatures["serving_default"](text=tf.constant(texts))
    for key, value in by_text.items():
        np.testing.assert_array_equal(by_ids[key], value)


def test_what_lies_behind_the_mask_is_ignored(exported, served):
    inputs = exported.preprocessor(tf.constant(["a film"]))
    expected = served.signatures["token_ids"](**inputs)["scores"]
    longer = {key: tf.pad(value, [[0, 0], [0, 5]]) for key, value in inputs.items()}
    longer["token_ids"] = tf.where(longer["padding_mask"], longer["token_ids"], 9)
    found = served.signatures["token_ids"](**longer)["scores"]
    np.testing.assert_allclose(found, expected, atol=SCORES_TOLERANCE)


def test_token_ids_without_rows_or_columns(served):
    for shape in [(0, 0), (0, 4), (2, 0)]:
        ids = tf.zeros(shape, tf.int32)
        mask = tf.zeros(shape, tf.bool)
        answers = served.signatures["token_ids"](token_ids=ids, segment_ids=ids, padding_mask=mask)
        assert answers["scores"].shape == (shape[0], 3)
        assert np.isfinite(answers["scores"]).all()


def test_pairs_equal_predict(exported, served):
    second = TEXTS[::-1]
    found = served.signatures["pair"](text=tf.constant(TEXTS), text_pair=tf.constant(second))
    expected = softmax(predict(exported.model, exported.preprocessor, TEXTS, second))
    np.testing.assert_allclose(found["scores"], expected, atol=SCORES_TOLERANCE)


def test_bad_requests_name_the_key(served):
    ids = tf.zeros((1, 4), tf.int32)
    mask = tf.ones((1, 4), tf.bool)
    call = served.signatures["token_ids"]
    for wrong in (25, -1, 10**6):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`token_ids` must lie in"):
            call(token_ids=ids + wrong, segment_ids=ids, padding_mask=mask)
    for wrong in (2, -1):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`segment_ids` must lie in"):
            call(token_ids=ids, segment_ids=ids + wrong, padding_mask=mask)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`segment_ids` must have the shape"):
        call(token_ids=ids, segment_ids=ids[:, :2], padding_mask=mask)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`token_ids` must have at most 12 col"
    ):
        call(
            token_ids=tf.zeros((1, 13), tf.int32),
            segment_ids=tf.zeros((1, 13), tf.int32),
            padding_mask=tf.ones((1, 13), tf.bool),
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match="`text_pair` must have as many"):
        served.signatures["pair"](text=tf.constant(["a", "b"]), text_pair=tf.constant(["a"]))


@pytest.mark.once
def test_second_version_in_bfloat16_leaves_the_first_untouched(exported, served):
    def content():
        return {file: file.read_bytes() for file in exported.folder.rglob("*") if file.is_file()}

    before = content()
    second = export.saved_model(
        exported.model,
        exported.preprocessor,
        exported.path,
        labels=LABELS,
        weights_dtype="bfloat16",
        include_preset=False,
        verbose=False,
    )
    assert second == exported.path / "2"
    assert content() == before
    assert not (second / "assets.extra" / "preset").exists()
    assert sorted(entry.name for entry in exported.path.iterdir()) == ["1", "2", "models.config"]

    def size(folder):
        return (folder / "variables" / "variables.data-00000-of-00001").stat().st_size

    matrices = sum(w.size for w in exported.model.get_weights() if w.ndim >= 2)
    saved_bytes = size(exported.folder) - size(second)
    assert 0.9 * 2 * matrices < saved_bytes < 1.05 * 2 * matrices
    loaded = tf.saved_model.load(str(second))
    found = loaded.signatures["serving_default"](text=tf.constant(TEXTS))["scores"]
    # Exactly what the model gives with its matrices rounded to bfloat16.
    rounded = keras.models.clone_model(exported.model)
    rounded.set_weights(
        [
            tf.cast(tf.cast(w, tf.bfloat16), tf.float32).numpy() if w.ndim >= 2 else w
            for w in exported.model.get_weights()
        ]
    )
    expected = softmax(predict(rounded, exported.preprocessor, TEXTS))
    np.testing.assert_allclose(found, expected, atol=SCORES_TOLERANCE)
    exact = served.signatures["serving_default"](text=tf.constant(TEXTS))["scores"]
    assert 1e-5 < np.abs(found - exact).max() < 0.05


def test_preset_in_the_export_can_be_trained_on(exported):
    loaded = presets.load(exported.folder / "assets.extra" / "preset")
    assert loaded.labels == LABELS
    for mine, theirs in zip(loaded.model.get_weights(), exported.model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_allclose(
        softmax(predict(loaded.model, loaded.preprocessor, TEXTS)),
        softmax(predict(exported.model, exported.preprocessor, TEXTS)),
        atol=SCORES_TOLERANCE,
    )


@pytest.mark.once
def test_error_of_the_child_reaches_the_caller(exported, monkeypatch, tmp_path):
    save = presets.save

    def save_and_break(folder, *args, **kwargs):
        save(folder, *args, **kwargs)
        (folder / "model.weights.h5").write_bytes(b"no weights")

    monkeypatch.setattr(writing.presets, "save", save_and_break)
    with pytest.raises(export.ExportError, match="not a whole file of weights"):
        export.saved_model(exported.model, exported.preprocessor, tmp_path / "broken")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_failure_in_the_middle_leaves_no_half_version(exported, monkeypatch, error):
    before = listing(exported.path)

    def half_write(job_folder, verbose):
        job = json.loads((job_folder / "job.json").read_text(encoding="utf-8"))
        (Path(job["folder"]) / "saved_model.pb").write_bytes(b"half")
        # A server that looks now sees whole versions only.
        numeric = [entry.name for entry in exported.path.iterdir() if entry.name.isdecimal()]
        assert all((exported.path / name / "saved_model.pb").stat().st_size > 4 for name in numeric)
        raise error

    monkeypatch.setattr(writing, "_run_child", half_write)
    with pytest.raises(type(error)):
        export.saved_model(exported.model, exported.preprocessor, exported.path, verbose=False)
    assert listing(exported.path) == before


@pytest.mark.once
def test_wrong_arguments(exported, tmp_path):
    model, preprocessor = exported.model, exported.preprocessor

    def attempt(model=model, preprocessor=preprocessor, path=tmp_path / "x", **kwargs):
        export.saved_model(model, preprocessor, path, **kwargs)

    cases = [
        (dict(task="translation"), "`task` must be one of .*classification.*'translation'"),
        (dict(labels=["a", "b"]), "`labels` must be one for each class: 3. Received: 2"),
        (dict(labels=["a", "b", "a"]), "`labels` must be different strings"),
        (dict(labels=["a"], task="embedding"), "`labels` belong to classification and tagging"),
        (dict(task="regression"), "must have 1 output for regression"),
        (dict(task="tagging"), "must have a head for tagging"),
        (dict(options={"stride": 3}), "Options of classification are: pairs. Received: stride"),
        (dict(embed="sum"), "`embed` must be one of .*'sum'"),
        (dict(task="masked_lm"), "must be a `MaskedLM` objective"),
        (dict(weights_dtype="int8"), "`weights_dtype` must be None or .*'int8'"),
        (dict(name="../x"), r"`name` becomes part of a URL.*'\.\./x'"),
        (dict(version=True), "`version` must be an int of at least 1, of 64 bits. Received: True"),
        (dict(version=0), "`version` must be an int of at least 1, of 64 bits. Received: 0"),
        (dict(version=2**63), "of 64 bits. Received: 9223372036854775808"),
        (dict(preprocessor=None), "`preprocessor` must turn raw text"),
        (dict(pooling="cls"), "`pooling` is no option of classification. Received: pooling='cls'"),
        (dict(examples=["a", {"words": ["a"]}]), r"`examples\[1\]` must be raw text, not words"),
    ]
    for arguments, message in cases:
        with pytest.raises(ValueError, match=message):
            attempt(**arguments)
    encoder = make_encoder()
    with pytest.raises(ValueError, match=r"`pooling` must be one of.*median"):
        attempt(model=encoder, task="embedding", pooling="median")
    with pytest.raises(ValueError, match="`top_k` must lie between 1 and the vocabulary"):
        attempt(model=objectives.MaskedLM(encoder), task="masked_lm", top_k=99)
    size = len(VOCABULARY)
    with pytest.raises(ValueError, match=f"vocabulary's {size} entries. Received: {size + 1}"):
        rounded_up = make_encoder(more_rows=8)
        attempt(model=objectives.MaskedLM(rounded_up), task="masked_lm", top_k=size + 1)
    unknown = keras.Model(encoder.input, keras.layers.Dense(2)(encoder.output["pooled_output"]))
    with pytest.raises(ValueError, match=f"`task` must be one of.*task=None, {unknown.name}"):
        attempt(model=unknown)
    with pytest.raises(FileExistsError, match="`version` must be a new one"):
        attempt(path=exported.path, version=1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.once
def test_class_of_a_script_is_refused(tmp_path):
    class Local(heads.Classifier):
        pass

    Local.__module__ = "__main__"
    model = heads.attach(make_encoder(), Local(2))
    with pytest.raises(ValueError, match=r"must not hold Local.*Move it to a module"):
        export.saved_model(model, make_preprocessor(), tmp_path / "local", verbose=False)
    assert list(tmp_path.iterdir()) == []
