"""The span head: where answers may be, its loss and its metric."""

import numpy as np
import pytest
from keras import ops

from kctx.heads import Span, attach, encoder_of, head_of
from kctx.models import BERT
from tests.catalogue import batch


@pytest.fixture(scope="module")
def model():
    return attach(BERT(30, 2, 8, 2, 16, max_sequence_length=16), Span())


def numpy_of(x):
    return ops.convert_to_numpy(x)


def test_only_context_and_the_first_position_are_possible(model):
    inputs = batch(model.input)
    found = numpy_of(model(inputs))
    possible = inputs["answer_mask"].copy()
    possible[:, 0] = True
    assert found.shape == (3, 6, 2) and found.dtype == np.float32
    assert (found[~possible] == -1e9).all() and (np.abs(found[possible]) < 10).all()
    encoder = encoder_of(model)
    x = numpy_of(encoder({name: inputs[name] for name in encoder.input})["sequence_output"])
    kernel, bias = head_of(model).dense.get_weights()
    np.testing.assert_allclose(found[possible], (x @ kernel + bias)[possible], atol=1e-5)


def test_loss_is_the_mean_of_start_and_end():
    """Over the full length, by hand: log(4) for equal logits, 0 for one that stands out."""
    logits = np.zeros((2, 4, 2), "float32")
    logits[1, 2, :] = 60
    labels = np.array([[1, 2], [2, 2]], "int32")
    loss = Span().output_loss()
    np.testing.assert_allclose(float(loss(labels, logits)), np.log(4) / 2, rtol=1e-6)
    np.testing.assert_allclose(float(loss(labels[:1], logits[:1])), np.log(4), rtol=1e-6)
    padded = np.array([[1, 2], [-1, -1]], "int32")
    np.testing.assert_allclose(float(loss(padded, logits)), np.log(4), rtol=1e-6)
    weights = np.array([3.0, 1.0], "float32")
    np.testing.assert_allclose(float(loss(labels, logits, weights)), np.log(4) * 0.75, rtol=1e-6)


def test_metric_counts_spans_that_are_right_at_both_ends():
    logits = np.zeros((4, 5, 2), "float32")
    for row, (start, end) in enumerate([(1, 3), (2, 2), (0, 0), (4, 4)]):
        logits[row, start, 0] = logits[row, end, 1] = 1
    (metric,) = Span().output_metrics()
    metric.update_state(np.array([[1, 3], [2, 3], [0, 0], [-1, -1]], "int32"), logits)
    np.testing.assert_allclose(float(metric.result()), 2 / 3)
