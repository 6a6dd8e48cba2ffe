import json

import numpy as np
import pytest

from kctx.ngrams import NGramLM, Perplexity
from tests.ngrams.texts import CATS, random_lines

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:The Kneser-Ney discounts"),
]


@pytest.fixture(scope="module")
def model():
    return NGramLM.train(lines=CATS, order=3, progress=False)


@pytest.fixture(scope="module")
def large():
    return NGramLM.train(lines=random_lines(0, 500, words=60), order=4, progress=False)


def by_hand(model, sentence):
    """log10 p of each token by the back-off rule, n-gram by n-gram."""
    rows = [model.tables.rows_of(k) for k in range(1, model.order + 1)]
    listed = [{tuple(row): i for i, row in enumerate(table.tolist())} for table in rows]

    def score(context, word):
        place = listed[len(context)].get((*context, word))
        if place is not None:
            return float(model.tables.probabilities[len(context)][place])
        weight = listed[len(context) - 1].get(context)
        backoff = 0.0 if weight is None else float(model.tables.backoffs[len(context) - 1][weight])
        return backoff + score(context[1:], word)

    ids = [1, *model.ids(sentence.split()).tolist(), 2]
    order = model.order
    return [score(tuple(ids[max(0, i - order + 1) : i]), ids[i]) for i in range(1, len(ids))]


def test_scores_follow_the_back_off_rule(large):
    lines = [*random_lines(1, 60, words=90), "", "w0", "w0 unheard w1 w2 w0 w1"]
    per_token = large.score(lines, per_token=True)
    for line, found in zip(lines, per_token, strict=True):
        np.testing.assert_allclose(found, by_hand(large, line), atol=1e-6)
    np.testing.assert_allclose(large.score(lines), [row.sum() for row in per_token], atol=1e-9)
    np.testing.assert_allclose(
        large.score(line.encode() for line in lines), large.score(lines), atol=0
    )


def test_scores_do_not_depend_on_the_batch(large):
    lines = random_lines(2, 200, words=90)
    whole = large.score(lines)
    assert np.array_equal(whole, np.concatenate([large.score([line]) for line in lines]))


def test_files_and_lines_cost_the_same(large, tmp_path):
    lines = random_lines(3, 100, words=90)
    (tmp_path / "text").write_text("\r\n".join(lines), encoding="utf-8", newline="")
    (tmp_path / "more").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    one = large.perplexity(lines=lines)
    assert large.perplexity(tmp_path / "more") == one
    two = large.perplexity([tmp_path / "text", tmp_path / "more"])
    assert (two.tokens, two.oov) == (2 * one.tokens, 2 * one.oov)
    assert two.including_oov == pytest.approx(one.including_oov)


def test_special_words_in_scored_text_are_unknown_words(model):
    for word in ("<s>", "</s>", "<unk>"):
        assert model.score([f"the {word} sat"])[0] == model.score(["the zebra sat"])[0]
        assert model.perplexity(lines=[f"the {word}"]).oov == 1


def test_perplexity_by_definition(model):
    found = model.perplexity(lines=["the cat zebra", "a"])
    logs = model.score(["the cat zebra", "a"], per_token=True)
    total, unknown = sum(map(np.sum, logs)), logs[0][2]
    assert found.including_oov == pytest.approx(10 ** (-total / 6))
    assert found.excluding_oov == pytest.approx(10 ** (-(total - unknown) / 5))
    assert found.srilm_ppl == pytest.approx(10 ** (-(total - unknown) / (4 - 1 + 2)))
    assert found.srilm_ppl1 == pytest.approx(10 ** (-(total - unknown) / (4 - 1)))
    assert "1 OOV" in str(found)
    impossible = Perplexity(1, 3, 1, 1, -np.inf, -np.inf, -2.0)
    assert impossible.including_oov == np.inf
    assert impossible.srilm_ppl == pytest.approx(10.0 ** (2 / 2))
    assert impossible.srilm_ppl1 == pytest.approx(10.0 ** (2 / 1))
    assert np.isnan(Perplexity(0, 0, 0, 0, 0.0, 0.0, 0.0).including_oov)


def test_log_probabilities_of_ids(model):
    words = "<s> the cat sat".split()
    ids = model.ids(words)
    contexts = [[-1, 1], [1, ids[1]], [ids[1], ids[2]]]
    found = model.log_probabilities(contexts, ids[1:])
    np.testing.assert_allclose(found, model.score(["the cat sat"], per_token=True)[0][:3])
    wide = np.concatenate([np.full((3, 2), ids[3]), contexts], axis=1)
    assert np.array_equal(model.log_probabilities(wide, ids[1:]), found)
    alone = model.log_probabilities(np.zeros((1, 0), int), [ids[1]])
    assert 10 ** alone[0] == pytest.approx(model.probability("the"))
    assert model.log_probabilities([[-1, -1]], [1])[0] == -np.inf
    assert model.log_probabilities(np.zeros((0, 2), int), np.zeros(0, int)).shape == (0,)
    with pytest.raises(ValueError, match=r"`context_ids` must be of shape \(N, C\)"):
        model.log_probabilities([1, 2], [3])
    with pytest.raises(ValueError, match="`word_ids` must be from 0 to 12. Received: 13"):
        model.log_probabilities([[1]], [13])
    with pytest.raises(ValueError, match="`context_ids` must be from -1 to 12. Received: -2"):
        model.log_probabilities([[-2]], [3])
    with pytest.raises(ValueError, match="`word_ids` must be integers"):
        model.log_probabilities([[1]], [3.0])


