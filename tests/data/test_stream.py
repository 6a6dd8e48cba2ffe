import gc
import itertools
import threading
import time
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from kctx.data import (
    Corpus,
    bert_pretraining_dataset,
    bert_pretraining_stream,
)
from kctx.data.pairs import count_sentences
from tests.data.stand_in_tokenizer import StandInTokenizer, write_corpus

pytestmark = pytest.mark.once

OPTIONS = {"sequence_length": 32, "max_predictions": 5, "batch_size": 8, "block_bytes": 4096}
DOCUMENTS = 100  # divides the 500 words of the stand-in


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    return Corpus(str(write_corpus(path, DOCUMENTS)), split_sentences=False)


def make(corpus, tokenizer=None, **options):
    return bert_pretraining_stream(corpus, tokenizer or StandInTokenizer(), **OPTIONS | options)


def take(stream, count=None):
    return list(itertools.islice(stream.batches(), count))


def joined(lists):
    return list(itertools.chain.from_iterable(lists))


def same(one, other):
    one, other = tf.nest.flatten(one), tf.nest.flatten(other)
    return len(one) == len(other) and all(
        np.array_equal(a, b) for a, b in zip(one, other, strict=True)
    )


def unmasked(batch):
    """The token ids before masking."""
    x, y, weight = batch
    ids = np.array(x["token_ids"])
    rows, columns = np.nonzero(np.asarray(weight["masked_lm"]))
    ids[rows, np.asarray(x["mask_positions"])[rows, columns]] = y["masked_lm"][rows, columns]
    return ids


def segments(batch, start=2, separator=3):
    """Lists of A, B and label, a row each, special tokens taken off."""
    for ids, segment, mask, label in zip(
        unmasked(batch),
        batch[0]["segment_ids"],
        batch[0]["padding_mask"],
        batch[1]["next_sentence"],
        strict=True,
    ):
        first = ids[mask & (segment == 0)].tolist()
        second = ids[mask & (segment == 1)].tolist()
        assert [first[0], first[-1], second[-1]] == [start, separator, separator]
        yield first[1:-1], second[:-1], int(label)


def test_shapes_dtypes_and_layout(corpus):
    dataset = bert_pretraining_dataset(corpus, StandInTokenizer(), **OPTIONS)
    x, y, weight = dataset.element_spec
    assert {name: (tuple(spec.shape), spec.dtype) for name, spec in x.items()} == {
        "token_ids": ((8, 32), tf.int32),
        "segment_ids": ((8, 32), tf.int32),
        "padding_mask": ((8, 32), tf.bool),
        "mask_positions": ((8, 5), tf.int32),
    }
    assert y["masked_lm"].shape == (8, 5) and y["next_sentence"].shape == (8,)
    assert weight["masked_lm"].dtype == weight["next_sentence"].dtype == tf.float32
    for x, y, weight in dataset.take(5).as_numpy_iterator():
        length = x["padding_mask"].sum(axis=1)
        assert (x["padding_mask"] == (np.arange(32) < length[:, None])).all()
        assert not x["token_ids"][~x["padding_mask"]].any()
        assert not x["segment_ids"][~x["padding_mask"]].any()
        assert (np.diff(x["segment_ids"], axis=1)[x["padding_mask"][:, 1:]] >= 0).all()
        assert (weight["next_sentence"] == 1).all() and set(y["next_sentence"]) <= {0, 1}
        for a, b, _ in segments((x, y, weight)):
            assert a and b and not {0, 2, 3, 4} & set(a + b)


def test_dataset_and_numpy_batches_are_the_same(corpus):
    ours = take(make(corpus), 6)
    theirs = list(make(corpus).dataset().take(6).as_numpy_iterator())
    assert all(same(a, b) for a, b in zip(ours, theirs, strict=True))


def test_random_second_segments_come_from_another_document(corpus):
    """The document of every token is known from its id."""
    labels = []
    for batch in take(make(corpus, epochs=3)):
        for a, b, label in segments(batch):
            document_a = {(i - 5) % 500 % DOCUMENTS for i in a}
            document_b = {(i - 5) % 500 % DOCUMENTS for i in b}
            assert len(document_a) == 1 == len(document_b)
            assert (document_a != document_b) == label
            labels.append(label)
    assert 0.45 < np.mean(labels) < 0.75


