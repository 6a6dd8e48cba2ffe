"""Freed memory stays with the process."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.once

PROGRAM = """
import numpy as np
from kctx.training.memory import keep_freed_memory

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4 // 1024

if {keep}:
    assert keep_freed_memory()
before = resident()
np.ones(32 * 2**20)  # 256 MiB, freed at once
print(resident() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the GNU C library's")
@pytest.mark.parametrize("keep", [True, False])
def test_freed_memory_is_kept(keep):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(keep=keep)], capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert (int(result.stdout) > 200) == keep
