"""Raw texts and lists of words to tags and entities."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kctx import heads
from kctx.data import tag_spans
from kctx.tasks.entities import entities_of, marks_entities
from tests.tasks.toys import PARTS, TAGS, assert_alike, crf_tagger, first_everywhere, make

TEXTS = [
    "anna saw the film in paris.",
    "",
    "Who saw it? \x01 é 中文",
    "the good bad film was in paris , " * 9,
    "\U0001f600 paris",
]


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("kind", first_everywhere("crf", "softmax"))
def test_answers_do_not_depend_on_the_batch(parts, kind):
    text_model = make("tagging", parts, crf_tagger() if kind == "crf" else None)
    answers = text_model.predict(TEXTS)
    for batch_size in (1, 3):
        assert_alike(text_model.predict(TEXTS, batch_size=batch_size), answers)
    for text, answer in zip(TEXTS, answers, strict=True):
        assert len(answer["words"]) == len(answer["tags"]) == len(answer["scores"])
        assert "".join(answer["words"]) == "".join(text.split())
        spans = tag_spans(answer["tags"])
        assert [entity["label"] for entity in answer["entities"]] == [x for x, _, _ in spans]
        for entity, (_, start, end) in zip(answer["entities"], spans, strict=True):
            assert text[entity["start"] : entity["end"]] == entity["text"]
            assert "".join(entity["text"].split()) == "".join(answer["words"][start:end])
            assert entity["score"] == pytest.approx(np.mean(answer["scores"][start:end]), abs=1e-5)
    assert any(answer["entities"] for answer in answers)
    if kind == "crf":
        for answer in answers:
            before = "O"
            for tag in answer["tags"]:
                assert tag[0] != "I" or before[1:] == tag[1:]
                before = tag


@pytest.mark.once
def test_by_hand():
    """The tags are the best logits at each word's first piece."""
    text_model = make("tagging")
    words = ["anna", "saw", "films", "\x01", "paris"]
    (answer,) = text_model.predict([words])
    inputs, _, _ = text_model.preprocessor.words([words])
    assert inputs["word_positions"].numpy().tolist() == [[1, 2, 3, 5, 6]]
    logits = text_model.model({key: np.asarray(value) for key, value in inputs.items()})
    scores = keras.ops.convert_to_numpy(keras.ops.softmax(logits))[0]
    assert answer["tags"] == [TAGS[i] for i in scores.argmax(-1)]
    assert answer["scores"] == pytest.approx(scores.max(-1).tolist(), abs=1e-5)


@pytest.mark.once
def test_words_and_texts_alike():
    text_model = make("tagging")
    words = [answer["words"] for answer in text_model.predict(TEXTS)]
    given = text_model.predict(words)
    for answer, other in zip(given, text_model.predict(TEXTS), strict=True):
        assert_alike([answer["tags"], answer["scores"]], [other["tags"], other["scores"]])
        text = " ".join(answer["words"])
        for entity in answer["entities"]:
            assert text[entity["start"] : entity["end"]] == entity["text"]
    mixed = text_model.predict([["a b", ""], [], ["\ud800"]])
    assert [len(answer["tags"]) for answer in mixed] == [2, 0, 1]
    assert text_model.predict([]) == []


@pytest.mark.once
def test_characters():
    text_model = make("tagging", split="characters")
    (answer,) = text_model.predict(["ab 中"])
    assert answer["words"] == ["a", "b", "中"]
    (given,) = text_model.predict([["a", "b", "中"]])
    assert given["tags"] == answer["tags"]
    assert all(" " not in entity["text"] for entity in given["entities"])
    assert text_model.predict("ab", split="words")[0]["words"] == ["ab"]


@pytest.mark.once
def test_every_word_of_a_long_sentence_has_a_tag():
    text_model = make("tagging", "bert", crf_tagger())
    for size in (1, 12, 13, 100, 1000):
        words = ["films" if place % 3 else "\x00" for place in range(size)]
        (answer,) = text_model.predict([words])
        assert len(answer["tags"]) == size


