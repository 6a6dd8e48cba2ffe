"""Trained models as fastText files: the same answers from ours, from fastText and from gensim."""

import dataclasses

import keras
import numpy as np
import pytest

from kctx.convert import FastTextFile, from_fasttext_file, load_vectors, to_fasttext_file
from kctx.data import LabelledLines, LabelledStream, WordVocabulary, count_labelled_lines
from kctx.models import FastText, FastTextClassifier, Word2Vec
from kctx.vectors import FastTextPredictor, LineFeatures, Subwords
from tests.models.fasttext_data import (
    LABELLED,
    LABELLED_VOCABULARY,
    LINE_SUBWORDS,
    LINES,
    SUBWORDS,
    VOCABULARY,
    WORD_NGRAMS,
    lines_stream,
    words_stream,
)
from tests.models.runs import in_stream, tables, with_values

OUTSIDE = ["catlike", "über", "日本", "x"]
UNSUPERVISED = [
    ("skip_gram", "negative_sampling"),
    ("cbow", "negative_sampling"),
    ("skip_gram", "hierarchical_softmax"),
]
OBJECTIVES = ("softmax", "hierarchical_softmax", "negative_sampling", "one_vs_all")


def trained_vectors(architecture="skip_gram", objective="negative_sampling", epochs=3):
    model = FastText(len(VOCABULARY), SUBWORDS.buckets, 8, architecture, objective)
    in_stream(model, words_stream(objective, epochs=epochs))
    return model, to_fasttext_file(model, VOCABULARY, SUBWORDS, window=2, epochs=epochs)


def trained_classifier(objective, epochs=8):
    size, labels = len(LABELLED_VOCABULARY.words), len(LABELLED_VOCABULARY.labels)
    model = FastTextClassifier(size, labels, LINE_SUBWORDS.buckets, 6, objective)
    in_stream(model, lines_stream(objective, epochs=epochs))
    file = to_fasttext_file(
        model, LABELLED_VOCABULARY, LINE_SUBWORDS, WORD_NGRAMS, epochs=epochs, min_count=1
    )
    return model, file


def texts():
    return [" ".join(words) for _, words in LABELLED[:30]] + ["", "unheard of", "w00 unheard w21"]


def test_what_the_file_records():
    _, file = trained_vectors("cbow")
    arguments = file.arguments
    assert (arguments.model, arguments.loss, arguments.dim, arguments.buckets) == (
        *("cbow", "ns", 8),
        SUBWORDS.buckets,
    )
    assert (arguments.min_n, arguments.max_n, arguments.window, arguments.epochs) == (3, 5, 2, 3)
    assert "</s>" in file.words and file.counts[file.words.index("</s>")] == len(LINES)
    assert file.num_tokens == sum(len(line.split()) + 1 for line in LINES)
    assert not file.labels and (np.diff(file.counts) <= 0).all()
    _, file = trained_classifier("one_vs_all")
    assert (file.arguments.model, file.arguments.loss, file.arguments.word_ngrams) == (
        *("supervised", "ova"),
        WORD_NGRAMS,
    )
    assert file.num_tokens == sum(len(labels) + len(words) + 1 for labels, words in LABELLED)
    assert file.labels == LABELLED_VOCABULARY.labels
    found = [sum(label in labels for labels, _ in LABELLED) for label in file.labels]
    assert file.label_counts.tolist() == found == sorted(found, reverse=True)


@pytest.mark.parametrize(("architecture", "objective"), UNSUPERVISED)
def test_vectors_in_fasttext_and_gensim(tmp_path, architecture, objective):
    _, file = trained_vectors(architecture, objective)
    path = tmp_path / "model.bin"
    file.write(path)
    ours, _ = load_vectors(path)
    words = [*VOCABULARY.words, *OUTSIDE]
    fasttext = pytest.importorskip("fasttext")
    theirs = fasttext.load_model(str(path))
    np.testing.assert_allclose(
        ours.get(words), [theirs.get_word_vector(word) for word in words], atol=1e-6
    )
    assert theirs.get_words() == file.words
    near = theirs.get_nearest_neighbors("cat", 5)
    for (word, score), (their_score, their_word) in zip(
        ours.neighbours("cat", 5), near, strict=True
    ):
        assert score == pytest.approx(their_score, abs=1e-5) and word == their_word
    gensim = pytest.importorskip("gensim.models.fasttext")
    loaded = gensim.load_facebook_model(str(path))
    for word in words:
        if word != "</s>":  # gensim gives it n-grams
            np.testing.assert_allclose(loaded.wv[word], ours[word], atol=1e-6)
    found = [word for word, _ in loaded.wv.most_similar("cat", topn=8) if word != "</s>"]
    assert found[:4] == [word for word, _ in ours.neighbours("cat", 8) if word != "</s>"][:4]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_predictions_in_fasttext(tmp_path, objective):
    """All labels' probabilities; under hierarchical softmax by the tree that fastText builds."""
    fasttext = pytest.importorskip("fasttext")
    _, file = trained_classifier(objective)
    path = tmp_path / "model.bin"
    file.write(path)
    predictor, theirs = FastTextPredictor(FastTextFile.read(path)), fasttext.load_model(str(path))
    for text, answers in zip(texts(), predictor.predict(texts(), k=-1), strict=True):
        found = {label: x for x, label in theirs.f.predict(text + "\n", -1, 0.0, "strict")}
        assert dict(answers) == pytest.approx(found, abs=1e-5)
        assert answers[0][0] == max(found, key=found.get)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_fasttext_trained_is_gone_on_with(tmp_path, objective):
    """Its loss on its own training data is low from the first step, and ours lowers it."""
    fasttext = pytest.importorskip("fasttext")
    path = tmp_path / "train.txt"
    path.write_text("".join(f"{' '.join([*x, *y])}\n" for x, y in LABELLED), encoding="utf-8")
    names = {"softmax": "softmax", "hierarchical_softmax": "hs", "one_vs_all": "ova"}
    theirs = fasttext.train_supervised(
        str(path), dim=6, epoch=25, lr=0.5, wordNgrams=2, minn=2, maxn=3, bucket=30, thread=12,
        verbose=0, loss=names.get(objective, "ns"),
    )  # fmt: skip
    theirs.save_model(str(tmp_path / "model.bin"))
    file = FastTextFile.read(tmp_path / "model.bin")
    model = from_fasttext_file(file)
    features = LineFeatures(file.words, file.subwords, file.arguments.word_ngrams)
    lines = LabelledLines(LABELLED, file.labels, features)
    new = FastTextClassifier(len(file.words), 3, 30, 6, objective)
    first = [
        in_stream(x, LabelledStream(lines, file.label_counts, objective, epochs=1, step_lines=4))[0]
        for x in (model, new)
    ]
    assert first[0] < 0.6 * first[1]


