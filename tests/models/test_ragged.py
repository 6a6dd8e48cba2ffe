"""Packed rows give what padded batches give."""

import keras
import numpy as np
import pytest

from kctx.models import BERT, RaggedEncoder
from kctx.models.ragged import best_row_length, pack, packed_rows

LENGTHS = [3, 16, 1, 9, 7, 5, 12, 40, 2, 16]


@pytest.fixture(scope="module")
def encoder():
    return BERT(50, 2, 16, 2, 32, max_sequence_length=48)


def sequences(seed=0):
    rng = np.random.default_rng(seed)
    return (
        [rng.integers(1, 50, length) for length in LENGTHS],
        [rng.integers(0, 2, length) for length in LENGTHS],
    )


def test_pack_by_hand():
    assert pack([3, 8, 5, 1, 7], 8) == [[1], [4, 3], [2, 0]]
    assert pack([], 8) == []


def test_best_row_length_by_hand():
    assert best_row_length([5], 64) == 8
    assert best_row_length([16, 8], 64) == 24  # one row without a gap, not two of 16
    assert best_row_length([16] * 4, 64) == 16  # longer rows only cost attention


def test_packed_rows_by_hand():
    rows = packed_rows([[7, 8], [9], [6]], [[0, 1], [0], [1]], [[0, 1], [2]], row_length=4)
    np.testing.assert_array_equal(rows["token_ids"], [[7, 8, 9, 0], [6, 0, 0, 0]])
    np.testing.assert_array_equal(rows["segment_ids"], [[0, 1, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(rows["position_ids"], [[0, 1, 0, 0], [0] * 4])
    np.testing.assert_array_equal(rows["sequence_ids"], [[1, 1, 2, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(rows["starts"][:, :3], [[0, 2, 0], [0, 0, 0]])


@pytest.mark.parametrize(("row_length", "batch_rows"), [(None, 32), (16, 32), (60, 1)])
def test_equals_the_padded_batch(encoder, row_length, batch_rows):
    ids, segments = sequences()
    ragged = RaggedEncoder(encoder, row_length, batch_rows)(ids, segments)
    width = max(LENGTHS)
    mask = np.arange(width) < np.array(LENGTHS)[:, None]
    padded = {name: np.zeros(mask.shape, "int32") for name in ("token_ids", "segment_ids")}
    padded["token_ids"][mask], padded["segment_ids"][mask] = map(np.concatenate, (ids, segments))
    expected = encoder.predict_on_batch({**padded, "padding_mask": mask})
    sequence, pooled = (
        keras.ops.convert_to_numpy(expected[name]) for name in ("sequence_output", "pooled_output")
    )
    np.testing.assert_allclose(ragged["pooled_output"], pooled, atol=1e-5)
    for row, length in enumerate(LENGTHS):
        assert ragged["sequence_output"][row].shape == (length, 16)
        np.testing.assert_allclose(
            ragged["sequence_output"][row], sequence[row, :length], atol=1e-5
        )


def test_does_not_depend_on_the_company(encoder):
    ids, segments = sequences()
    ragged = RaggedEncoder(encoder, row_length=16)
    together = ragged(ids, segments)["pooled_output"]
    alone = [ragged([i], [s])["pooled_output"][0] for i, s in zip(ids, segments, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    other = sequences(seed=1)[0]
    changed = ragged(ids[:5] + other[5:], segments)["pooled_output"]
    np.testing.assert_allclose(changed[:5], together[:5], atol=1e-5)
    assert np.abs(changed[5:] - together[5:]).max() > 1e-3


def test_empty_list(encoder):
    result = RaggedEncoder(encoder)([])
    assert result["sequence_output"] == []
    assert result["pooled_output"].shape == (0, 16)


@pytest.mark.parametrize("bad", [[], list(range(49))])
def test_bad_lengths(encoder, bad):
    with pytest.raises(ValueError, match=rf"token_ids\[1\] of {len(bad)}"):
        RaggedEncoder(encoder)([[1, 2], bad])


@pytest.mark.parametrize("bad", [50, -1])
def test_bad_ids_lose_nothing(encoder, bad):
    ragged = RaggedEncoder(encoder)
    before = ragged([[1, 2, 3]])["pooled_output"]
    with pytest.raises(ValueError, match=rf"`token_ids` must lie in \[0, 50\).*{bad}"):
        ragged([[1, 2], [3, bad]])
    np.testing.assert_array_equal(ragged([[1, 2, 3]])["pooled_output"], before)


def test_encoder_without_the_layers():
    inputs = keras.Input((None,))
    with pytest.raises(ValueError, match="no token_embedding"):
        RaggedEncoder(keras.Model(inputs, inputs))
