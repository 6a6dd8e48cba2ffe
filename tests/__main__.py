"""Runs the suite once under each Keras backend that is installed, and says which ran.

python -m tests [pytest arguments]

As many processes share the tests as there are cores, up to four; `-n 0` keeps them in one, `-n 8`
takes eight.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROCESSES = 4  # at most, unless asked for: each comes to take two GB or three
MODULES = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}


def cores():
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run(backend, folder):
    """Runs the suite under one backend; returns what became of it in words."""
    if importlib.util.find_spec(MODULES[backend]) is None:
        return "not installed, not run"
    print(f"\n=== {backend} ===", flush=True)
    start = time.time()
    # Tests of a file share what is made once for them, so they begin in the same process.
    options = ["-n", str(min(cores(), PROCESSES)), "--dist", "worksteal"]
    environment = {
        # What JAX compiles in one process the others read.
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONUTF8": "0",
    }
    command = [sys.executable, "-m", "pytest", *options, *sys.argv[1:]]
    code = subprocess.call(command, env=environment)
    verdict = "passed" if code == 0 else f"FAILED (exit status {code})"
    return f"{verdict} in {time.time() - start:.0f} s"


def main():
    with tempfile.TemporaryDirectory(prefix="kctx-tests-") as folder:
        results = {backend: run(backend, Path(folder)) for backend in MODULES}
    print("\nBackends:")
    for backend, result in results.items():
        print(f"  {backend:<11} {result}")
    return int(any("FAILED" in result for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
