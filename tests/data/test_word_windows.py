"""Text as one stream of ids, and windows over it."""

import numpy as np
import pytest

from kctx.data import WordWindows, word_stream

pytestmark = pytest.mark.once


def test_stream_by_hand(tmp_path):
    lines = ["b a a", "", "c a b", b"\xff b <unk> \xff"]
    stream = word_stream(lines=lines, min_count=2)
    assert stream.words == ["<unk>", "b", "a", "\udcff"]  # equally frequent: the first one first
    assert stream.ids.tolist() == [1, 2, 2, 0, 2, 1, 3, 1, 0, 3]
    (tmp_path / "a.txt").write_bytes(b"b a a\n\nc a b\n")
    (tmp_path / "b.txt").write_bytes(b"\xff b <unk> \xff")
    again = word_stream([tmp_path / "a.txt", tmp_path / "b.txt"], min_count=2)
    assert again.words == stream.words and again.ids.tolist() == stream.ids.tolist()
    with pytest.raises(ValueError, match="occurs min_count=9 times"):
        word_stream(lines=lines, min_count=9)


def test_unknown_word_of_the_text_is_the_rare_one():
    stream = word_stream(lines=["<unk> <unk> a <unk> b a c"], min_count=2)
    assert stream.words == ["<unk>", "a"]
    assert stream.ids.tolist() == [0, 0, 1, 0, 0, 1, 0]


def test_windows_are_in_reading_order():
    windows = WordWindows(np.arange(10), 3, start=5, stop=8)
    contexts, words = windows.at(windows.targets)
    assert contexts.tolist() == [[2, 3, 4], [3, 4, 5], [4, 5, 6]]
    assert words.tolist() == [5, 6, 7]
    assert WordWindows(np.arange(10), 3).targets.tolist() == list(range(3, 10))


def batches(windows, count):
    return [
        (x["context_ids"].numpy().tolist(), y.numpy().tolist())
        for x, y in windows.dataset().take(count)
    ]


def test_each_epoch_holds_each_word_once_in_an_order_of_its_own():
    windows = WordWindows(np.arange(40), 2, batch_size=7, seed=1)
    assert windows.steps_per_epoch == 5  # 38 words: 3 are left over
    seen = batches(windows, 10)
    epochs = [[w for _, words in seen[i : i + 5] for w in words] for i in (0, 5)]
    assert all(len(set(epoch)) == 35 for epoch in epochs) and epochs[0] != epochs[1]
    assert seen == batches(windows, 10) != batches(WordWindows(np.arange(40), 2, batch_size=7), 10)
    assert all(x == [w - 2, w - 1] for xs, ws in seen for x, w in zip(xs, ws, strict=True))


def test_resumed_at_any_batch():
    windows = WordWindows(np.arange(40), 2, batch_size=7)
    expected = batches(windows, 12)
    for step in (0, 3, 5, 11):
        resumed = WordWindows(np.arange(40), 2, batch_size=7)
        resumed.restore(windows.state_at(step))
        assert batches(resumed, 12 - step) == expected[step:]
        assert resumed.fingerprint() == windows.fingerprint()
    assert WordWindows(np.arange(1, 41), 2, batch_size=7).fingerprint() != windows.fingerprint()


def test_small_texts_and_errors():
    assert WordWindows(np.arange(5), 2, batch_size=100).batch_size == 3
    with pytest.raises(ValueError, match="must hold a word with 2 words before it.*of 2 words"):
        WordWindows(np.arange(2), 2)
    with pytest.raises(ValueError, match="`batch_size` must be an integer of at least 1"):
        WordWindows(np.arange(9), 2, batch_size=0)
