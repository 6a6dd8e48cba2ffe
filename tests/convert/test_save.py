"""Saving in Hugging Face's format, and reading it back."""

import json

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from kctx import convert
from kctx.heads import (
    ChoiceScorer,
    Classifier,
    CRFTagger,
    Regressor,
    Span,
    Tagger,
    attach,
    attach_choices,
    encoder_of,
)
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence
from kctx.preprocessors import BERTPreprocessor
from kctx.presets import TextModel
from kctx.tokenizers import WordPieceTokenizer
from tests.convert.folders import (
    CLASSIFIER_SHAPES,
    MASKED_LM_SHAPES,
    NEXT_SENTENCE_SHAPES,
    VOCABULARY,
    dense,
    encoder_shapes,
)

INPUTS = {
    "token_ids": np.array([[2, 5, 6, 3], [2, 7, 3, 0]], "int32"),
    "segment_ids": np.array([[0, 1, 1, 2], [0, 0, 0, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], bool),
}


def make_encoder(**options):
    sizes = {"max_sequence_length": 12, "num_segments": 3, **options}
    encoder = BERT(30, 2, 8, 2, 16, **sizes)
    rng = np.random.default_rng(0)
    for weight in encoder.weights:
        weight.assign(weight + 0.1 * rng.normal(size=weight.shape).astype("float32"))
    return encoder


def pretraining():
    encoder = make_encoder()
    return Joint([MaskedLM(encoder), NextSentence(encoder)])


KINDS = {
    "BertModel": (make_encoder, {}),
    "BertForPreTraining": (pretraining, {**MASKED_LM_SHAPES, **NEXT_SENTENCE_SHAPES}),
    "BertForMaskedLM": (lambda: MaskedLM(make_encoder(pooler=False)), MASKED_LM_SHAPES),
    "BertForNextSentencePrediction": (lambda: NextSentence(make_encoder()), NEXT_SENTENCE_SHAPES),
    "BertForSequenceClassification": (
        lambda: attach(make_encoder(), Classifier(3)),
        CLASSIFIER_SHAPES,
    ),
    "BertForTokenClassification": (
        lambda: attach(make_encoder(pooler=False), Tagger(3)),
        CLASSIFIER_SHAPES,
    ),
    "BertForQuestionAnswering": (
        lambda: attach(make_encoder(pooler=False), Span()),
        dense("qa_outputs", 8, 2),
    ),
    "BertForMultipleChoice": (
        lambda: attach_choices(make_encoder(), ChoiceScorer()),
        dense("classifier", 8, 1),
    ),
}
WITHOUT_POOLER = ("BertForMaskedLM", "BertForTokenClassification", "BertForQuestionAnswering")
EXTRA = {
    "mask_positions": np.array([[1, 2], [0, 1]], "int32"),
    "word_positions": np.tile(np.arange(4, dtype="int32"), (2, 1)),
    "word_mask": np.ones((2, 4), bool),
    "answer_mask": np.ones((2, 4), bool),
}


def inputs_of(model):
    """Inputs by name; with choices, the two rows are those of one question."""
    inputs = {**INPUTS, **EXTRA}
    if "choice_mask" in model.input:
        inputs = {name: value[None] for name, value in inputs.items()}
        inputs["choice_mask"] = np.ones((1, 2), bool)
    return {name: inputs[name] for name in model.input}


def outputs_of(model):
    outputs = model(inputs_of(model))
    return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(outputs)]


