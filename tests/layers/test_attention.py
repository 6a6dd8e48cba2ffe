"""Attention against numbers worked out by hand and against a loop in numpy."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import MultiHeadAttention, dot_product_attention
from tests.gradients import gradient

# One row, two tokens, one head of width 4, so that scores are divided by √4 = 2.
#   scores of token 1: (2·ln 3)/2 = ln 3 and 0, softmax (3, 1)/4
#   scores of token 2: 0 and 0, softmax (1, 1)/2
QUERY = np.array([[2, 0, 0, 0], [0, 0, 0, 0]], "float32").reshape(1, 2, 1, 4)
KEY = np.array([[np.log(3), 0, 0, 0], [0, 0, 0, 0]], "float32").reshape(1, 2, 1, 4)
VALUE = np.array([[8, 0, 0, 4], [0, 4, 0, 0]], "float32").reshape(1, 2, 1, 4)


def attend(query, key, value, **options):
    made = dot_product_attention(*map(ops.convert_to_tensor, (query, key, value)), **options)
    return ops.convert_to_numpy(made)


def numpy_attention(query, key, value, mask):
    """One (K,) query at a time: query (B, T, H, K), key and value (B, S, H, K), mask (B, T, S)."""
    made = np.zeros(query.shape)
    for b, t, h in np.ndindex(query.shape[:3]):
        seen = np.flatnonzero(mask[b, t])
        if len(seen):
            scores = key[b, seen, h] @ query[b, t, h] / np.sqrt(query.shape[-1])
            weights = np.exp(scores - scores.max())
            made[b, t, h] = weights @ value[b, seen, h] / weights.sum()
    return made


def normal(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype("float32")


def test_by_hand():
    expected = [[0.75 * 8, 0.25 * 4, 0, 0.75 * 4], [4, 2, 0, 2]]
    np.testing.assert_allclose(attend(QUERY, KEY, VALUE)[0, :, 0], expected, rtol=1e-6)


def test_masked_key_by_hand():
    """Without token 2, all weight is on token 1 for both."""
    mask = np.array([[[[True, False]]]])
    expected = [[8, 0, 0, 4], [8, 0, 0, 4]]
    np.testing.assert_allclose(attend(QUERY, KEY, VALUE, mask=mask)[0, :, 0], expected, rtol=1e-6)


def test_dropout_is_applied_to_the_probabilities():
    made = attend(QUERY, KEY, VALUE, dropout=lambda probabilities: probabilities * 2)
    np.testing.assert_allclose(made, 2 * attend(QUERY, KEY, VALUE), rtol=1e-6)


def test_heads_rows_and_masks_like_a_loop():
    query, key, value = normal(2, 3, 2, 4), normal(2, 5, 2, 4, seed=1), normal(2, 5, 2, 4, seed=2)
    mask = np.random.default_rng(0).random((2, 3, 5)) < 0.6
    mask[0, 1] = False
    made = attend(query, key, value, mask=mask[:, None])
    np.testing.assert_allclose(made, numpy_attention(query, key, value, mask), atol=1e-6)


def test_a_query_that_sees_nothing_gets_zeros_and_no_gradient():
    mask = np.array([[[[True, True], [False, False]]]])
    made = attend(QUERY, KEY, VALUE, mask=mask)
    assert (made[0, 1] == 0).all() and made[0, 0].any()

    def total(query):
        return ops.sum(ops.square(dot_product_attention(query, KEY, VALUE + 1, mask=mask)))

    made = gradient(total, QUERY + 1)
    assert np.isfinite(made).all()
    assert (made[0, 1] == 0).all() and made[0, 0].any()


def test_all_masked_gives_no_gradient_to_keys_and_values():
    mask = np.zeros((1, 1, 1, 2), bool)
    for name, array in {"key": KEY, "value": VALUE}.items():

        def total(x, name=name):
            tensors = {"query": QUERY, "key": KEY, "value": VALUE, name: x}
            tensors = {key: ops.convert_to_tensor(value) for key, value in tensors.items()}
            return ops.sum(ops.square(dot_product_attention(**tensors, mask=mask) + 1))

        assert (gradient(total, array) == 0).all()


@pytest.mark.parametrize("masked", [False, True])
def test_float16_with_great_scores(masked):
    """Scores near the greatest half-precision number, 65504, of both signs."""
    query = np.full((1, 2, 1, 4), 200, "float16")
    key = np.array([[150] * 4, [-150] * 4], "float16").reshape(1, 2, 1, 4)  # scores ±60000
    value = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], "float16").reshape(1, 2, 1, 4)
    mask = np.array([[[[not masked, True]]]])
    made = attend(query, key, value, mask=mask)
    assert made.dtype == "float16"
    np.testing.assert_array_equal(made[0, 0, 0], value[0, 1 if masked else 0, 0])


def layer_and_input(**options):
    layer = MultiHeadAttention(2, **options)
    layer.build((None, None, 8))
    rng = np.random.default_rng(0)
    layer.set_weights([rng.normal(size=w.shape, scale=0.5) for w in layer.get_weights()])
    return layer, normal(2, 4, 8)


def expected_output(layer, x, context, mask):
    def project(dense, inputs):
        kernel, bias = dense.get_weights()
        return inputs @ kernel + bias

    def heads(dense, inputs):
        return project(dense, inputs).reshape(*inputs.shape[:2], 2, 4)

    made = numpy_attention(
        heads(layer.query, x), heads(layer.key, context), heads(layer.value, context), mask
    )
    return project(layer.output_dense, made.reshape(*x.shape))


def test_layer_over_itself():
    layer, x = layer_and_input()
    made = ops.convert_to_numpy(layer(x))
    np.testing.assert_allclose(
        made, expected_output(layer, x, x, np.ones((2, 4, 4), bool)), atol=1e-5
    )


def test_layer_over_a_context_of_another_length():
    layer, x = layer_and_input()
    context = normal(2, 3, 8)
    mask = np.array([[True, True, False], [True, False, False]])[:, None]
    made = ops.convert_to_numpy(layer(x, context=context, attention_mask=mask))
    mask = np.repeat(mask, 4, axis=1)
    np.testing.assert_allclose(made, expected_output(layer, x, context, mask), atol=1e-5)


def test_mask_of_one_row_stands_for_all_queries():
    layer, x = layer_and_input()
    mask = np.array([[True, True, False, False], [True, True, True, True]])[:, None]
    one, all_rows = (
        ops.convert_to_numpy(layer(x, attention_mask=m)) for m in (mask, np.repeat(mask, 4, axis=1))
    )
    np.testing.assert_array_equal(one, all_rows)
    each = np.tril(np.ones((2, 4, 4), bool))
    made = ops.convert_to_numpy(layer(x, attention_mask=each))
    np.testing.assert_allclose(made, expected_output(layer, x, x, each), atol=1e-5)


def test_dropout_only_in_training():
    layer, x = layer_and_input(dropout=0.5)
    still, again, training = (
        ops.convert_to_numpy(layer(x, training=mode)) for mode in (False, False, True)
    )
    np.testing.assert_array_equal(still, again)
    assert np.abs(still - training).max() > 1e-3


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match=r"`num_heads` must divide.*hidden_dim=10, num_heads=3"):
        MultiHeadAttention(3).build((None, None, 10))


def test_kernels_do_not_share_their_first_values():
    """One initialiser object for all would give all kernels the same numbers."""
    layer = MultiHeadAttention(2, initializer=keras.initializers.RandomNormal(0.02, seed=None))
    layer.build((None, None, 8))
    query, key = layer.query.kernel, layer.key.kernel
    assert not np.array_equal(ops.convert_to_numpy(query), ops.convert_to_numpy(key))
