"""What a run of fine-tuning chooses by itself."""

import math

import pytest

from kctx.finetuning.run import length_step

pytestmark = pytest.mark.once


@pytest.mark.parametrize("longest", [1, 16, 100, 128, 129, 384, 512, 513])
def test_compiled_steps_have_few_lengths(longest):
    assert math.ceil(longest / length_step(longest, compiled=True)) <= 8
    assert length_step(longest, compiled=True) >= 16 == length_step(longest, compiled=False)


def test_lengths_of_answers():
    """384 tokens, the default of answers in texts, would be 24 shapes in steps of 16."""
    assert length_step(384, compiled=True) == 48
