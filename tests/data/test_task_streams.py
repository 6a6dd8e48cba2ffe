"""Streams of tagged sentences, spans, choices and pairs: what is in a batch, and resuming."""

import json
import unicodedata

import numpy as np
import pytest
import tensorflow as tf

from kctx.data import (
    ChoiceExamples,
    ChoiceStream,
    Examples,
    ExampleStream,
    SimilarityStream,
    SpanExamples,
    SpanStream,
    TaggedSentences,
    TaggingStream,
    read_squad,
)
from kctx.data.span_stream import answer_tokens
from kctx.preprocessors import BERTPreprocessor, WordsPreprocessor
from kctx.tokenizers import WordPieceTokenizer, WordTokenizer

pytestmark = pytest.mark.once

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS]
VOCABULARY += [f"##{letter}" for letter in LETTERS]
REPORT = {"questions": 0}


def preprocessor(length=12, **options):
    return BERTPreprocessor(WordPieceTokenizer(VOCABULARY), length, **options)


def text_of(ids):
    return "".join(VOCABULARY[i].removeprefix("##") for i in ids)


def sentences(count=20, longest=4):
    random = np.random.default_rng(0)
    words = [
        ["".join(random.choice(list(LETTERS), random.integers(1, 4))) for _ in range(length)]
        for length in random.integers(1, longest + 1, count)
    ]
    tags = [["T" + word[0] for word in row] for row in words]
    names = sorted({tag for row in tags for tag in row})
    return TaggedSentences(words, tags, names, None, list(range(1, count + 1)))


def take(stream, steps):
    return [(dict(x), y) for x, y in stream.dataset().take(steps).as_numpy_iterator()]


def equal(a, b):
    for (x, y), (other_x, other_y) in zip(a, b, strict=True):
        assert x.keys() == other_x.keys()
        assert all(np.array_equal(x[name], other_x[name]) for name in x)
        assert np.array_equal(y, other_y)


# ---- tagging


def words_and_tags(batch, names):
    """(word, tag) of every word of a batch."""
    x, y = batch
    for row, (positions, mask) in enumerate(zip(x["word_positions"], x["word_mask"], strict=True)):
        count = int(mask.sum())
        assert (y[row, count:] == -1).all() and (y[row, :count] >= 0).all()
        length = int(x["padding_mask"][row].sum())
        ends = [*positions[1:count], length - 1]
        for place, end, tag in zip(positions[:count], ends, y[row], strict=False):
            yield text_of(x["token_ids"][row, place:end]), names[tag]


def test_tags_follow_their_words():
    examples = sentences()
    stream = TaggingStream(examples, preprocessor(16), 6, seed=1)
    assert stream.steps_per_epoch == 4 and stream.num_windows == 20
    batches = take(stream, 8)
    found = [pair for batch in batches[:4] for pair in words_and_tags(batch, examples.tag_names)]
    rows = zip(examples.words, examples.tags, strict=True)
    expected = [pair for words, tags in rows for pair in zip(words, tags, strict=True)]
    assert sorted(found) == sorted(expected)
    again = [pair for batch in batches[4:] for pair in words_and_tags(batch, examples.tag_names)]
    assert again != found and sorted(again) == sorted(expected)
    assert batches[0][1].dtype == np.int32 and batches[0][0]["word_mask"].dtype == bool
    assert batches[0][0]["word_mask"].shape == batches[0][1].shape


def test_long_sentences_lose_no_word():
    """12 tokens take 10 pieces: a sentence of 30 letters needs several windows."""
    words = [list(LETTERS), ["abc", "de"]]
    tags = [[f"T{i % 3}" for i in range(26)], ["T0", "T1"]]
    examples = TaggedSentences(words, tags, ["T0", "T1", "T2"])
    stream = TaggingStream(examples, preprocessor(12), 3)
    batches = take(stream, stream.steps_per_epoch)
    found = [pair for batch in batches for pair in words_and_tags(batch, examples.tag_names)]
    assert set(found) == {*zip(words[0], tags[0], strict=True), ("abc", "T0"), ("de", "T1")}
    assert all(len(y) <= 3 and x["token_ids"].shape[1] <= 12 for x, y in batches)
    assert sum(len(y) for _, y in batches) == stream.num_windows > 3


