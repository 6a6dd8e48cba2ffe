"""Scaled dot-product attention with several heads.

Shape letters: B batch, T target (query) length, S source (key) length, D width, H heads,
K head width.
"""

import keras
from keras import ops

from kctx.layers.activations import truncated_normal
from kctx.layers.dense import Dense
from kctx.layers.dropout import Dropout
from kctx.layers.fast_attention import attention
from kctx.layers.part_call import call_part


def dot_product_attention(query, key, value, mask=None, dropout=None):
    """softmax(QKᵀ/√K)V for each head (Vaswani et al., 2017, equation 1).

    Scores are masked by selection and normalised in float32 whatever the dtype of the inputs, so
    no mask constant can overflow in float16. A query that may attend to nothing gets zeros, and
    zero gradient, instead of NaN or a mean over padding.

    Args:
        query: (B, T, H, K).
        key: (B, S, H, K).
        value: (B, S, H, K).
        mask: bool, broadcastable to (B, H, T, S), True = may attend. Default: attend to all.
        dropout: callable applied to the probabilities, or None.

    Returns:
        (B, T, H, K), dtype of `query`.
    """
    if dropout is None:
        found = attention(query, key, value, mask)
        if found is not None:
            return found
    dtype = query.dtype
    query = ops.transpose(query, (0, 2, 1, 3))  # (B, H, T, K)
    key = ops.transpose(key, (0, 2, 3, 1))  # (B, H, K, S)
    value = ops.transpose(value, (0, 2, 1, 3))  # (B, H, S, K)
    query = query * ops.cast(query.shape[-1] ** -0.5, dtype)
    scores = ops.cast(ops.matmul(query, key), "float32")  # (B, H, T, S)
    if mask is not None:
        scores = ops.where(mask, scores, -1e9)
    probabilities = ops.cast(ops.softmax(scores, axis=-1), dtype)  # (B, H, T, S)
    if dropout is not None:
        probabilities = dropout(probabilities)
    context = ops.matmul(probabilities, value)  # (B, H, T, K)
    if mask is not None:
        attends = ops.any(mask, axis=-1, keepdims=True)  # (B, H or 1, T or 1, 1)
        context = context * ops.cast(attends, dtype)
    return ops.transpose(context, (0, 2, 1, 3))  # (B, T, H, K)


@keras.saving.register_keras_serializable("kctx")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head attention (Vaswani et al., 2017, section 3.2.2), with biases on all projections.

    Args:
        num_heads: int, H. Must divide the width D of the input.
        dropout: float, rate on the attention probabilities. Default 0.
        initializer: initialiser of the kernels. Default: truncated normal of 0.02.

    Call arguments:
        x: (B, T, D), gives the queries.
        context: (B, S, D), gives keys and values. Default: `x`, which is self-attention.
        attention_mask: bool, (B, T or 1, S), True = may attend. Not called `mask`, which Keras
            fills by itself with implicit masks.

    Returns:
        (B, T, D)
    """

    def __init__(self, num_heads, dropout=0.0, initializer=None, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.dropout = dropout
        self.initializer = keras.initializers.get(initializer or truncated_normal())

    def build(self, input_shape):
        width = input_shape[-1]
        if width % self.num_heads:
            raise ValueError(
                "`num_heads` must divide `hidden_dim`. "
                f"Received: hidden_dim={width}, num_heads={self.num_heads}"
            )

        def projection(name):
            layer = Dense(
                width,
                kernel_initializer=keras.initializers.get(self.initializer).clone(),
                name=name,
                dtype=self.dtype_policy,
            )
            layer.build((None, width))
            return layer

        self.query = projection("query")
        self.key = projection("key")
        self.value = projection("value")
        self.output_dense = projection("output")
        self.probability_dropout = Dropout(
            self.dropout, name="probability_dropout", dtype=self.dtype_policy
        )

    def call(self, x, context=None, attention_mask=None, training=None):
        context = x if context is None else context

        def heads(projection, sequence):  # (B, L, D) -> (B, L, H, K)
            batch, length, width = ops.shape(sequence)
            projected = call_part(self, projection, sequence)
            return ops.reshape(projected, (batch, length, self.num_heads, width // self.num_heads))

        attended = dot_product_attention(
            heads(self.query, x),
            heads(self.key, context),
            heads(self.value, context),
            mask=None if attention_mask is None else attention_mask[:, None],
            dropout=self._drop if training and self.dropout else None,
        )
        return call_part(self, self.output_dense, ops.reshape(attended, ops.shape(x)))

    def _drop(self, probabilities):
        return call_part(self, self.probability_dropout, probabilities, training=True)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return tuple(input_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "dropout": self.dropout,
            "initializer": keras.initializers.serialize(self.initializer),
        }