def test_real_pairs_are_contiguous_and_random_segments_start_sentences(corpus):
    tokenizer = StandInTokenizer()
    documents = [
        [tokenizer.ids(sentence) for sentence in corpus.sentences(d)] for d in range(DOCUMENTS)
    ]
    flat = [",".join(map(str, joined(document))) + "," for document in documents]
    found = 0
    for batch in take(make(corpus, short_sequence_probability=0.0, sequence_length=96), 10):
        for a, b, label in segments(batch):
            text_a, text_b = (",".join(map(str, s)) + "," for s in (a, b))
            document = flat[(a[0] - 5) % 500 % DOCUMENTS]
            if not label:
                found += 1
                assert text_a in document and text_b in document
                if len(a) + len(b) < 93:  # nothing was cut
                    assert text_a + text_b in document
            else:
                other = documents[(b[0] - 5) % 500 % DOCUMENTS]
                if len(a) + len(b) < 93:
                    assert any(
                        b == joined(rest[: count_sentences(map(len, rest), 93 - len(a))])
                        for rest in (other[start:] for start in range(len(other)))
                    )
    assert found > 10


def test_short_sequences(corpus):
    def mean_length(probability):
        batches = take(make(corpus, epochs=2, short_sequence_probability=probability))
        return np.mean([batch[0]["padding_mask"].sum(axis=1).mean() for batch in batches])

    assert mean_length(1.0) < mean_length(0.1) - 3


def test_seed_fixes_everything_and_threads_nothing(corpus):
    one = take(make(corpus, seed=1, workers=1), 60)
    many = take(make(corpus, seed=1, workers=4), 60)
    other = take(make(corpus, seed=2), 60)
    assert all(same(a, b) for a, b in zip(one, many, strict=True))
    assert not any(same(a, b) for a, b in zip(one, other, strict=True))


def rows_of_epochs(stream):
    """Rows of a finite stream as hashable tuples: (ids before masking, ids after)."""
    return [
        (tuple(row), tuple(masked))
        for batch in take(stream)
        for row, masked in zip(
            unmasked(batch).tolist(), batch[0]["token_ids"].tolist(), strict=True
        )
    ]


