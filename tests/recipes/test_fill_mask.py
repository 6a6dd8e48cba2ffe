import numpy as np
import pytest

from kctx.objectives import MaskedLM
from kctx.presets import TextModel
from recipes.fill_mask import fill
from tests.export.films import VOCABULARY, make_encoder, make_preprocessor

pytestmark = pytest.mark.once


def test_guesses_are_tokens_though_the_model_has_more_rows():
    model = MaskedLM(make_encoder(more_rows=8))
    bias = np.zeros(len(VOCABULARY) + 8)
    bias[len(VOCABULARY) :], bias[7] = 90, 50  # the best rows are of no token
    model.output_bias.bias.assign(bias)
    text_model = TextModel(model, make_preprocessor())
    ((first, second),) = fill(text_model, "the [MASK]", top=2)
    assert first[0] == VOCABULARY[7] and first[1] == pytest.approx(1, abs=1e-4)
    assert second[0] in VOCABULARY
    (row,) = fill(text_model, "the [MASK]", top=len(VOCABULARY))
    assert sum(score for _, score in row) == pytest.approx(1)


@pytest.mark.parametrize("top", [0, len(VOCABULARY) + 1])
def test_more_guesses_than_tokens(top):
    text_model = TextModel(MaskedLM(make_encoder(more_rows=8)), make_preprocessor())
    with pytest.raises(SystemExit, match=f"--top must lie between 1 and .*Received: {top}"):
        fill(text_model, "the [MASK]", top)
