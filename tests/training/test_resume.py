"""Kill a run with SIGKILL, resume it: every loss is that of the unbroken run, bit for bit."""

import csv
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import small_run

SCRIPT = Path(small_run.__file__)
ROOT = SCRIPT.parent.parent.parent


def child(*arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def losses(folder):
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        return [(row["step"], row["loss"], row["accuracy"]) for row in csv.DictReader(file)]


def state(model):
    from kctx.training.checkpoints import state_variables

    return {k: keras.ops.convert_to_numpy(v) for k, v in state_variables(model).items()}


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_killed_and_resumed_equals_unbroken(tmp_path, dtype):
    total, die_at = 23, random.SystemRandom().randrange(6, 23)
    whole, _ = small_run.run(tmp_path / "whole", total, dtype=dtype)
    if dtype == "float32":
        killed = child(tmp_path / "broken", total, "--die-at", die_at)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    else:  # the same without the cost of a process
        with pytest.raises(small_run.Died):
            small_run.run(
                tmp_path / "broken", total, die_at=die_at, dtype=dtype, die=small_run.fail
            )
    assert [step for step, *_ in losses(tmp_path / "broken")] == [
        str(i) for i in range(1, die_at + 1)
    ]
    resumed, stream = small_run.run(tmp_path / "broken", total, resume=True, dtype=dtype)
    assert losses(tmp_path / "broken") == losses(tmp_path / "whole"), f"killed at {die_at}"
    assert len(losses(tmp_path / "whole")) == total
    # What was consumed before the checkpoint is not made again.
    # (At a multiple of 5 the kill comes just before the save.)
    assert stream.made[0] == (die_at - 1) // 5 * 5
    expected = state(whole)
    for name, value in state(resumed).items():
        np.testing.assert_array_equal(value, expected[name], err_msg=name)
    if dtype == "mixed_float16":
        assert float(resumed.optimizer.dynamic_scale) == float(whole.optimizer.dynamic_scale)
        assert float(whole.optimizer.dynamic_scale) != 2.0**15
    files = (tmp_path / "broken" / "checkpoints").iterdir()
    assert sorted(path.name for path in files) == ["step-00000020", "step-00000023"]


def test_kill_in_the_middle_of_saving(tmp_path):
    """A half-written folder beside the whole ones is not taken, and goes with the next save."""
    small_run.run(tmp_path, 5)
    partial = tmp_path / "checkpoints" / ".partial-step-00000010"
    partial.mkdir()
    (partial / "state.npz").write_bytes(b"half")
    small_run.run(tmp_path, 10, resume=True)
    assert not partial.exists()
    small_run.run(tmp_path / "whole", 10)
    assert losses(tmp_path) == losses(tmp_path / "whole")
