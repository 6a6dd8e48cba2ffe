"""The layout of parameters is the frozen one; see `tests/models/layout.py`."""

import json

import pytest

from tests.models.layout import FILE, layouts

ADVICE = "Weight files of before would not load. If that is meant: python -m tests.models.layout"


@pytest.fixture(scope="module")
def made():
    return layouts()


@pytest.mark.parametrize("name", ["BERT", "MaskedLM", "Joint", "Classifier"])
@pytest.mark.parametrize("kind", ["weights", "file"])
def test_layout(made, name, kind):
    frozen = json.loads(FILE.read_text(encoding="utf-8"))
    assert set(frozen) == set(made)
    assert made[name][kind] == frozen[name][kind], ADVICE
