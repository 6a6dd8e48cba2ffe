"""Every task as a saved graph: what it answers is what `predict` answers.

Traced in this process; one whole export, with its child process, stands for all at the end.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from kctx import export, heads
from kctx.export import rebuild
from kctx.export.arguments import default_examples
from kctx.export.documents import describe
from kctx.export.graph import TextGraph
from kctx.export.stored_weights import StoredWeights
from kctx.presets.task import input_limits
from kctx.tasks import make_task
from tests.tasks.toys import LENGTH, TAGS, assert_alike, crf_tagger, make

pytestmark = pytest.mark.once

TEXTS = ["anna saw the film in paris.", "", "the bad film , " * 12, "\U0001f600 é 中文", "who"]
OTHERS = [*TEXTS[1:], TEXTS[0]]


def graph_of(folder, text_model, weights_dtype=None):
    """The saved signatures of a model, loaded, and its task."""
    task = make_task(
        text_model.task,
        text_model.model,
        text_model.preprocessor,
        text_model.labels,
        text_model.options,
    )
    graph = TextGraph(
        task, StoredWeights(text_model.model, weights_dtype), input_limits(text_model.model)
    )
    tf.saved_model.save(graph, str(folder), signatures=graph.signatures())
    loaded = tf.saved_model.load(str(folder))
    loaded.signatures.owner = loaded
    return loaded, task


def in_order(answer, task):
    return {key: answer[key] for key in task.meanings}


@pytest.mark.parametrize("parts", ["bert", "static", "subwords"])
def test_tagging(tmp_path, parts):
    text_model = make("tagging", parts, crf_tagger())
    loaded, task = graph_of(tmp_path, text_model)
    assert set(loaded.signatures) == {"serving_default", "words", "token_ids"}
    expected = text_model.predict(TEXTS)
    found = loaded.signatures["serving_default"](text=tf.constant(TEXTS))
    assert set(found) == set(task.meanings)
    assert_alike(task.rows(in_order(found, task)), expected)
    assert found["word_count"].numpy().tolist() == [len(row["words"]) for row in expected]
    for row, (text, answer) in enumerate(zip(TEXTS, expected, strict=True)):
        places = zip(found["starts"][row].numpy(), found["ends"][row].numpy(), strict=True)
        words = [text[start:end] for start, end in places if start >= 0]
        assert words == answer["words"]

    # Given words, and empty batches.
    lists = tf.ragged.constant([row["words"] for row in expected]).to_tensor("")
    given = loaded.signatures["words"](words=lists)
    np.testing.assert_array_equal(given["tags"], found["tags"])
    for empty in ([], [""], ["", " "]):
        answer = loaded.signatures["serving_default"](text=tf.constant(empty, tf.string))
        assert answer["tags"].shape == (len(empty), 0) == answer["entities"].shape
    answer = loaded.signatures["words"](words=tf.zeros([2, 0], tf.string))
    assert answer["tags"].shape == (2, 0)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="`words` must be empty behind the last"
    ):
        loaded.signatures["words"](words=tf.constant([["anna", "", "film"]]))


def test_roles(tmp_path):
    text_model = make("tagging", head=heads.RoleTagger(len(TAGS), hidden_dim=8))
    loaded, task = graph_of(tmp_path, text_model)
    predicates = [1, 0, 20, 0, 0]
    found = loaded.signatures["serving_default"](
        text=tf.constant(TEXTS), predicate=tf.constant(predicates)
    )
    assert_alike(task.rows(in_order(found, task)), text_model.predict(TEXTS, predicates))
    for wrong in (-1, 9):
        with pytest.raises(tf.errors.InvalidArgumentError, match="`predicate` must be the number"):
            loaded.signatures["serving_default"](
                text=tf.constant(TEXTS[:1]), predicate=tf.constant([wrong])
            )


@pytest.mark.parametrize("parts", ["bert", "subwords"])
@pytest.mark.parametrize("threshold", [0.0, None])
def test_span(tmp_path, parts, threshold):
    text_model = make("span", parts, stride=3, no_answer_threshold=threshold)
    loaded, task = graph_of(tmp_path, text_model)
    asked = loaded.signatures["serving_default"]
    found = asked(question=tf.constant(OTHERS), context=tf.constant(TEXTS))
    assert_alike(task.rows(in_order(found, task)), text_model.predict(OTHERS, TEXTS))
    none = tf.constant([], tf.string)
    assert asked(question=none, context=none)["answer"].shape == (0,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`context` must have as many texts"):
        asked(question=tf.constant(["a"]), context=tf.constant(["a", "b"]))


@pytest.mark.parametrize("parts", ["bert", "static"])
def test_choices(tmp_path, parts):
    text_model = make("multiple_choice", parts)
    loaded, _ = graph_of(tmp_path, text_model)
    choices = [["a", "the film"], ["é"], ["bad", "good", "anna saw " * 9], ["a", "b"], ["who"]]
    asked = loaded.signatures["serving_default"]
    table = tf.ragged.constant(choices).to_tensor("")
    found = asked(context=tf.constant(TEXTS), choices=table)
    for row, answer in enumerate(text_model.predict(TEXTS, choices)):
        assert found["index"][row] == answer["index"]
        assert found["choice"][row].numpy().decode() == answer["choice"]
        scores = [*answer["scores"], *[0.0] * (3 - len(answer["scores"]))]
        assert found["scores"][row].numpy().tolist() == pytest.approx(scores, abs=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="`choices` must be empty behind"):
        asked(context=tf.constant(["a"]), choices=tf.constant([["a", "", "b"]]))
    for shape in ((0, 0), (0, 2), (2, 0)):
        empty = asked(context=tf.fill([shape[0]], "a"), choices=tf.zeros(shape, tf.string))
        assert empty["index"].shape == (shape[0],)


def test_similarity(tmp_path):
    text_model = make("similarity")
    loaded, task = graph_of(tmp_path, text_model)
    found = loaded.signatures["serving_default"](
        text=tf.constant(TEXTS), text_b=tf.constant(OTHERS)
    )
    assert_alike(task.rows(found), text_model.predict(TEXTS, OTHERS))


SHORT = ["anna saw the film", "", "who"]  # one window each


def by_ids(loaded, task, *columns):
    """What `token_ids` answers to requests that were tokenized by the caller."""
    columns = task.tensors([list(column) for column in columns])
    inputs, _ = task.prepare("serving_default", *columns)
    return loaded.signatures["token_ids"](**inputs), inputs


@pytest.mark.parametrize("head", [None, crf_tagger, lambda: heads.RoleTagger(len(TAGS))])
def test_tagging_by_ids(tmp_path, head):
    text_model = make("tagging", head=head and head())
    loaded, task = graph_of(tmp_path, text_model)
    asked = [SHORT, [1, 0, 0]] if task.takes_predicates else [SHORT]
    found, inputs = by_ids(loaded, task, *asked)
    assert set(found) == {"tags", "scores"}
    for row, answer in enumerate(text_model.predict(*asked)):
        count = len(answer["words"])
        tags = [tag.decode() for tag in found["tags"][row].numpy()]
        assert tags == [*answer["tags"], *[""] * (len(tags) - count)]
        np.testing.assert_allclose(found["scores"][row, :count], answer["scores"], atol=1e-5)
        assert not found["scores"][row, count:].numpy().any()
    call = loaded.signatures["token_ids"]
    inputs = {key: tf.constant(value) for key, value in inputs.items()}
    wrong = {**inputs, "word_positions": inputs["word_positions"] + 6}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`word_positions` must lie in \[0,"):
        call(**wrong)
    wrong = {**inputs, "word_mask": inputs["word_mask"][:, :1]}
    with pytest.raises(tf.errors.InvalidArgumentError, match="`word_mask` must have the shape of"):
        call(**wrong)
    wrong = {key: value[:1] if "word" in key else value for key, value in inputs.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the length of .* along B"):
        call(**wrong)
    nothing = {key: value[:0] for key, value in inputs.items()}
    assert call(**nothing)["tags"].shape[0] == 0


@pytest.mark.parametrize("threshold", [0.0, None])
def test_span_by_ids(tmp_path, threshold):
    text_model = make("span", no_answer_threshold=threshold)
    loaded, task = graph_of(tmp_path, text_model)
    found, inputs = by_ids(loaded, task, SHORT, SHORT)
    assert set(found) == {"start_token", "end_token", "score", "no_answer_probability"}
    _, state = task.prepare("serving_default", tf.constant(SHORT), tf.constant(SHORT))
    for row, answer in enumerate(text_model.predict(SHORT, SHORT)):
        first, last = int(found["start_token"][row]), int(found["end_token"][row])
        assert (first < 0) == (last < 0) == (answer["start"] < 0)
        if first >= 0:
            assert inputs["answer_mask"][row, first] and inputs["answer_mask"][row, last]
            assert state["offsets"][row, first, 0] == answer["start"]
            assert state["offsets"][row, last, 1] == answer["end"]
        for key in ("score", "no_answer_probability"):
            assert float(found[key][row]) == pytest.approx(answer[key], abs=1e-5)


def test_choices_and_similarity_by_ids(tmp_path):
    text_model = make("multiple_choice")
    loaded, task = graph_of(tmp_path / "choices", text_model)
    choices = [["a film", "good"], ["bad", "who", "anna"], ["paris"]]
    found, _ = by_ids(loaded, task, SHORT, choices)
    assert set(found) == {"index", "scores"}
    for row, answer in enumerate(text_model.predict(SHORT, choices)):
        assert found["index"][row] == answer["index"]
        scores = [*answer["scores"], *[0.0] * (3 - len(answer["scores"]))]
        np.testing.assert_allclose(found["scores"][row], scores, atol=1e-5)

    text_model = make("similarity")
    loaded, task = graph_of(tmp_path / "similarity", text_model)
    found, inputs = by_ids(loaded, task, SHORT, OTHERS[:3])  # of different lengths
    expected = [answer["score"] for answer in text_model.predict(SHORT, OTHERS[:3])]
    np.testing.assert_allclose(found["score"], expected, atol=1e-5)
    inputs = {key: tf.constant(value) for key, value in inputs.items()}
    inputs["token_ids_b"] += 1000
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"`token_ids_b` must lie in \[0,"):
        loaded.signatures["token_ids"](**inputs)


def test_a_smaller_file_keeps_the_transitions(tmp_path):
    """Weights in bfloat16 are read through the same scope when tags are decoded."""
    text_model = make("tagging", head=crf_tagger())
    loaded, _ = graph_of(tmp_path, text_model, "bfloat16")
    answers = loaded.signatures["serving_default"](text=tf.constant(TEXTS))
    tags = [tag.decode() for tag in answers["tags"].numpy().ravel()]
    expected = [tag for row in text_model.predict(TEXTS) for tag in row["tags"]]
    same = [one == other for one, other in zip([t for t in tags if t], expected, strict=True)]
    assert np.mean(same) > 0.8


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        *((name, False) for name in ("tagging", "roles", "span", "multiple_choice", "similarity")),
        *(("classification", pairs) for pairs in (False, True)),
    ],
)
def test_examples_and_descriptions(name, pairs):
    head = None
    if name == "roles":
        name, head = "tagging", heads.RoleTagger(len(TAGS))
    text_model = make(name, head=head)
    labels, options = text_model.labels, {"pairs": True} if pairs else {}
    task = make_task(name, text_model.model, text_model.preprocessor, labels, options)
    graph = TextGraph(task, StoredWeights(text_model.model))
    signatures = graph.signatures()
    requests = rebuild.examples(task, default_examples(task))
    described = describe(signatures, task)
    assert set(described) == set(requests) == set(signatures)
    for signature, several in requests.items():
        wanted = task.id_meanings if signature == "token_ids" else None
        assert set(described[signature]["outputs"]) == set(wanted or task.meanings)
        for inputs in several:
            assert set(inputs) == set(described[signature]["inputs"])
            signatures[signature](**inputs)


def test_whole_export_with_embed(tmp_path):
    text_model = make("tagging", head=crf_tagger(), split="characters")
    folder = export.saved_model(
        text_model.model,
        text_model.preprocessor,
        tmp_path / "tags",
        labels=TAGS,
        options=text_model.options,
        embed="last4_mean",
        verbose=False,
    )
    loaded = tf.saved_model.load(str(folder))
    found = loaded.signatures["serving_default"](text=tf.constant(TEXTS))
    for row, answer in enumerate(text_model.predict(TEXTS)):
        tags = [tag.decode() for tag in found["tags"][row].numpy() if tag]
        assert tags == answer["tags"]
    vectors = loaded.signatures["embed"](text=tf.constant(TEXTS))["embedding"]
    np.testing.assert_allclose(vectors, text_model.embed(TEXTS, "last4_mean"), atol=1e-5)
    described = json.loads((folder / "assets.extra" / "signature.json").read_text("utf-8"))
    assert set(described["signatures"]) == {"serving_default", "words", "token_ids", "embed"}
    assert set(described["signatures"]["token_ids"]["outputs"]) == {"tags", "scores"}
    assert described["options"] == {"split": "characters", "stride": None}
    page = (folder / "assets.extra" / "README.md").read_text("utf-8")
    assert f"Texts longer than {LENGTH} tokens are read in windows" in page
    assert "split = characters" in page and "`entity_labels`" in page
