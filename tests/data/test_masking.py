import random

import numpy as np
import pytest

from kctx.data import mask_batch, mask_tokens, number_to_predict
from kctx.data.masking import draw_uniforms

pytestmark = pytest.mark.once

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the man jumped up put his basket".split()
SENTENCE = "[CLS] the man jumped up [SEP] put his basket [SEP]".split()
VOCABULARY_SIZE, MASK_ID = 1000, 4
SPECIAL = (0, 2, 3, 4)


def original(tokens, seed, probability=0.15, **options):
    return mask_tokens(
        tokens,
        random.Random(seed),
        vocabulary=options.pop("vocabulary", WORDS),
        special_tokens={"[CLS]", "[SEP]"},
        mask_token="[MASK]",
        max_predictions=options.pop("max_predictions", 20),
        probability=probability,
        **options,
    )


def sequences(rows, length, seed=0, piece_share=0.0):
    """token_ids (rows, length) `[CLS] .. [SEP] .. [SEP]`, ids 500.. are continuation pieces."""
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, 500, (rows, length))
    ids = np.where(rng.random(ids.shape) < piece_share, ids + 500 - 5, ids)
    ids[:, 0], ids[:, length // 2], ids[:, -1] = 2, 3, 3
    return ids.astype(np.int32)


def batch(token_ids, lengths=None, seed=0, max_predictions=20, whole_word=False, **options):
    rows, T = token_ids.shape
    lengths = np.full(rows, T) if lengths is None else lengths
    eligible = ~np.isin(token_ids, SPECIAL) & (np.arange(T) < lengths[:, None])
    return mask_batch(
        token_ids,
        eligible,
        lengths,
        draw_uniforms(seed, rows, T, max_predictions),
        mask_id=MASK_ID,
        replacement_ids=options.pop("replacement_ids", np.arange(VOCABULARY_SIZE)),
        max_predictions=max_predictions,
        continuation=token_ids >= 500 if whole_word else None,
        **options,
    )


def test_golden_of_the_original():
    masked, positions, labels = original(SENTENCE, 12345)
    assert positions == [6, 8] and labels == ["put", "basket"]
    assert [masked[6], masked[8]] == ["[MASK]", "[MASK]"]
    masked, positions, _ = original(SENTENCE, 12345, 0.5)
    assert positions == [1, 2, 3, 6, 8]
    assert [masked[p] for p in positions] == ["[MASK]", "[MASK]", "jumped", "[MASK]", "[MASK]"]


@pytest.mark.parametrize(
    ("length", "expected"),
    [(3, 1), (10, 2), (23, 3), (24, 4), (30, 4), (50, 8), (128, 19), (512, 77)],
)
def test_number_to_predict(length, expected):
    assert number_to_predict(length, 100, 0.15) == expected
    counts = batch(sequences(4, length), max_predictions=100)[3].sum(axis=1)
    assert (counts == min(expected, max(length - 3, 0))).all()


@pytest.mark.parametrize(
    ("length", "most", "expected"), [(512, 80, 77), (512, 20, 20), (20, 20, 3)]
)
def test_both_predict_the_known_number(length, most, expected):
    ids = sequences(8, length)
    assert (batch(ids, max_predictions=most)[3].sum(axis=1) == expected).all()
    for row in ids.tolist():
        _, positions, _ = mask_tokens(
            row,
            random.Random(1),
            vocabulary=range(VOCABULARY_SIZE),
            special_tokens=set(SPECIAL),
            mask_token=MASK_ID,
            max_predictions=most,
        )
        assert len(positions) == expected


def test_hand_computed_batch():
    token_ids = np.array([[2, 11, 12, 13, 14, 3, 0, 0]], np.int32)  # 6 tokens
    eligible = np.array([[0, 1, 1, 1, 1, 0, 0, 0]], bool)
    order = [0.0, 0.9, 0.1, 0.5, 0.3, 0.0, 0.0, 0.0]  # positions 2, 4, 3, 1
    action = [0.79, 0.85, 0.95, 0.1]  # mask, keep, replace, (unused)
    pick = [0.0, 0.0, 0.999, 0.0]
    uniforms = np.array([order + action + pick])
    masked, positions, labels, weights = mask_batch(
        token_ids,
        eligible,
        np.array([6]),
        uniforms,
        mask_id=4,
        replacement_ids=np.arange(100, 110),
        max_predictions=4,
        probability=0.5,
    )
    assert positions.tolist() == [[2, 3, 4, 0]] and labels.tolist() == [[12, 13, 14, 0]]
    assert weights.tolist() == [[1, 1, 1, 0]]
    assert masked.tolist() == [[2, 11, 4, 13, 109, 3, 0, 0]]
    assert token_ids[0, 2] == 12  # the input is not changed


def test_hand_computed_whole_words():
    # Words: 1-2, 3, 4-5-6; 10 tokens at 0.3 give 3 predictions.
    token_ids = np.array([[2, 11, 501, 12, 13, 502, 503, 3, 14, 3]], np.int32)
    order = [0.0, 0.1, 0.0, 0.3, 0.2, 0.0, 0.0, 0.0, 0.9, 0.0]
    # Drawn in the order 1-2 (taken), 4-5-6 (overflows, passed over), 3 (taken).
    masked, positions, _, weights = mask_batch(
        token_ids,
        ~np.isin(token_ids, SPECIAL),
        np.array([10]),
        np.array([order + [0.0] * 8]),
        mask_id=4,
        replacement_ids=np.arange(10),
        max_predictions=4,
        probability=0.3,
        continuation=token_ids >= 500,
    )
    assert positions.tolist() == [[1, 2, 3, 0]] and weights.sum() == 3
    assert masked.tolist() == [[2, 4, 4, 4, 13, 502, 503, 3, 14, 3]]


def test_original_and_batch_agree_in_their_statistics():
    ids = sequences(1500, 128)
    masked, positions, labels, weights = batch(ids)
    assert (weights.sum(axis=1) == 19).all()
    rows = np.repeat(np.arange(1500), 19)
    columns = positions[weights > 0]
    after, before = masked[rows, columns], ids[rows, columns]
    assert (before == labels[weights > 0]).all()
    shares = [[np.mean(after == MASK_ID), np.mean(after == before)]]
    positions_of = [columns]
    vocabulary, rng, new, old, chosen = (
        list(range(VOCABULARY_SIZE)),
        random.Random(12345),
        [],
        [],
        [],
    )
    for row in ids.tolist():
        result, where, what = mask_tokens(
            row,
            rng,
            vocabulary=vocabulary,
            special_tokens=set(SPECIAL),
            mask_token=MASK_ID,
            max_predictions=20,
        )
        assert len(where) == 19
        new += [result[p] for p in where]
        old += what
        chosen += where
    new, old = np.array(new), np.array(old)
    shares.append([np.mean(new == MASK_ID), np.mean(new == old)])
    positions_of.append(np.array(chosen))
    # 28,500 choices: a standard error of 0.0024 and 0.0018.
    for masked_share, kept_share in shares:
        assert abs(masked_share - 0.8) < 0.009 and abs(kept_share - 0.1) < 0.007
    # Every position but the special ones is chosen equally often: 19 of 125.
    for where in positions_of:
        counts = np.bincount(where, minlength=128)
        assert counts[[0, 64, 127]].tolist() == [0, 0, 0]
        usual = np.delete(counts, [0, 64, 127])
        assert abs(usual - 1500 * 19 / 125).max() < 5 * np.sqrt(228)


def test_replacements_are_uniform_over_the_whole_vocabulary_or_the_ids_given():
    ids = sequences(4000, 64, seed=1)
    for replacement_ids in (np.arange(10), np.arange(5, 15)):
        masked, positions, labels, weights = batch(ids, replacement_ids=replacement_ids)
        after = np.take_along_axis(masked, positions, 1)
        replaced = after[(weights > 0) & (after < 15) & (after != MASK_ID) & (labels >= 15)]
        counts = np.bincount(replaced, minlength=15)[replacement_ids]
        counts = counts[replacement_ids != MASK_ID]
        assert abs(counts - counts.mean()).max() < 5 * np.sqrt(counts.mean()) and counts.min() > 200
        assert set(replaced) <= set(replacement_ids)


def test_special_and_padding_are_never_chosen_and_positions_sorted():
    ids = sequences(500, 40)
    lengths = np.random.default_rng(0).integers(3, 41, 500)
    ids[np.arange(40) >= lengths[:, None]] = 0
    for whole_word in (False, True):
        masked, positions, labels, weights = batch(ids, lengths, whole_word=whole_word)
        real = weights > 0
        assert not np.isin(labels[real], SPECIAL).any()
        assert (positions < lengths[:, None])[real].all()
        assert (np.diff(np.where(real, positions, 10**6 + np.arange(20)), axis=1) > 0).all()
        assert not positions[~real].any() and not labels[~real].any()
        changed = masked != ids
        rows, columns = np.nonzero(changed)
        assert all(columns[i] in positions[rows[i]] for i in range(len(rows)))


def test_rows_without_a_candidate_and_more_predictions_than_tokens():
    ids = np.array([[2, 3, 3, 0], [2, 9, 3, 0]], np.int32)
    masked, positions, _, weights = batch(ids, np.array([3, 3]), max_predictions=6)
    assert weights.sum(axis=1).tolist() == [0, 1] and positions.shape == (2, 6)
    assert masked[0].tolist() == [2, 3, 3, 0]
    with pytest.raises(ValueError, match=r"uniforms.shape=\(2, 3\)"):
        mask_batch(
            ids, ids > 4, np.array([3, 3]), np.zeros((2, 3)), mask_id=4,
            replacement_ids=np.arange(9), max_predictions=2,
        )  # fmt: skip


def test_whole_words_are_never_split_and_agree_with_the_original():
    ids = sequences(1500, 48, seed=2, piece_share=0.4)
    _, positions, _, weights = batch(ids, whole_word=True)
    counts = {"batch": weights.sum(axis=1), "original": []}
    rng = random.Random(0)
    for row in range(1500):
        words, chosen = [], set(positions[row][weights[row] > 0].tolist())
        for place, token in enumerate(ids[row].tolist()):
            if token in SPECIAL:
                continue
            if token >= 500 and words:
                words[-1].append(place)
            else:
                words.append([place])
        assert all(len(chosen & set(word)) in (0, len(word)) for word in words)
        assert len(chosen) <= number_to_predict(48, 20, 0.15)
        _, where, _ = mask_tokens(
            ids[row].tolist(),
            rng,
            vocabulary=range(VOCABULARY_SIZE),
            special_tokens=set(SPECIAL),
            mask_token=MASK_ID,
            max_predictions=20,
            is_continuation=lambda token: token >= 500,
        )
        assert all(len(set(where) & set(word)) in (0, len(word)) for word in words)
        counts["original"].append(len(where))
    assert abs(np.mean(counts["batch"]) - np.mean(counts["original"])) < 0.05
    assert np.mean(counts["batch"]) > 6.5


def test_whole_words_of_very_short_sequences_may_give_none():
    """[CLS] a ##b c [SEP], one prediction: 1 if c is drawn before or after the word, never 2."""
    ids = np.array([[2, 11, 501, 502, 3]] * 50 + [[2, 11, 501, 12, 3]] * 50, np.int32)
    counts = batch(ids, whole_word=True)[3].sum(axis=1)
    assert (counts[:50] == 0).all() and (counts[50:] == 1).all()


def test_uniforms_follow_the_seed():
    assert (draw_uniforms([1, 2], 2, 8, 3) == draw_uniforms([1, 2], 2, 8, 3)).all()
    assert (draw_uniforms([1, 2], 2, 8, 3) != draw_uniforms([1, 3], 2, 8, 3)).any()
