import json

import numpy as np
import pytest
import tensorflow as tf

from kctx import objectives, presets
from recipes import export as recipe
from tests.export.films import make_encoder, make_preprocessor, with_lively_weights

pytestmark = pytest.mark.once


def test_masked_lm_preset_to_served_model(tmp_path, capsys):
    encoder = make_encoder()
    model = with_lively_weights(objectives.MaskedLM(encoder))
    presets.save(tmp_path / "runs" / "films" / "preset", model, make_preprocessor())
    recipe.main(
        recipe.Config(
            preset=tmp_path / "runs" / "films" / "preset",
            saved_models=tmp_path / "served",
            weights_dtype="bfloat16",
            top_k=2,
            example=("the [MASK] 中", "[MASK]"),
        )
    )
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

    # Fine-tuning can go on from what lies in the export.
    again = presets.load(extra / "preset")
    for mine, theirs in zip(again.model.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_task_is_told_by_the_outputs():
    encoder = make_encoder()
    assert recipe.task_of(presets.TextModel(encoder)) == "embedding"
    assert recipe.task_of(presets.TextModel(objectives.MaskedLM(encoder))) == "masked_lm"
    assert recipe.task_of(presets.TextModel(objectives.NextSentence(encoder))) == "classification"
    assert recipe.task_of(presets.TextModel(encoder, task="regression")) == "regression"