def test_dynamic_differs_between_epochs_and_static_does_not(corpus):
    options = {"batch_size": 1, "masked_lm_probability": 0.3}
    count = len(
        rows_of_epochs(make(corpus, static_masking=True, dupe_factor=2, epochs=1, **options))
    )
    static = rows_of_epochs(make(corpus, static_masking=True, dupe_factor=1, epochs=2, **options))
    first, second = static[: len(static) // 2], static[len(static) // 2 :]
    assert sorted(first) == sorted(second) and first != second and len(first) == count
    two = rows_of_epochs(make(corpus, static_masking=True, dupe_factor=2, epochs=3, **options))
    assert sorted(two[:count]) == sorted(two[-count:])
    assert len(set(two[:count]) & set(two[count:-count])) < 0.1 * count
    dynamic = rows_of_epochs(make(corpus, epochs=2, **options))
    half = dynamic[: len(dynamic) // 2], dynamic[len(dynamic) // 2 :]
    assert len(set(half[0]) & set(half[1])) < 0.1 * len(half[0])
    # Also where the same sequence comes again its mask is another.
    masks = {}
    for row, masked in dynamic:
        masks.setdefault(row, set()).add(masked)
    again = [seen for row, seen in masks.items() if sum(r == row for r, _ in dynamic) > 1]
    assert again and np.mean([len(seen) > 1 for seen in again]) > 0.5


def test_masking_statistics_of_the_stream(corpus):
    for whole_word in (False, True):
        predicted = maskable = masked = kept = 0
        for x, y, weight in take(make(corpus, epochs=8, whole_word=whole_word)):
            rows, columns = np.nonzero(weight["masked_lm"])
            places = x["mask_positions"][rows, columns]
            after, before = x["token_ids"][rows, places], y["masked_lm"][rows, columns]
            assert (before > 4).all()
            predicted += len(after)
            maskable += x["padding_mask"].sum()
            masked += (after == 4).sum()
            kept += (after == before).sum()
        assert predicted > 3000
        assert abs(predicted / maskable - 0.15) < 0.015
        assert abs(masked / predicted - 0.8) < 0.025 and abs(kept / predicted - 0.1) < 0.02


def test_whole_words_are_never_split_in_the_stream(corpus):
    partial = 0
    for batch in take(make(corpus, whole_word=True), 40):
        ids = unmasked(batch)
        x, _, weight = batch
        for row in range(8):
            chosen = set(x["mask_positions"][row][weight["masked_lm"][row] > 0].tolist())
            for place in range(1, 31):
                if ids[row, place] >= 505 and ids[row, place - 1] >= 5:
                    partial += (place in chosen) != (place - 1 in chosen)
    assert partial == 0


def test_special_tokens_are_no_replacements_when_asked(corpus):
    for allowed in (True, False):
        found = 0
        for x, _, weight in take(make(corpus, epochs=12, replace_with_special=allowed)):
            rows, columns = np.nonzero(weight["masked_lm"])
            after = x["token_ids"][rows, x["mask_positions"][rows, columns]]
            found += np.isin(after, (0, 1, 2, 3)).sum()
        assert (found > 0) == allowed


def test_single_segments(corpus):
    stream = make(corpus, next_sentence=False, epochs=1, batch_size=1)
    total = 0
    for batch in take(stream):
        x, y, weight = batch
        assert set(y) == set(weight) == {"masked_lm"} and not x["segment_ids"].any()
        row = unmasked(batch)[0][x["padding_mask"][0]]
        assert row[0] == 2 and row[-1] == 3 and (row[1:-1] > 4).all()
        total += len(row) - 2
    tokenizer = StandInTokenizer()
    assert total == sum(
        len(tokenizer.ids(s)) for d in range(DOCUMENTS) for s in corpus.sentences(d)
    )
    assert "next_sentence" not in stream.dataset().element_spec[1]


# ---- resuming


def through_file(state, path):
    np.savez(path, **state)
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)


@pytest.mark.parametrize("options", [{}, {"static_masking": True, "dupe_factor": 2}])
def test_resume_at_every_batch_across_epochs(corpus, tmp_path, options):
    stream = make(corpus, epochs=3, **options)
    whole = take(stream)
    assert len(whole) > 60 and stream._positions[len(whole)][1] == 2  # in the third epoch
    for kill in range(len(whole)):
        resumed = make(corpus, epochs=3, **options)
        resumed.restore(through_file(stream.state_at(kill), tmp_path / "state.npz"))
        rest = take(resumed, 4)
        expected = whole[kill : kill + 4]
        assert len(rest) == len(expected)
        assert all(same(a, b) for a, b in zip(rest, expected, strict=True)), kill
        if kill % 20 == 0:  # a second interruption, of the resumed run
            again = make(corpus, epochs=3, **options)
            again.restore(resumed.state_at(kill + 3))
            assert same(take(again, 1)[0], whole[kill + 3])
    # And one resumed run to its end, over the ends of epochs.
    resumed = make(corpus, epochs=3, **options)
    resumed.restore(stream.state_at(5))
    assert all(same(a, b) for a, b in zip(take(resumed), whole[5:], strict=True))


def test_resume_at_the_very_end_gives_nothing(corpus):
    stream = make(corpus, epochs=1)
    whole = take(stream)
    resumed = make(corpus, epochs=1)
    resumed.restore(stream.state_at(len(whole)))
    assert take(resumed) == []


def test_resume_through_tf_data_with_prefetch(corpus):
    stream = make(corpus)
    expected = take(make(corpus), 20)
    consumed = list(stream.dataset(prefetch=5).take(7).as_numpy_iterator())
    assert same(consumed[6], expected[6])
    resumed = make(corpus)
    resumed.restore(stream.state_at(7))
    for ours, theirs in zip(
        resumed.dataset().take(13).as_numpy_iterator(), expected[7:], strict=True
    ):
        assert same(ours, theirs)


def test_resuming_does_not_tokenise_what_was_consumed(corpus):
    tokenizer = StandInTokenizer()
    stream = make(corpus, tokenizer, epochs=1, block_bytes=1 << 20)  # one block an epoch
    whole = take(stream)
    assert tokenizer.calls == 2  # the documents, and the random segments
    again = StandInTokenizer()
    resumed = make(corpus, again, epochs=1, block_bytes=1 << 20)
    resumed.restore(stream.state_at(3))
    rest = take(resumed)
    assert again.calls == again.texts == 0
    assert len(rest) == len(whole) - 3 and same(rest[0], whole[3])
    # With several blocks only those after the one in use are made.
    counting = StandInTokenizer()
    stream = make(corpus, epochs=1)
    whole = take(stream)
    resumed = make(corpus, counting, epochs=1)
    resumed.restore(stream.state_at(len(whole) - 2))
    take(resumed)
    all_texts = StandInTokenizer()
    take(make(corpus, all_texts, epochs=1))
    assert counting.texts < 0.25 * all_texts.texts


def test_fingerprint_tells_other_data(corpus, tmp_path):
    """`Checkpoints` compares it before it restores a state."""

    def differing(other):
        one, two = make(corpus).fingerprint(), other.fingerprint()
        return {name for name in one.keys() | two.keys() if one.get(name) != two.get(name)}

    assert differing(make(corpus)) == set()
    assert differing(make(corpus, seed=1)) == {"seed", "masking_seed"}
    assert differing(make(corpus, StandInTokenizer(600))) == {"tokenizer_sha256"}
    assert differing(make(corpus, sequence_length=33)) == {"sequence_length"}
    other = Corpus(str(write_corpus(tmp_path / "a.txt", DOCUMENTS, seed=9)), split_sentences=False)
    assert "corpus_file_crc32" in differing(make(other))


def test_history_is_bounded(corpus):
    stream = make(corpus, history=10)
    take(stream, 30)
    with pytest.raises(ValueError, match="only for 21 to 30.*history=10"):
        stream.state_at(20)
    with pytest.raises(ValueError, match="batch 31"):
        stream.state_at(31)


# ---- bounds and errors


def test_memory_is_bounded_by_the_blocks(tmp_path):
    corpus = Corpus(
        str(write_corpus(tmp_path / "big.txt", 500, sentences=(60, 90), words=(10, 20))),
        split_sentences=False,
    )
    assert corpus.num_bytes > 2_500_000
    stream = make(corpus, block_bytes=32768, history=8, sequence_length=128, workers=1)
    batches = stream.batches()
    next(batches)
    gc.collect()
    tracemalloc.start()
    for _ in itertools.islice(batches, 150):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    batches.close()
    assert peak < 1_500_000, peak  # some 50 times a block's text and less than the corpus


def test_threads_end_with_the_iterator(corpus):
    before = threading.active_count()
    batches = make(corpus, workers=3).batches()
    next(batches)
    batches.close()
    deadline = time.time() + 10
    while threading.active_count() > before and time.time() < deadline:
        time.sleep(0.02)
    assert threading.active_count() <= before


def test_an_error_in_a_thread_reaches_the_consumer(corpus):
    class Failing(StandInTokenizer):
        def __call__(self, texts):
            if self.calls >= 4:
                raise RuntimeError("the dictionary is on fire")
            return super().__call__(texts)

    with pytest.raises(RuntimeError, match="the dictionary is on fire"):
        take(make(corpus, Failing(), workers=1))
    with pytest.raises(tf.errors.OpError, match="the dictionary is on fire"):
        for _ in make(corpus, Failing(), workers=1).dataset():
            pass


def test_bad_arguments(corpus, tmp_path):
    one = tmp_path / "one.txt"
    one.write_text("w1 w2\nw3 w4\nw5\n")
    with pytest.raises(ValueError, match="one document.*blank lines.*next_sentence=False"):
        make(Corpus(str(one)))
    assert take(make(Corpus(str(one)), next_sentence=False, batch_size=1, epochs=1))
    with pytest.raises(ValueError, match="1005 entries.*table only 1000"):
        make(corpus, vocabulary_size=1000)
    make(corpus, vocabulary_size=1005)
    with pytest.raises(ValueError, match="sequence_length=4"):
        make(corpus, sequence_length=4)
    with pytest.raises(ValueError, match="batch_size=0"):
        make(corpus, batch_size=0)
    with pytest.raises(ValueError, match="masked_lm_probability=1.5"):
        make(corpus, masked_lm_probability=1.5)
    with pytest.raises(ValueError, match="short_sequence_probability=-1"):
        make(corpus, short_sequence_probability=-1)
    with pytest.raises(ValueError, match="dupe_factor=0"):
        make(corpus, static_masking=True, dupe_factor=0)
    with pytest.raises(ValueError, match=r"fewer than one batch.*batch_size=5000"):
        take(make(corpus, batch_size=5000, epochs=1))


def test_corpus_without_a_token_is_an_error_not_an_endless_loop(corpus):
    class Silent(StandInTokenizer):
        def ids(self, text):
            return []

    with pytest.raises(ValueError, match="No document of the corpus gives a single sequence"):
        take(make(corpus, Silent()), 1)


def test_real_tokenizer_and_corpus(kctx_data):
    from kctx.tokenizers import WordPieceTokenizer

    tokenizer = WordPieceTokenizer(
        str(kctx_data / "tokenizers/bert-base-uncased/vocab.txt"), lowercase=True
    )
    for name, splits in (("brown/brown_part.txt", False), ("enwiki/articles.txt", True)):
        corpus = Corpus(str(kctx_data / name))
        assert corpus.splits_lines == splits
        options = {"seed": 3, "block_bytes": 1 << 17, "vocabulary_size": 30522}
        stream = bert_pretraining_stream(corpus, tokenizer, **options)
        batches = take(stream, 4)
        sentences = [s for d in range(corpus.num_documents) for s in corpus.sentences(d)]
        known = set(tokenizer(sentences).values.numpy().tolist())
        for batch in batches:
            for a, b, _ in segments(batch, 101, 102):
                assert set(a + b) <= known
        resumed = bert_pretraining_stream(corpus, tokenizer, **options)
        resumed.restore(stream.state_at(2))
        assert same(take(resumed, 1)[0], batches[2])