@pytest.mark.parametrize(("architecture", "objective"), UNSUPERVISED)
def test_there_and_back(tmp_path, architecture, objective):
    """Trained on from a file is trained on from the model."""
    model, file = trained_vectors(architecture, objective)
    file.write(tmp_path / "model.bin")
    again = from_fasttext_file(FastTextFile.read(tmp_path / "model.bin"))
    assert isinstance(again, FastText) and again.architecture == architecture
    losses = [in_stream(x, words_stream(objective, epochs=1)) for x in (model, again)]
    assert losses[0] == losses[1]
    for one, two in zip(tables(model), tables(again), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_classifiers_there_and_back(objective):
    model, file = trained_classifier(objective)
    again = from_fasttext_file(file)
    assert again.objective == objective and again.num_labels == 3
    losses = [in_stream(x, lines_stream(objective)) for x in (model, again)]
    assert losses[0] == losses[1]


def test_a_quantised_and_pruned_file_is_gone_on_with(tmp_path):
    words = [f"w{i}" for i in range(400)]
    lines = [([f"__label__{i % 2}"], [words[i], words[i - 1]]) for i in range(400)]
    vocabulary, subwords = count_labelled_lines(lines), Subwords(2, 2, 200)
    model = with_values(FastTextClassifier(401, 2, 200, 4))
    small = to_fasttext_file(model, vocabulary, subwords).quantize(cutoff=300)
    small.write(tmp_path / "model.ftz")
    file = FastTextFile.read(tmp_path / "model.ftz")
    model = from_fasttext_file(file)
    assert model.buckets == len(file.prune_map) == 300 - len(file.words)
    features = LineFeatures(file.words, file.subwords, 1, file.prune_map)
    lines = LabelledLines(lines, file.labels, features)
    stream = LabelledStream(lines, file.label_counts, epochs=3, step_lines=8, learning_rate=1.0)
    losses = in_stream(model, stream)
    assert losses[-1] < losses[0]
    vocabulary = vocabulary._replace(words=file.words, counts=file.counts)
    written = to_fasttext_file(model, vocabulary, file.subwords, prune_map=file.prune_map)
    answers = FastTextPredictor(written).predict(["w1 w2", "w7 w8"])
    assert all(len(answer) == 1 for answer in answers)


def test_what_does_not_fit():
    model, file = trained_vectors(epochs=1)
    with pytest.raises(ValueError, match=r"`inputs` must have shape \(.*, 8\). Received"):
        to_fasttext_file(model, VOCABULARY, Subwords(3, 5, SUBWORDS.buckets + 1))
    with pytest.raises(ValueError, match="Only a classifier has n-grams of words.*2"):
        to_fasttext_file(model, VOCABULARY, SUBWORDS, word_ngrams=2)
    with pytest.raises(ValueError, match="must be a FastText or a FastTextClassifier.*Word2Vec"):
        to_fasttext_file(Word2Vec(5, 2), VOCABULARY, SUBWORDS)
    wrong = dataclasses.replace(file, arguments=dataclasses.replace(file.arguments, loss="softmax"))
    with pytest.raises(ValueError, match="`objective` must be one of.*softmax"):
        from_fasttext_file(wrong)
    table = keras.ops.convert_to_numpy(model.output_table).copy()
    table[3, 2] = np.nan
    model.output_table.assign(table)
    with pytest.raises(ValueError, match="`outputs` must be finite.*in row 3. A lower learning"):
        to_fasttext_file(model, VOCABULARY, SUBWORDS)
    with pytest.raises(ValueError, match="`outputs` must be finite"):
        from_fasttext_file(dataclasses.replace(file, outputs=table))


def test_counts_that_rise_make_another_tree():
    model = FastText(3, 0, 2, objective="hierarchical_softmax")
    with pytest.raises(ValueError, match=r"counts must not rise.*\[3, 4, 1\]"):
        to_fasttext_file(model, WordVocabulary(list("abc"), [3, 4, 1]), Subwords(0, 0, 0))
