"""Vectors of texts and of words, of any length, in any number."""

import numpy as np
import pytest

from tests.tasks.toys import PARTS, bert_parts, first_everywhere, lively, make

TEXTS = ["anna saw the films", "", "the bad film , " * 12, "\U0001f600 中", "who \x01 was"]


def encoded(text_model, text):
    """The encoder's outputs of one text alone, its real tokens only."""
    inputs = {key: np.asarray(value) for key, value in text_model.preprocessor([text]).items()}
    outputs = text_model.encoder.predict(inputs, verbose=0)
    return outputs, int(inputs["padding_mask"].sum())


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize(
    "pooling", first_everywhere("last4_mean", "mean", "cls", "max", "last4_concat")
)
def test_by_hand(parts, pooling):
    text_model = make("classification", parts)
    found = text_model.embed(TEXTS, pooling, batch_size=2)
    assert found.dtype == np.float32
    for text, vector in zip(TEXTS, found, strict=True):
        if not text and parts != "bert":  # no token at all
            assert pooling == "cls" or not vector.any()
            continue
        outputs, length = encoded(text_model, text)
        states = outputs["hidden_states"]
        # A BERT of two layers, whose embeddings are none, and models that have nothing else.
        states = states[1:] if parts == "bert" else states
        assert len(states) == (2 if parts == "bert" else 1)
        last4 = [np.asarray(x)[0, :length] for x in states]
        expected = {
            "cls": last4[-1][0],
            "max": last4[-1].max(0),
            "mean": last4[-1].mean(0),
            "last4_mean": np.mean(last4, 0).mean(0),
            "last4_concat": np.concatenate(last4, -1).mean(0),
        }[pooling]
        np.testing.assert_allclose(vector, expected, atol=1e-5)


@pytest.mark.once
def test_from_an_encoder_alone_and_pooled():
    from kctx import presets

    encoder, preprocessor = bert_parts()
    text_model = presets.TextModel(lively(encoder), preprocessor)
    outputs, _ = encoded(text_model, TEXTS[0])
    found = text_model.embed(TEXTS[0], "pooled")
    np.testing.assert_allclose(found, outputs["pooled_output"], atol=1e-5)
    lengths = np.linalg.norm(text_model.embed(TEXTS, normalize=True), axis=1)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)
    as_task = presets.TextModel(encoder, preprocessor, "embedding", options={"pooling": "cls"})
    vectors = [answer["embedding"] for answer in as_task.predict(TEXTS)]
    np.testing.assert_allclose(vectors, text_model.embed(TEXTS, "cls"), atol=1e-6)
    assert text_model.embed([]).shape == (0, 8)


@pytest.mark.once
def test_stream_is_lazy_and_in_order():
    text_model, seen = make("classification"), []

    def texts():
        for place in range(300):
            seen.append(place)
            yield "anna " * (place % 9) + "film"

    stream = text_model.embed_stream(texts(), batch_size=2)
    first = next(stream)
    assert len(seen) == 64  # 32 batches of 2 are read ahead, and no more
    found = np.stack([first, *stream])
    expected = text_model.embed(["anna " * (place % 9) + "film" for place in range(300)])
    np.testing.assert_allclose(found, expected, atol=1e-5)

    seen.clear()
    answers = text_model.predict_stream(texts(), batch_size=2)
    next(answers)
    assert len(seen) == 64


@pytest.mark.parametrize("parts", PARTS)
def test_words(parts):
    text_model = make("classification", parts)
    found = list(text_model.embed_words(TEXTS, batch_size=2))
    for text, (words, vectors) in zip(TEXTS, found, strict=True):
        assert "".join(words) == "".join(text.split())
        assert vectors.shape == (len(words), 8) and np.isfinite(vectors).all()
    given = list(text_model.embed_words([words for words, _ in found]))
    for (_, vectors), (_, other) in zip(found, given, strict=True):
        np.testing.assert_allclose(vectors, other, atol=1e-5)


@pytest.mark.once
def test_words_by_hand():
    text_model = make("classification")
    outputs, _ = encoded(text_model, "anna films paris")
    last = outputs["sequence_output"][0]  # [CLS] anna film ##s paris [SEP]
    mean = np.stack([last[1], (last[2] + last[3]) / 2, last[4]])
    ((words, vectors),) = text_model.embed_words(["anna films paris"])
    assert words == ["anna", "films", "paris"]
    np.testing.assert_allclose(vectors, mean, atol=1e-5)
    ((_, vectors),) = text_model.embed_words(["anna films paris"], pooling="first")
    np.testing.assert_allclose(vectors, last[[1, 2, 4]], atol=1e-5)
    last4 = np.mean(outputs["hidden_states"][1:], 0)[0]
    ((_, vectors),) = text_model.embed_words([["anna", "films"]], "first", "last4_mean")
    outputs, _ = encoded(text_model, "anna films")
    last4 = np.mean(outputs["hidden_states"][1:], 0)[0]
    np.testing.assert_allclose(vectors, last4[[1, 2]], atol=1e-5)
    ((words, _),) = text_model.embed_words(["ab 中"], split="characters")
    assert words == ["a", "b", "中"]


@pytest.mark.once
def test_masked_words():
    from kctx import objectives, presets

    encoder, preprocessor = bert_parts()
    model = lively(objectives.MaskedLM(encoder))
    text_model = presets.TextModel(model, preprocessor, "masked_lm", options={"top_k": 2})
    texts = ["anna [MASK] paris [MASK]", "no mask", "[MASK] " * 5]
    answers = text_model.predict(texts)
    assert [answer["mask_count"] for answer in answers] == [2, 0, 5]
    assert [len(answer["tokens"]) for answer in answers] == [2, 0, 5]
    alone = text_model.predict(texts[0])[0]
    assert alone["tokens"] == answers[0]["tokens"]
    np.testing.assert_allclose(alone["scores"], answers[0]["scores"], atol=1e-5)
    assert text_model.predict(["no mask"])[0]["tokens"] == []


@pytest.mark.once
def test_errors():
    text_model = make("classification")
    with pytest.raises(ValueError, match="`pooling` must be one of mean, .* Received: sum"):
        text_model.embed(["a"], pooling="sum")
    with pytest.raises(TypeError, match=r"`texts\[1\]` must be a str. Received: None"):
        text_model.embed(["a", None])
    with pytest.raises(TypeError, match=r"`texts\[70\]` must be a str. Received: 1"):
        list(text_model.embed_stream([*["a"] * 70, 1], batch_size=2))
    with pytest.raises(ValueError, match="`batch_size`"):
        text_model.embed(["a"], batch_size=0)
    with pytest.raises(ValueError, match="`layers` must be one of"):
        list(text_model.embed_words(["a"], layers="first"))
    with pytest.raises(ValueError, match=r"Request 1 must have the parts text.*\('a', 'b', 'c'\)"):
        list(text_model.predict_stream(["a", ("a", "b", "c")]))
    with pytest.raises(ValueError, match="must have the same number of parts"):
        list(text_model.predict_stream(["a", ("a", "b")]))
    text_model.preprocessor = None
    with pytest.raises(ValueError, match="Embeddings need a preprocessor"):
        text_model.embed(["a"])