def test_tagging_with_static_vectors():
    words = WordsPreprocessor(WordTokenizer(list(LETTERS)), sequence_length=5)
    examples = TaggedSentences([["a", "b b", "?"]], [["X", "Y", "X"]], ["X", "Y"])
    x, y = take(TaggingStream(examples, words, 2), 1)[0]
    assert y.tolist() == [[0, 1, 0]] and x["word_mask"].tolist() == [[True] * 3]
    assert (x["word_positions"] < x["padding_mask"].sum()).all()


@pytest.mark.parametrize(
    ("words", "tags", "names", "message"),
    [
        ([], [], [], "at least one row. Received: 0 rows"),
        ([["a"]], None, None, "give `tag_column=`"),
        ([["a", "b"]], [["X", "Z"]], ["X"], "Only tags among `tag_names`.*'Z' in the sentence of"),
        ([["a"], ["b"]], [["X"], ["X"]], ["X", "Y"], "at least two tags.*all tagged"),
    ],
)
def test_sentences_that_cannot_train(words, tags, names, message):
    with pytest.raises(ValueError, match=message):
        TaggingStream(TaggedSentences(words, tags, names), preprocessor())


# ---- spans


def span_examples(count=12):
    """The answer of a context is its only word of two letters; every fourth has none."""
    random = np.random.default_rng(0)
    contexts, answers = [], []
    for row in range(count):
        size = int(random.integers(3, 30))
        words = [str(random.choice(list(LETTERS[:20]))) for _ in range(size)]
        place = int(random.integers(0, size))
        if row % 4 < 3:
            words[place] = "zy"
        contexts.append(" ".join(words))
        start = contexts[-1].find("zy")
        answers.append([] if start < 0 else [("zy", start, start + 2)])
    texts = [[answer[0] for answer in row] for row in answers]
    ids = [str(row) for row in range(count)]
    return SpanExamples(ids, ["w"] * count, contexts, answers, texts, REPORT)


def test_spans_are_where_the_answers_are():
    examples = span_examples()
    stream = SpanStream(examples, preprocessor(14), stride=4, batch_size=5)
    batches = take(stream, stream.steps_per_epoch)
    assert sum(len(y) for _, y in batches) == stream.num_windows > len(examples)
    found = 0
    for x, y in batches:
        assert y.shape == (len(x["token_ids"]), 2) and y.dtype == np.int32
        for row, (first, last) in enumerate(y):
            text = text_of(x["token_ids"][row][x["answer_mask"][row]])
            # A window that holds half of the answer, z or y, has none.
            assert (first > 0) == ("zy" in text)
            if first:
                assert text_of(x["token_ids"][row, first : last + 1]) == "zy"
                assert x["answer_mask"][row, first : last + 1].all()
                found += 1
            else:
                assert last == 0
    assert found >= 9 and stream.unseen_answers == []
    only = SpanStream(examples, preprocessor(14), stride=4, without_answer=False)
    labels = np.concatenate([y for _, y in take(only, only.steps_per_epoch)])
    # those of answerable questions that have it, and all of those without an answer
    assert (labels[:, 0] > 0).sum() == found and len(labels) < stream.num_windows


def test_answers_at_borders():
    window = np.array([[-1, -1], [-1, -1], [0, 3], [4, 7], [7, 9], [-1, -1]])
    second = np.array([[-1, -1], [-1, -1], [4, 7], [7, 9], [10, 12], [-1, -1]])
    third = np.array([[-1, -1], [-1, -1], [7, 9], [10, 12], [12, 13], [-1, -1]])
    windows = [window, second, third]
    assert answer_tokens(windows, (4, 9)) == [(3, 4), (2, 3), (0, 0)]
    assert answer_tokens(windows, (5, 8)) == [(3, 4), (2, 3), (0, 0)]  # within pieces
    assert answer_tokens(windows, (4, 12)) == [(0, 0), (2, 4), (0, 0)]
    assert answer_tokens(windows, (0, 13)) == [(0, 0)] * 3  # in no window
    assert answer_tokens(windows, (3, 4)) == [(0, 0)] * 3  # no piece at all
    assert answer_tokens(windows, None) == [(0, 0)] * 3


