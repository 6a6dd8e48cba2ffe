"""Heads of published checkpoints against stored outputs of the public PyTorch implementation."""

import json

import keras
import numpy as np
import pytest

from kctx import convert, heads
from tests.parity.test_bert_parity import INPUTS, assert_equal, numpy_of, reference, write_folder

KINDS = {
    "SequenceClassification": heads.Classifier,
    "Regression": heads.Regressor,
    "TokenClassification": heads.Tagger,
    "QuestionAnswering": heads.Span,
    "MultipleChoice": heads.ChoiceScorer,
}


@pytest.fixture(scope="module")
def arrays():
    return reference("heads")


def load(folder, arrays, kind):
    """The checkpoint of a kind, with its name among the `architectures`."""
    own = {
        name.removeprefix(f"{kind}/"): value
        for name, value in arrays.items()
        if name.startswith((f"{kind}/weights/", "weights/"))
    }
    architecture = "BertFor" + kind.replace("Regression", "SequenceClassification")
    config = {**json.loads(str(arrays["config"])), "architectures": [architecture]}
    return convert.load_model(
        write_folder(folder, {**own, "config": json.dumps(config)}, "bert.", "classifier.", "qa_")
    )


def inputs_of(model, arrays):
    inputs = {name: arrays[name] for name in INPUTS}
    if "choice_mask" in model.input:
        return {**inputs, "choice_mask": np.ones(inputs["token_ids"].shape[:2], bool)}
    inputs = {name: value.reshape(-1, value.shape[-1]) for name, value in inputs.items()}
    mask = inputs["padding_mask"]
    places = np.where(mask, np.arange(mask.shape[1]), 0).astype("int32")
    extra = {"word_positions": places, "word_mask": mask, "answer_mask": mask}
    return {**inputs, **{name: extra[name] for name in set(extra) & set(model.input)}}


@pytest.mark.parametrize("kind", KINDS)
def test_logits(kind, arrays, tmp_path):
    model, report = load(tmp_path / "m", arrays, kind)
    assert type(heads.head_of(model)) is KINDS[kind]
    assert not report.missing and not report.unexpected
    inputs = inputs_of(model, arrays)
    found = numpy_of(model(inputs))
    if kind == "QuestionAnswering":
        mask = inputs["padding_mask"]
        assert not mask.all()
        assert_equal(found[..., 0], arrays[f"{kind}/start_logits"], mask)
        assert_equal(found[..., 1], arrays[f"{kind}/end_logits"], mask)
        return
    mask = inputs["padding_mask"] if kind == "TokenClassification" else None
    assert_equal(found, arrays[f"{kind}/logits"], mask)


def test_loss_of_spans_is_theirs(arrays):
    """The mean of two cross-entropies, from their logits by hand, where all may be an answer."""
    logits = np.stack(
        [arrays["QuestionAnswering/start_logits"], arrays["QuestionAnswering/end_logits"]], axis=-1
    )
    labels = np.tile([[1, 2]], (len(logits), 1)).astype("int32")
    shifted = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    wanted = -(shifted[:, 1, 0].mean() + shifted[:, 2, 1].mean()) / 2
    loss = heads.Span().output_loss()(labels, keras.ops.convert_to_tensor(logits))
    np.testing.assert_allclose(float(loss), wanted, rtol=1e-5)
