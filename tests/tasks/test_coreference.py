"""Mentions and what they go back to, by hand, over windows, and in an exported graph."""

import numpy as np
import pytest
import tensorflow as tf

from kctx import heads
from tests.tasks.test_graphs import graph_of, in_order
from tests.tasks.toys import LENGTH, WORDS, assert_alike, make

TEXT = "anna saw the films in paris."
MENTIONS = [(0, 4), (9, 18), (22, 27)]  # anna, the films, paris


def ranker(parts="bert", **options):
    """A model that links some mentions and not others."""
    head = heads.MentionRanker(hidden_dim=8, feature_dim=4)
    text_model = make("coreference", parts, head, **options)
    task = text_model.asked()
    inputs, _ = task.prepare("serving_default", *task.tensors([[TEXT], [MENTIONS]]))
    inputs = {key: np.asarray(value) for key, value in inputs.items()}
    scores = text_model.model.predict(inputs, verbose=0)[0, :, 1:]
    middle = np.median(scores[np.tril_indices(len(MENTIONS), -1)])
    head.pair_score.bias.assign(head.pair_score.bias - middle + 0.5)
    return text_model


def softmax(scores):
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def test_by_hand():
    text_model = ranker()
    (answer,) = text_model.predict([TEXT], [MENTIONS])
    texts = [mention["text"] for mention in answer["mentions"]]
    assert texts == ["anna", "the films", "paris"]
    # [CLS] anna saw the film ##s in paris . [SEP]
    inputs = {key: np.asarray(value) for key, value in text_model.preprocessor([TEXT]).items()}
    inputs["span_starts"] = np.array([[1, 3, 7]], "int32")
    inputs["span_ends"] = np.array([[1, 5, 7]], "int32")
    inputs["span_mask"] = np.ones((1, 3), bool)
    scores = softmax(text_model.model.predict(inputs, verbose=0))[0]
    for place, mention in enumerate(answer["mentions"]):
        assert (mention["start"], mention["end"]) == MENTIONS[place]
        best = int(scores[place].argmax())
        assert mention["antecedent"] == (None if best == 0 else best - 1)
        assert mention["score"] == pytest.approx(scores[place].max(), abs=1e-5)
    assert text_model.predict(TEXT, MENTIONS) == [answer]


@pytest.mark.once
@pytest.mark.parametrize("parts", ["bert", "static", "subwords"])
def test_order_and_words(parts):
    """Any order of mentions, and words in place of a text, give the same links."""
    text_model = ranker(parts)
    (answer,) = text_model.predict([TEXT], [MENTIONS])
    (turned,) = text_model.predict([TEXT], [MENTIONS[::-1]])
    for mention, other in zip(answer["mentions"], turned["mentions"][::-1], strict=True):
        antecedent = other["antecedent"]
        other = {**other, "antecedent": None if antecedent is None else 2 - antecedent}
        assert_alike(other, mention)
    assert {frozenset(2 - x for x in c) for c in turned["clusters"]} == {
        frozenset(c) for c in answer["clusters"]
    }
    words = ["anna", "saw", "the", "films", "in", "paris", "."]
    (given,) = text_model.predict([words], [[(0, 1), (2, 4), (5, 6)]])
    assert given["clusters"] == answer["clusters"]
    for mention, other in zip(answer["mentions"], given["mentions"], strict=True):
        assert other["text"] == mention["text"] and other["antecedent"] == mention["antecedent"]
    joined = " ".join(words)
    assert all(joined[m["start"] : m["end"]] == m["text"] for m in given["mentions"])