@pytest.mark.parametrize("architecture", KINDS)
def test_round_trip(tmp_path, architecture):
    make, head_shapes = KINDS[architecture]
    model = make()
    convert.save_huggingface(model, tmp_path / "m")
    assert sorted(p.name for p in (tmp_path / "m").iterdir()) == [
        "config.json",
        "model.safetensors",
    ]
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == [architecture]
    assert config["model_type"] == "bert"

    shapes = {**encoder_shapes(pooler=architecture not in WITHOUT_POOLER), **head_shapes}
    if architecture == "BertModel":
        shapes = {name.removeprefix("bert."): shape for name, shape in shapes.items()}
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    assert {name: value.shape for name, value in tensors.items()} == shapes
    assert {str(value.dtype) for value in tensors.values()} == {"float32"}

    loaded, report = convert.load_model(tmp_path / "m")
    assert type(loaded) is type(model)
    assert len(report.matched) == len(shapes) == len(model.weights)
    assert not report.missing and not report.unexpected
    for found, expected in zip(outputs_of(loaded), outputs_of(model), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_kernels_are_turned_round(tmp_path):
    model = make_encoder()
    convert.save_huggingface(model, tmp_path / "m")
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    kernel = keras.ops.convert_to_numpy(model.blocks[0].feed_forward.inner.kernel)
    np.testing.assert_array_equal(tensors["encoder.layer.0.intermediate.dense.weight"], kernel.T)


@pytest.mark.parametrize("policy", ["bfloat16", "mixed_bfloat16"])
def test_any_policy_is_saved_as_float32(tmp_path, policy):
    model = make_encoder(dtype=policy)
    convert.save_huggingface(model, tmp_path / "m")
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    table = keras.ops.cast(model.token_embedding.embeddings, "float32")
    np.testing.assert_array_equal(
        tensors["embeddings.word_embeddings.weight"], keras.ops.convert_to_numpy(table)
    )
    convert.save_huggingface(model, tmp_path / "m", weights_dtype="float16")
    tensors = load_file(tmp_path / "m" / "model.safetensors")
    assert {str(value.dtype) for value in tensors.values()} == {"float16"}


def test_regression(tmp_path):
    model = attach(make_encoder(), Regressor())
    convert.save_huggingface(model, tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text(encoding="utf-8"))
    assert config["problem_type"] == "regression" and len(config["id2label"]) == 1
    loaded, _ = convert.load_model(tmp_path / "m")
    assert isinstance(loaded.layers[-1], Regressor)
    np.testing.assert_allclose(outputs_of(loaded)[0], outputs_of(model)[0], atol=1e-6)


def test_text_model_with_tokenizer_and_labels(tmp_path):
    tokenizer = WordPieceTokenizer(VOCABULARY, lowercase=True, max_word_chars=9)
    labels = ["否", "perhaps", "oui"]
    model = attach(make_encoder(), Classifier(3))
    text_model = TextModel(model, BERTPreprocessor(tokenizer, 12), "classification", labels)
    convert.save_huggingface(text_model, tmp_path / "m")
    loaded, _ = convert.load_preset(tmp_path / "m")
    assert loaded.labels == labels
    assert loaded.task == "classification"
    assert loaded.preprocessor.sequence_length == 12
    assert loaded.preprocessor.tokenizer.vocabulary == VOCABULARY
    assert loaded.preprocessor.tokenizer.get_config() == tokenizer.get_config()
    texts = ["The good film", "was bad", ""]
    for found, expected in zip(loaded.predict(texts), text_model.predict(texts), strict=True):
        assert found["label"] == expected["label"]
        assert found["score"] == pytest.approx(expected["score"], abs=1e-6)


def test_refusals(tmp_path):
    folder = tmp_path / "m"
    model = attach(make_encoder(), Classifier(3))
    with pytest.raises(ValueError, match=r"`labels` must be one for each class: 3"):
        convert.save_huggingface(model, folder, labels=["a", "b"])
    with pytest.raises(ValueError, match="`labels` need a model with a Classifier"):
        convert.save_huggingface(encoder_of(model), folder, labels=["a", "b"])
    with pytest.raises(ValueError, match="to have an equal in Hugging Face's format"):
        convert.save_huggingface(attach(make_encoder(), Classifier(3, pooling="mean")), folder)
    with pytest.raises(ValueError, match="to have an equal in Hugging Face's format"):
        convert.save_huggingface(attach(make_encoder(), CRFTagger(3)), folder)
    with pytest.raises(ValueError, match="`labels` need a model with a Classifier or a Tagger"):
        convert.save_huggingface(attach(make_encoder(), Span()), folder, labels=["a", "b"])
    with pytest.raises(ValueError, match="41 entries but the model's embedding table only 30"):
        tokenizer = WordPieceTokenizer([*VOCABULARY, *(f"w{i}" for i in range(30))])
        convert.save_huggingface(model, folder, tokenizer)
    with pytest.raises(ValueError, match="A token with a line end cannot be stored"):
        convert.save_huggingface(model, folder, WordPieceTokenizer([*VOCABULARY, "a\nb"]))
    with pytest.raises(ValueError, match="`weights_dtype`"):
        convert.save_huggingface(model, folder, weights_dtype="int8")
    assert list(tmp_path.iterdir()) == []
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work", encoding="utf-8")
    with pytest.raises(FileExistsError, match="files that would be lost: thesis.tex"):
        convert.save_huggingface(model, folder)
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


@pytest.mark.once
def test_loads_in_transformers_with_equal_outputs(tmp_path):
    """Runs only where the peer is installed, as it is for benchmarks."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    tokenizer = WordPieceTokenizer(VOCABULARY, max_word_chars=9)
    theirs = {
        "input_ids": torch.tensor(INPUTS["token_ids"].astype("int64")),
        "token_type_ids": torch.tensor(INPUTS["segment_ids"].astype("int64")),
        "attention_mask": torch.tensor(INPUTS["padding_mask"].astype("int64")),
    }
    all_positions = {"mask_positions": np.tile(np.arange(4, dtype="int32"), (2, 1))}
    mask = INPUTS["padding_mask"]
    for architecture, (make, _) in KINDS.items():
        model = make()
        convert.save_huggingface(model, tmp_path / "m", tokenizer)
        cls = getattr(transformers, architecture)
        peer, loading = cls.from_pretrained(tmp_path / "m", output_loading_info=True)
        assert not any(loading.values()), (architecture, loading)
        with torch.no_grad():
            asked = theirs
            if architecture == "BertForMultipleChoice":
                asked = {name: value[None] for name, value in theirs.items()}
            outputs = peer.eval()(**asked)
        inputs = inputs_of(model)
        if "mask_positions" in inputs:
            inputs |= all_positions
        ours = model(inputs)
        if architecture == "BertModel":
            pairs = [
                (ours["sequence_output"], outputs.last_hidden_state),
                (ours["pooled_output"], outputs.pooler_output),
            ]
        elif architecture == "BertForPreTraining":
            pairs = [
                (ours["masked_lm"], outputs.prediction_logits),
                (ours["next_sentence"], outputs.seq_relationship_logits),
            ]
        elif architecture == "BertForQuestionAnswering":
            pairs = [(ours[..., 0], outputs.start_logits), (ours[..., 1], outputs.end_logits)]
        else:
            pairs = [(keras.tree.flatten(ours)[0], outputs.logits)]
        for found, expected in pairs:
            found, expected = keras.ops.convert_to_numpy(found), expected.numpy()
            if found.ndim == 3 or found.shape == mask.shape:
                found, expected = found[mask], expected[mask]
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
        peer_tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
        for text in ("The  gööd film", "BAD filmX", "the good-film 好", "filmfilmfilm"):
            assert peer_tokenizer(text)["input_ids"][1:-1] == list(np.asarray(tokenizer(text)))


@pytest.mark.once
def test_text_models_of_other_tasks(tmp_path):
    """Loaded with task, labels and tokenizer, and answering as the model that was saved."""
    tokenizer = WordPieceTokenizer(VOCABULARY, max_word_chars=9)
    preprocessor = BERTPreprocessor(tokenizer, 12)
    tags = ["O", "B-FILM", "I-FILM"]
    tagger = TextModel(attach(make_encoder(), Tagger(3)), preprocessor, "tagging", tags)
    span = TextModel(attach(make_encoder(), Span()), preprocessor, "span")
    scorer = attach_choices(make_encoder(), ChoiceScorer())
    choices = TextModel(scorer, preprocessor, "multiple_choice")
    requests = {
        "tagging": (["the good film", "was bad"],),
        "span": (["the film"], ["the good film was bad"]),
        "multiple_choice": (["the film"], [["was good", "was bad"]]),
    }
    for text_model in (tagger, span, choices):
        convert.save_huggingface(text_model, tmp_path / text_model.task)
        loaded, _ = convert.load_preset(tmp_path / text_model.task)
        assert (loaded.task, loaded.labels) == (text_model.task, text_model.labels)
        request = requests[loaded.task]
        assert without_rounding(loaded.predict(*request)) == without_rounding(
            text_model.predict(*request)
        )


def without_rounding(value):
    """Nested answers with their numbers rounded to 4 digits."""
    return keras.tree.map_structure(lambda x: round(x, 4) if isinstance(x, float) else x, value)
