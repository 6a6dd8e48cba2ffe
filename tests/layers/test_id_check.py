"""What is checked where: on an accelerator, which is played here, only what costs nothing."""

import keras
import numpy as np
import pytest
from keras import ops

from kctx.layers import PositionEmbedding, TokenEmbedding, check_ids, check_length, id_check
from kctx.models import BERT, RaggedEncoder


@pytest.fixture
def accelerator(monkeypatch):
    """Tensors of the backend lie on an accelerator; NumPy's arrays do not."""
    monkeypatch.setattr(id_check, "on_cpu", lambda x: isinstance(x, np.ndarray))


@pytest.mark.once
def test_what_is_at_hand_is_checked(accelerator):
    with pytest.raises(ValueError, match=r"`token_ids` must lie in \[0, 4\).*Received: 4"):
        check_ids("token_ids", np.array([1, 4]), 4, "token")
    with pytest.raises(ValueError, match=r"length must be at most 5.*Received: 6"):
        check_length(6, 5)
    assert check_length(5, 5) == 5


def test_values_on_an_accelerator_are_checked_if_asked(accelerator, monkeypatch):
    ids = ops.convert_to_tensor(np.array([[4]], "int32"))
    assert check_ids("token_ids", ids, 4, "token") is ids
    monkeypatch.setenv("KCTX_CHECK_IDS", "1")
    with pytest.raises(ValueError, match="`token_ids`.*Received: 4"):
        check_ids("token_ids", ids, 4, "token")


@pytest.mark.parametrize("setting", ["auto", "0"])
def test_too_long_a_sequence_is_always_an_error(accelerator, monkeypatch, setting):
    """A lookup of rows that are not there gives zeros or another row, without a word."""
    monkeypatch.setenv("KCTX_CHECK_IDS", setting)
    layer = PositionEmbedding(5)
    with pytest.raises(ValueError, match=r"length must be at most 5.*Received: 6"):
        layer(np.zeros((2, 6, 3), "float32"))
    x = keras.Input((None, 3))
    model = keras.Model(x, x + layer(x))
    model.compile(jit_compile=False)
    model.predict(np.zeros((2, 5, 3), "float32"), verbose=0)
    with pytest.raises(Exception, match=r"(?s)length must be at most 5.*6"):
        model.predict(np.zeros((2, 6, 3), "float32"), verbose=0)


@pytest.mark.skipif(keras.config.backend() != "tensorflow", reason="is about tf.function")
def test_graphs_for_an_accelerator_check_the_length_alone(accelerator):
    import tensorflow as tf

    def assertions(layer, spec):
        layer.build((None, None, 3))
        graph = tf.function(layer, input_signature=[spec]).get_concrete_function().graph
        return sum(op.type == "Assert" for op in graph.get_operations())

    assert assertions(PositionEmbedding(5), tf.TensorSpec((None, None, 3))) == 1
    assert assertions(TokenEmbedding(4, 3), tf.TensorSpec((None, None), tf.int32)) == 0


def test_ragged_encoder_checks_ids(accelerator):
    ragged = RaggedEncoder(BERT(50, 1, 8, 2, 16, max_sequence_length=16))
    with pytest.raises(ValueError, match=r"`token_ids` must lie in \[0, 50\).*Received: 50"):
        ragged([[1, 2], [3, 50]])