@pytest.mark.once
def test_windows():
    """Each antecedent comes from the window with most words before the mention."""
    text_model = ranker()
    words = [WORDS[place % 14] for place in range(33)]  # one piece each
    mentions = [(place, place + 1 + place % 2) for place in range(0, 31, 3)] + [(4, 30)]
    (answer,) = text_model.predict([words], [mentions])
    room = LENGTH - 2
    links = {}
    for number, (start, end) in enumerate(mentions[:-1]):
        window = next(x for x in range(0, 33, room // 2) if x <= start and end <= x + room)
        stop = min(window + room, 33)
        held = [i for i, (a, b) in enumerate(mentions) if a >= window and b <= stop]
        inside = [(mentions[i][0] - window, mentions[i][1] - window) for i in held]
        (alone,) = text_model.predict([words[window:stop]], [inside])
        found = alone["mentions"][held.index(number)]
        wanted = None if found["antecedent"] is None else held[found["antecedent"]]
        assert answer["mentions"][number]["antecedent"] == wanted
        assert answer["mentions"][number]["score"] == pytest.approx(found["score"], abs=1e-5)
        links[number] = number if wanted is None else wanted
    assert len(set(links.values())) < len(links)  # else it would show little
    clusters = {}
    for number in links:
        root = number
        while links[root] != root:
            root = links[root]
        clusters.setdefault(root, []).append(number)
    assert answer["clusters"] == [x for x in clusters.values() if len(x) > 1]
    longest = answer["mentions"][-1]  # longer than a window
    assert longest["antecedent"] is None and longest["score"] == 0.0


@pytest.mark.once
def test_exported(tmp_path):
    text_model = ranker()
    loaded, task = graph_of(tmp_path, text_model)
    assert set(loaded.signatures) == {"serving_default", "words", "token_ids"}
    texts = [TEXT, "", "\U0001f600 é 中文", "the bad film , " * 12]
    mentions = [MENTIONS, [], [(4, 5), (0, 1)], [(x, x + 3) for x in range(0, 150, 15)]]
    expected = text_model.predict(texts, mentions)
    given = task.tensors([texts, mentions])
    found = loaded.signatures["serving_default"](text=given[0], mentions=given[1])
    assert_alike(task.rows(in_order(found, task)), expected)
    words = [["anna", "saw", "paris"], ["who"]]
    spans = [[(0, 1), (2, 3)], [(0, 1)]]
    table = tf.ragged.constant(words).to_tensor("")
    found = loaded.signatures["words"](words=table, mentions=task.tensors([words, spans])[1])
    assert_alike(task.rows(in_order(found, task)), text_model.predict(words, spans))
    for rows in (0, 2):
        found = loaded.signatures["serving_default"](
            text=tf.fill([rows], "a"), mentions=tf.zeros([rows, 0, 2], tf.int32)
        )
        assert found["clusters"].shape[0] == rows and not found["clusters"].numpy().any()
    beyond = loaded.signatures["serving_default"](  # of a client that nobody checked
        text=tf.constant(["anna"]), mentions=tf.constant([[[0, 4], [2, 9], [3, 1]]])
    )
    assert beyond["mentions"].numpy().tolist() == [[b"anna", b"", b""]]
    assert beyond["starts"].numpy().tolist() == [[0, -1, -1]]
    assert beyond["antecedents"].numpy().tolist() == [[-1, -1, -1]]
    inputs, _ = task.prepare("serving_default", *task.tensors([[TEXT], [MENTIONS]]))
    by_ids = loaded.signatures["token_ids"](**inputs)
    antecedents = [m["antecedent"] for m in expected[0]["mentions"]]
    assert by_ids["antecedents"][0].numpy().tolist() == [
        -1 if a is None else a for a in antecedents
    ]
    assert set(by_ids) == {"clusters", "antecedents", "scores"}


@pytest.mark.once
@pytest.mark.parametrize(
    ("mentions", "kind", "message"),
    [
        ([[(0, 40)]], ValueError, r"`mentions\[0\]\[0\]` must lie within its text of 28 code .*40"),
        ([[(0, 1), (3, 3)]], ValueError, r"`mentions\[0\]\[1\]` .* not be empty"),
        ([[(-1, 1)]], ValueError, r"Received: \(-1, 1\)"),
        ([[(0, 1, 2)]], TypeError, r"`mentions\[0\]\[0\]` must be \(start, end\), two ints"),
        ([[(0, "1")]], TypeError, r"two ints"),
        ([7], TypeError, r"`mentions\[0\]` must be a list"),
        ([[], []], ValueError, "`mentions` must be as many as `texts`: 1"),
    ],
)
def test_errors(mentions, kind, message):
    with pytest.raises(kind, match=message):
        ranker().predict([TEXT], mentions)