def test_ids():
    model = NGramLM.train(lines=["b a"], order=1, progress=False)
    assert model.ids(["<unk>", "<s>", "</s>", "b", "a", "x", b"a"]).tolist() == [
        0,
        1,
        2,
        3,
        4,
        0,
        4,
    ]
    assert model.ids([]).shape == (0,)


def test_samples(model):
    sentences = model.sample(20, seed=3)
    assert sentences == model.sample(20, seed=3) != model.sample(20, seed=4)
    assert all("<" not in sentence for sentence in sentences)
    (one,) = model.sample(1, prefix="the dog", max_words=3)
    assert one.startswith("the dog") and len(one.split()) <= 3
    # At a low temperature the likeliest word is drawn.
    p = model.distribution([model.ids(["<s>", "the"])])[0]
    likeliest = model.vocabulary[int(p[3:].argmax()) + 3]
    assert model.sample(1, prefix="the", max_words=2, temperature=0.01) == [f"the {likeliest}"]
    for arguments in ({"number": 0}, {"max_words": 0}, {"temperature": 0}):
        with pytest.raises(ValueError, match=f"`{next(iter(arguments))}`"):
            model.sample(**arguments)


def test_samples_of_unigrams():
    model = NGramLM.train(lines=CATS, order=1, progress=False)
    words = {word for line in CATS for word in line.split()}
    drawn = model.sample(50, max_words=4)
    assert {word for sentence in drawn for word in sentence.split()} <= words
    assert max(len(sentence.split()) for sentence in drawn) == 4
    assert model.sample(1, prefix="one two three four", max_words=2) == ["one two three four"]


def test_samples_follow_the_distribution(model):
    drawn = model.sample(2000, seed=1, max_words=1)
    p = model.distribution([model.ids(["<s>"])])[0]
    p[0] = 0
    for word in ("the", "a"):
        expected = p[model.ids([word])[0]] / p.sum()
        assert drawn.count(word) / 2000 == pytest.approx(expected, abs=0.03)


@pytest.mark.parametrize("memory_map", [True, False])
@pytest.mark.parametrize("buckets", [None, "nested", "joint"])
def test_saved_models_come_back(tmp_path, memory_map, buckets):
    options = {} if buckets is None else {"smoothing": "jelinek_mercer", "held_out": CATS}
    options |= {"buckets": buckets} if buckets else {}
    lines = [*CATS, b"caf\xe9 \xff", "x" * 1000]
    model = NGramLM.train(lines=lines, order=3, progress=False, **options)
    model.save(tmp_path / "model")
    model.save(tmp_path / "model")  # takes the place of what it wrote
    again = NGramLM.load(tmp_path / "model", memory_map)
    assert again.vocabulary == model.vocabulary and again.sizes == model.sizes
    assert again.details == model.details and repr(again) == repr(model)
    texts = [*lines, "zebra the cat"]
    assert np.array_equal(again.score(texts), model.score(texts))
    assert isinstance(again.tables.probabilities[0], np.memmap) == memory_map


def test_broken_folders_are_refused(model, tmp_path):
    folder = tmp_path / "model"
    with pytest.raises(FileNotFoundError):
        NGramLM.load(folder)
    model.save(folder)
    array = folder / "order2_keys.npy"
    whole = array.read_bytes()

    def refused(message):
        with pytest.raises(ValueError, match=message):
            NGramLM.load(folder)

    array.write_bytes(whole[:-8])
    refused("order2_keys.npy is truncated or no array")
    np.save(array, np.load(folder / "order2_probabilities.npy"))
    refused("order2_keys.npy must hold 23 values of int64. Received: .*float32")
    np.save(array, np.arange(23) + 10_000)
    refused("order2_keys.npy names n-grams that are not there")
    array.write_bytes(whole)
    words = (folder / "words.txt").read_bytes()
    (folder / "words.txt").write_bytes(words[:-2])
    refused("words.txt must hold 13 lines")
    (folder / "words.txt").write_bytes(words)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "version": 9}))
    refused("config.json is not of a kctx n-gram model, version 1")
    (folder / "config.json").write_text(json.dumps({**config, "sizes": []}))
    refused("must hold 1 to 6 sizes")


def test_bad_calls(model):
    with pytest.raises(ValueError, match=r"give \[text\]"):
        model.score("the cat")
    with pytest.raises(ValueError, match="`context` must be a list of words"):
        model.probability("cat", "the")
    with pytest.raises(ValueError, match="`counts` must be NGramCounts. Received: dict"):
        NGramLM.from_counts({})
    with pytest.raises(ValueError, match="either `files` or `lines`"):
        model.perplexity()
    with pytest.raises(TypeError, match="discount"):
        NGramLM.train(lines=CATS, discount=1, progress=False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 10**9}, "`order` must be from 1 to 6. Received: order=1000000000"),
        ({"vocabulary": "cat"}, "`vocabulary` must be a list of words. Received: 'cat'"),
        ({"vocabulary": 5}, "`vocabulary` must be a list of words. Received: 5"),
        ({"lines": 5}, "`lines` must be several texts, a sentence each. Received: 5"),
    ],
)
def test_bad_training(options, message):
    with pytest.raises(ValueError, match=message):
        NGramLM.train(**{"lines": CATS, "progress": False, **options})


def test_bad_samples(model):
    with pytest.raises(ValueError, match="`seed` must be an integer of at least 0.*seed=-1"):
        model.sample(seed=-1)
    with pytest.raises(ValueError, match="`temperature` must be above 0. Received: '1'"):
        model.sample(temperature="1")


def test_nothing_to_score(model):
    assert model.score([]).shape == (0,) and model.score([], per_token=True) == []