def test_answers_that_fit_no_window_are_left_out_and_named():
    context = " ".join(LETTERS)
    examples = SpanExamples(
        ["long", "short"],
        ["q", "q"],
        [context, "a b"],
        [[(context, 0, len(context))], [("b", 2, 3)]],
        [[context], ["b"]],
        REPORT,
    )
    stream = SpanStream(examples, preprocessor(10), stride=3)
    assert stream.unseen_answers == ["long"] and stream.num_windows == 1


def test_examples_that_cannot_train(tmp_path):
    examples = span_examples()
    with pytest.raises(ValueError, match="at least one row"):
        SpanStream(examples.take([]), preprocessor())
    without = SpanExamples(["a"], ["q"], ["c"], None, None, REPORT)
    with pytest.raises(ValueError, match="give `labelled=True`"):
        SpanStream(without, preprocessor())
    unlocated = SpanExamples(["a"], ["q"], ["c"], [[]], [["x"]], REPORT)
    with pytest.raises(ValueError, match=r"`unlocated='skip'`.*Received: \['a'\]"):
        SpanStream(unlocated, preprocessor())


def test_real_answers(kctx_data):
    tokenizer = WordPieceTokenizer(str(kctx_data / "tokenizers/bert-base-uncased/vocab.txt"))
    examples = read_squad(kctx_data / "squad/dev-v2.0-part.json").take(range(0, 4218, 40))
    own = BERTPreprocessor(tokenizer, 128)
    stream = SpanStream(examples, own, stride=48, without_answer=False, window=0)
    assert stream.unseen_answers == []

    def letters(text):  # without case, accents and punctuation
        return "".join(c for c in unicodedata.normalize("NFD", text.lower()) if c.isalnum())

    found = []
    for x, y in take(stream, stream.steps_per_epoch):
        for row in np.flatnonzero(y[:, 0]):
            ids = x["token_ids"][row, y[row, 0] : y[row, 1] + 1]
            found.append(letters(tokenizer.detokenize(ids)))
    expected = {letters(answers[0].text) for answers in examples.answers if answers}
    assert set(found) == expected and len(expected) > 40


# ---- choices


def choice_examples(count=9):
    random = np.random.default_rng(0)
    answers = [[f"{LETTERS[j]} x" for j in range(2 + row % 3)] for row in range(count)]
    labels = [int(random.integers(len(row))) for row in answers]
    contexts = [" ".join(LETTERS[: 1 + row % 5]) for row in range(count)]
    return ChoiceExamples(contexts, ["q"] * count, answers, labels, ["?"] * count)


def test_choices_stand_beside_each_other():
    examples = choice_examples()
    own = preprocessor(20)
    stream = ChoiceStream(examples, own, 4, window=0)
    assert stream.steps_per_epoch == 3
    seen = []
    for x, y in take(stream, 3):
        batch, most, length = x["token_ids"].shape
        assert x["choice_mask"].shape == (batch, most) and x["segment_ids"].shape[2] == length
        for row in range(batch):
            count = int(x["choice_mask"][row].sum())
            assert x["choice_mask"][row, :count].all() and y[row] < count
            text = [text_of(x["token_ids"][row, i]) for i in range(count)]
            context = text[0].split("[SEP]")[0].removeprefix("[CLS]")
            assert all(one.startswith(f"[CLS]{context}[SEP]q") for one in text)
            seen.append((context, count, int(y[row])))
    expected = [
        (context.replace(" ", ""), len(answers), label)
        for context, answers, label in zip(
            examples.contexts, examples.answers, examples.labels, strict=True
        )
    ]
    assert sorted(seen) == sorted(expected)


def test_choices_with_static_vectors():
    words = WordsPreprocessor(WordTokenizer(list(LETTERS)), sequence_length=6)
    examples = ChoiceExamples(["d e f"], [""], [["a", "b"]], [1], ["?"])
    x, y = take(ChoiceStream(examples, words, 1), 1)[0]
    letters = np.array(["", "?", *LETTERS])[x["token_ids"][0]]
    assert letters.tolist() == [["?", "d", "e", "f", "?", c] for c in "ab"] and y.tolist() == [1]


