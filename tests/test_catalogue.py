"""Every check over every entry of the catalogue."""

import importlib.util
import inspect
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from kctx import heads, layers, models, objectives
from tests import checks
from tests.catalogue import ABSTRACT, ENTRIES, TESTED_APART, batch

CHECKS = [
    checks.check_config_round_trip,
    checks.check_alone_as_in_a_batch,
    checks.check_more_padding_changes_nothing,
    checks.check_padding_does_not_matter,
    checks.check_row_of_padding_is_finite,
    checks.check_empty_batch,
    checks.check_one_token,
    checks.check_gradient_reaches_every_weight,
    checks.check_seeded,
]
every_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.title)


def test_every_public_class_has_an_entry():
    public = {
        value
        for module in (layers, models, objectives, heads)
        for value in (getattr(module, name) for name in module.__all__)
        if inspect.isclass(value)
    }
    assert public - ABSTRACT - TESTED_APART - {entry.covers for entry in ENTRIES} == set()


@every_entry
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_entry(check, entry):
    check(entry)


@every_entry
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision(policy, entry):
    checks.check_mixed_precision(entry, policy)


CHILD = """
import sys
import keras
import numpy as np
import kctx
from tests.checks import outputs

for path in sys.argv[1:]:
    model = keras.models.load_model(path)
    stored = np.load(path + ".npz")
    made = outputs(model, {name: stored[name] for name in model.input})
    for index, array in enumerate(made):
        np.testing.assert_allclose(array, stored[f"output {index}"], atol=5e-6, err_msg=path)
    assert type(model).__name__ == str(stored["class"]), path
"""


def test_saved_models_load_in_another_process_under_another_backend(tmp_path):
    """Saved under this backend, read under the next one that is installed, with equal outputs."""
    order = ["tensorflow", "jax", "torch"]
    here = order.index(keras.config.backend())
    installed = [x for x in order[here + 1 :] + order[:here] if importlib.util.find_spec(x)]
    paths = []
    for index, entry in enumerate(ENTRIES):
        model = entry.build()
        paths.append(str(tmp_path / f"{index} {entry.title}.keras"))
        model.save(paths[-1])
        inputs = batch(model.input)
        stored = {f"output {i}": x for i, x in enumerate(checks.outputs(model, inputs))}
        np.savez(paths[-1] + ".npz", **inputs, **stored, **{"class": type(model).__name__})
    environment = {**os.environ, "KERAS_BACKEND": installed[0] if installed else order[here]}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, *paths],
        env=environment,
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
    )
    assert child.returncode == 0, child.stderr[-3000:]
