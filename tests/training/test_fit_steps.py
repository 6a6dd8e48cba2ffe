"""What `fit_steps` refuses."""

import itertools

import pytest

from kctx.training import Checkpoints, fit_steps
from tests.training import small_run


def test_a_dataset_that_ends_early_is_an_error():
    model = small_run.make_model()
    dataset = (batch for batch in itertools.islice(small_run.Stream().batches(), 3))
    with pytest.raises(ValueError, match="`dataset` must be endless.*ended before total_steps=8"):
        fit_steps(model, dataset, total_steps=8, every=4, verbose=0)


def test_checkpoints_fall_on_the_ends_of_intervals(tmp_path):
    checkpoints = Checkpoints(tmp_path, every=4)
    with pytest.raises(ValueError, match="every=6, checkpoints.every=4"):
        fit_steps(None, None, total_steps=8, every=6, checkpoints=checkpoints)
