import json
from typing import get_args

import keras
import numpy as np
import pytest
import tensorflow as tf

from kctx import export, heads, objectives, presets
from kctx.export import writing
from kctx.tasks import TASKS
from kctx_cli.export import Export
from kctx_cli.main import main
from tests.export.films import (
    TEXTS,
    VOCABULARY,
    make_encoder,
    make_preprocessor,
    predict,
    with_lively_weights,
)

pytestmark = pytest.mark.once


def job_of(folder):
    return json.loads((folder / "job.json").read_text(encoding="utf-8"))


def test_masked_lm_preset_to_served_model(tmp_path, capsys, monkeypatch):
    encoder = make_encoder()
    model = with_lively_weights(objectives.MaskedLM(encoder))
    presets.save(tmp_path / "runs" / "films" / "preset", model, make_preprocessor())
    arguments = [tmp_path / "runs" / "films" / "preset", "--saved-models", tmp_path / "served"]
    arguments += ["--weights-dtype", "bfloat16", "--top-k", 2]
    arguments += ["--example", "the [MASK] 中", "[MASK]"]
    main(["export", *map(str, arguments)])
    folder = tmp_path / "served" / "films"  # named after the folder above "preset"
    printed = capsys.readouterr().out
    assert "Task: masked_lm" in printed
    assert f'-v "{folder}:/models/films" -e MODEL_NAME=films tensorflow/serving' in printed
    assert "http://localhost:8501/v1/models/films:predict" in printed

    extra = folder / "1" / "assets.extra"
    assert f'curl -d @"{extra / "request_example.json"}"' in printed
    request = json.loads((extra / "request_example.json").read_text(encoding="utf-8"))
    assert request["instances"] == [{"text": "the [MASK] 中"}]
    loaded = tf.saved_model.load(str(folder / "1"))
    found = loaded.signatures["serving_default"](text=tf.constant(["the [MASK] 中"]))
    assert found["mask_count"].numpy().tolist() == [1] and found["tokens"].shape == (1, 1, 2)
    response = json.loads((extra / "response_example.json").read_text(encoding="utf-8"))
    (row,) = response["predictions"]
    assert row["tokens"] == [[token.decode("utf-8") for token in found["tokens"][0, 0].numpy()]]
    np.testing.assert_allclose(row["scores"], found["scores"][0], atol=1e-6)

    # Fine-tuning can go on from what lies in the export, and it can be exported again, otherwise.
    again = presets.load(extra / "preset")
    assert again.options == {"top_k": 2}
    jobs = []
    monkeypatch.setattr(writing, "_run_child", lambda job, verbose: jobs.append(job_of(job)))
    for more in ((), ("--top-k", "3")):
        main(["export", str(extra / "preset"), "--saved-models", str(tmp_path / "again"), *more])
    assert [job["options"] for job in jobs] == [{"top_k": 2}, {"top_k": 3}]
    for mine, theirs in zip(again.model.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_regressor_in_one_graph_with_its_encoder(tmp_path, capsys):
    """Nobody names the task, and no layer is an encoder: the limits are those of its tables."""
    encoder, preprocessor = make_encoder(), make_preprocessor()
    model = keras.Model(encoder.input, heads.Regressor()(encoder.output))
    presets.save(tmp_path / "films", with_lively_weights(model), preprocessor)
    main(["export", str(tmp_path / "films"), "--saved-models", str(tmp_path / "served")])
    assert "Task: regression" in capsys.readouterr().out
    signatures = tf.saved_model.load(str(tmp_path / "served" / "films" / "1")).signatures
    found = signatures["serving_default"](text=tf.constant(TEXTS))
    assert list(found) == ["score"]
    expected = predict(model, preprocessor, TEXTS)[:, 0]
    np.testing.assert_allclose(found["score"], expected, atol=1e-5)
    inputs = preprocessor(tf.constant(["a"]))
    inputs["token_ids"] += len(VOCABULARY)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`token_ids` must lie in"):
        signatures["token_ids"](**inputs)


def test_every_task_can_be_named():
    choices, none = get_args(Export.__annotations__["task"])
    assert set(get_args(choices)) == set(TASKS) and none is type(None)


def test_export_is_told_no_task_by_default(tmp_path, monkeypatch):
    """Nor by the command: the function finds it, as `presets.save` does."""
    jobs = []
    monkeypatch.setattr(writing, "_run_child", lambda folder, verbose: jobs.append(job_of(folder)))
    encoder = make_encoder()
    models = {
        "embedding": encoder,
        "masked_lm": objectives.MaskedLM(encoder),
        "classification": heads.attach(encoder, heads.Classifier(3)),
        "regression": heads.attach(encoder, heads.Regressor()),
    }
    for task, model in models.items():
        export.saved_model(model, make_preprocessor(), tmp_path / task, verbose=False)
        assert jobs[-1]["task"] == task
    explicit = heads.attach(encoder, heads.Classifier(1))
    export.saved_model(explicit, make_preprocessor(), tmp_path / "x", task="classification")
    assert (jobs[-1]["task"], jobs[-1]["labels"]) == ("classification", ["0"])
