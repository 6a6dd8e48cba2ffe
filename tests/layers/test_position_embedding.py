"""Learned positions: the right rows, for any length up to the table's, none beyond."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import PositionEmbedding

TABLE = np.arange(15, dtype="float32").reshape(5, 3)


def layer():
    made = PositionEmbedding(5)
    made.build((None, None, 3))
    made.set_weights([TABLE])
    return made


@pytest.mark.parametrize("length", [0, 1, 3, 5])
def test_rows_of_the_table(length):
    made = layer()(np.zeros((2, length, 3), "float32"))
    np.testing.assert_array_equal(ops.convert_to_numpy(made), TABLE[:length])


def test_too_long():
    with pytest.raises(ValueError, match=r"length must be at most 5.*Received: 6"):
        layer()(np.zeros((2, 6, 3), "float32"))


def test_too_long_in_a_compiled_model():
    x = keras.Input((None, 3))
    model = keras.Model(x, x + layer()(x))
    model.predict(np.zeros((2, 5, 3), "float32"), verbose=0)
    with pytest.raises(Exception, match=r"(?s)length must be at most 5.*6"):
        model.predict(np.zeros((2, 6, 3), "float32"), verbose=0)


@pytest.mark.skipif(keras.config.backend() != "tensorflow", reason="is about tf.function")
def test_one_graph_for_all_lengths():
    import tensorflow as tf

    tested = layer()
    function = tf.function(tested, input_signature=[tf.TensorSpec((None, None, 3))])
    for length in (0, 1, 4, 5):
        np.testing.assert_array_equal(function(tf.zeros((2, length, 3))), TABLE[:length])
    assert function.experimental_get_tracing_count() == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)at most 5.*6"):
        function(tf.zeros((2, 6, 3)))


@pytest.mark.parametrize("rows", [0, -1])
def test_a_table_without_rows(rows):
    with pytest.raises(ValueError, match=f"`max_sequence_length` must be at least 1.*{rows}"):
        PositionEmbedding(rows)
