"""The kernel of fastText's classifier against the products that need Keras alone."""

import keras
import numpy as np
import pytest

from kctx import kernels
from kctx.models import FastTextClassifier
from tests.models.fasttext_data import LABELLED_VOCABULARY, LINE_SUBWORDS, lines_stream
from tests.models.runs import in_stream, tables, with_values

pytestmark = pytest.mark.skipif(
    not kernels.usable(), reason="kernels are for torch on a CPU, with Numba installed"
)
every_objective = pytest.mark.parametrize("objective", kernels.LABEL_OBJECTIVES)


def model_of(objective, dim, by_kernel=True):
    sizes = len(LABELLED_VOCABULARY.words), len(LABELLED_VOCABULARY.labels)
    model = with_values(FastTextClassifier(*sizes, LINE_SUBWORDS.buckets, dim, objective))
    assert model.by_kernel
    model.by_kernel = by_kernel
    return model


@every_objective
@pytest.mark.parametrize("dim", [1, 6, 37])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"step_lines": 50, "steps": 5},  # some steps are not full
        {"step_lines": 64, "learning_rate": 5.0},  # damped
        {"step_lines": 1, "steps": 200},  # empty steps
    ],
)
def test_kernel_and_products_agree(objective, dim, options):
    made, losses = [], []
    for by_kernel in (True, False):
        model = model_of(objective, dim, by_kernel)
        losses.append(in_stream(model, lines_stream(objective, **options)))
        made.append(tables(model))
    np.testing.assert_allclose(*losses, rtol=2e-4)
    for one, two in zip(*made, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)


@every_objective
def test_number_of_cores_changes_nothing(objective):
    """Not a bit, in steps of all sizes."""
    from kctx.kernels.classifier import classifier_steps
    from kctx.kernels.host_memory import in_memory

    stream, made = lines_stream(objective, step_lines=17, steps=3), []
    for cores in (1, 2, 3, 8, 40):
        model = model_of(objective, 20)
        weights = [in_memory(x) for x in (model.input_table, model.output_table)]
        whole = objective == "softmax"
        sums = [classifier_steps(x, *weights, whole, cores) for (x,) in stream.line_batches()]
        made.append([*tables(model), np.array(sums)])
    for others in made[1:]:
        for one, other in zip(made[0], others, strict=True):
            np.testing.assert_array_equal(one, other)
    assert (made[0][1] != tables(model_of(objective, 20))[1]).any()


def test_many_steps_by_default():
    assert lines_stream("softmax", steps=None).steps == 64
    assert lines_stream("negative_sampling", steps=None).steps == 8


def test_batches_of_a_stream_are_not_copied():
    """A text or a tree in every batch would cost more than the step."""
    stream = lines_stream("softmax")
    (batch,) = next(model_of("softmax", 2).batches_of(stream))
    assert keras.ops.is_tensor(batch["rows"])
    assert np.shares_memory(batch["rows"].numpy(), stream.lines.rows)