def test_roles():
    text_model = make("tagging", head=heads.RoleTagger(len(TAGS), hidden_dim=8))
    text = "anna saw the film in paris , " * 4
    first, second = text_model.predict([text, text], [1, 20])
    assert first["scores"] != pytest.approx(second["scores"], abs=1e-3)
    assert_alike(text_model.predict(text, predicates=20), [second])
    with pytest.raises(TypeError, match="tagging needs `predicates`"):
        text_model.predict([text])
    assert_alike(text_model.predict(text, predicates=[np.int64(20)]), [second])
    with pytest.raises(TypeError, match=r"`predicates\[0\]` must be an int. Received: 'saw'"):
        text_model.predict([text], ["saw"])


@pytest.mark.once
@pytest.mark.parametrize(
    "names",
    [
        ["O", "B-X", "I-X", "B-Y", "I-Y"],
        ["O", "B-X", "I-X", "E-X", "S-X", "S-Y"],
        ["O", "B-X", "M-X", "E-X", "S-X"],
        ["O", "I-X", "B-X"],
        ["O", "B", "I"],
    ],
    ids="-".join,
)
def test_entities_are_those_of_the_data(names):
    generator = np.random.default_rng(0)
    rows = [generator.integers(0, len(names), size) for size in (0, 1, 7, 40, 0, 200, 1)]
    tags = tf.ragged.constant([row.tolist() for row in rows], tf.int32, ragged_rank=1)
    found = entities_of(tags.values, tags.row_splits, names)
    expected = []
    for start, row in zip(tags.row_starts().numpy(), rows, strict=True):
        spans = tag_spans([names[tag] for tag in row])
        expected += [(start + a, start + b - 1, label) for label, a, b in spans]
    labels = [label.decode() for label in found.labels.numpy()]
    made = list(zip(found.first.numpy(), found.last.numpy(), labels, strict=True))
    assert made == expected


@pytest.mark.once
def test_tags_of_no_entities():
    assert marks_entities(["O"]) and marks_entities(TAGS) and marks_entities(["B", "I", "O"])
    assert not marks_entities(["NN", "VB", "DT", "IN", "O"])
    text_model = make("tagging", labels=["NN", "VB", "DT", "IN", "O"])
    (answer,) = text_model.predict("anna saw paris")
    assert answer["entities"] == [] and len(answer["tags"]) == 3


@pytest.mark.once
def test_errors():
    text_model = make("tagging")
    with pytest.raises(TypeError, match=r"`texts\[1\]` must be a list of words, as others are"):
        text_model.predict([["a"], "b"])
    with pytest.raises(TypeError, match=r"`texts\[0\]\[1\]` must be a str. Received: 3"):
        text_model.predict([["a", 3]])
    with pytest.raises(TypeError, match=r"`texts\[0\]` must be a list of words.*None"):
        text_model.predict([None])
    with pytest.raises(TypeError, match="tagging takes texts. Received: 2 lists"):
        text_model.predict(["a"], [1])
    with pytest.raises(ValueError, match="Options of tagging are: split, stride. Received: top"):
        text_model.predict(["a"], top=3)
    with pytest.raises(ValueError, match="`split` must be one of"):
        text_model.predict(["a"], split="pieces")


@pytest.mark.once
def test_predicates_that_are_no_word():
    text_model = make("tagging", head=heads.RoleTagger(len(TAGS)))
    for predicate in (-1, 10**12):
        with pytest.raises(ValueError, match=r"`predicates\[0\]` must be the number of a word"):
            text_model.predict(["anna saw"], [predicate])
    for texts in (["anna saw", "anna"], [["anna", "saw"], ["anna"]]):
        with pytest.raises(ValueError, match="Received: 1 of a text of 1 words"):
            text_model.predict(texts, [1, 1])
    assert text_model.predict([""], [0])[0]["tags"] == []
    with pytest.raises(ValueError, match="`stride` must be an integer"):
        text_model.predict("anna", 0, stride=2.5)


def test_texts_and_words_of_one_request():
    """Which of them the offsets are of would not be known."""
    text_model = make("tagging")
    with pytest.raises(ValueError, match="must have one of `text` and `words`"):
        list(text_model.predict_stream([{"text": "the film", "words": ["the", "film"]}]))