def test_choices_that_cannot_train():
    with pytest.raises(ValueError, match="at least one row"):
        ChoiceStream(choice_examples().take([]), preprocessor())
    without = ChoiceExamples(["c"], [""], [["a", "b"]], None, ["?"])
    with pytest.raises(ValueError, match="give `labelled=True`"):
        ChoiceStream(without, preprocessor())


# ---- similarity


def pairs(labels=(0.0, 2.5, 5.0), names=None):
    count = len(labels)
    texts, others = [LETTERS[i] for i in range(count)], [LETTERS[i + 9] * 2 for i in range(count)]
    return Examples(texts, others, list(labels), names, list(range(count)))


def test_pairs_to_compare():
    stream = SimilarityStream(pairs(), preprocessor(), batch_size=3, window=0)
    x, y = take(stream, 1)[0]
    assert sorted(x) == sorted(
        f"{name}{end}"
        for name in ("token_ids", "segment_ids", "padding_mask")
        for end in ("", "_b")
    )
    assert y.shape == (3, 1) and y.dtype == np.float32
    for row in range(3):
        number = LETTERS.index(text_of(x["token_ids"][row, 1:2]))
        assert y[row, 0] == number / 2
        assert text_of(x["token_ids_b"][row, 1:3]) == LETTERS[number + 9] * 2
    wider = SimilarityStream(pairs(), preprocessor(), low=-5, high=5, batch_size=3)
    assert sorted(take(wider, 1)[0][1][:, 0]) == [0.5, 0.75, 1.0]
    assert stream.fingerprint() != wider.fingerprint()


def test_pairs_that_cannot_train():
    with pytest.raises(ValueError, match="labels from 0.0 to 5.0"):
        SimilarityStream(pairs(), preprocessor(), high=4)
    with pytest.raises(ValueError, match="`low` must be below `high`"):
        SimilarityStream(pairs([1.0, 1.0]), preprocessor())
    with pytest.raises(ValueError, match="`regression=True`"):
        SimilarityStream(pairs([0, 1], ["no", "yes"]), preprocessor())
    single = Examples(["a"], None, [1.0], None, [1])
    with pytest.raises(ValueError, match="must be pairs"):
        SimilarityStream(single, preprocessor())


# ---- all


def test_one_class_only():
    examples = Examples(["a", "b"], None, [1, 1], ["no", "yes"], [1, 2])
    with pytest.raises(ValueError, match="at least two classes.*2 rows, all labelled 'yes'"):
        ExampleStream(examples, preprocessor())


STREAMS = [
    lambda **options: TaggingStream(sentences(longest=12), preprocessor(), **options),
    lambda **options: SpanStream(span_examples(), preprocessor(14), stride=4, **options),
    lambda **options: ChoiceStream(choice_examples(), preprocessor(20), **options),
    lambda **options: SimilarityStream(pairs(range(9)), preprocessor(), **options),
]


@pytest.mark.parametrize("make", STREAMS)
@pytest.mark.parametrize("step", [1, 5])
def test_resuming_at_any_batch(make, step):
    options = {"batch_size": 3, "seed": 2}
    whole = take(make(**options), 8)
    stream = make(**options)
    state = {name: np.asarray(value) for name, value in stream.state_at(step).items()}
    resumed = make(**options)
    resumed.restore(state)
    equal(take(resumed, 8 - step), whole[step:])
    assert resumed.fingerprint() == stream.fingerprint()
    assert json.dumps(resumed.fingerprint())
    for other in ({"seed": 3}, {"batch_size": 2}, {"window": 0}):
        assert make(**{**options, **other}).fingerprint() != stream.fingerprint()


@pytest.mark.parametrize("make", STREAMS)
def test_bad_options(make):
    for name, value in (("batch_size", 0), ("seed", -1), ("window", 2.5)):
        with pytest.raises(ValueError, match=f"`{name}` must be an integer.*Received: {name}="):
            make(**{name: value})


def test_few_shapes():
    """Widths in multiples, the same for tokens and words, so that few shapes are compiled."""
    stream = TaggingStream(sentences(longest=12), preprocessor(32, pad_to_multiple=8), 4)
    for x, y in take(stream, stream.steps_per_epoch):
        width = x["token_ids"].shape[1]
        assert width % 8 == 0 and x["word_mask"].shape[1] == width and y.shape[1] == width
    assert isinstance(stream.dataset(), tf.data.Dataset)
