"""Runs the suite once under each Keras backend that is installed, and says which ran.

python -m tests [pytest arguments]

As many processes share the tests as there are cores; `-n 0` keeps them in one, `-n 4` takes four.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time

MODULES = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}


def cores():
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def main():
    results = {}
    # Neighbours in a file share what is made once for them, so they start in the same process.
    options = ["-n", str(cores()), "--dist", "worksteal"]
    for backend, module in MODULES.items():
        if importlib.util.find_spec(module) is None:
            results[backend] = "not installed, not run"
            continue
        print(f"\n=== {backend} ===", flush=True)
        start = time.time()
        with tempfile.TemporaryDirectory(prefix="kctx-tests-") as cache:
            environment = {
                "JAX_COMPILATION_CACHE_DIR": cache,
                "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
                "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
                **os.environ,
                "KERAS_BACKEND": backend,
                "PYTHONUTF8": "0",
            }
            command = [sys.executable, "-m", "pytest", *options, *sys.argv[1:]]
            code = subprocess.call(command, env=environment)
        verdict = "passed" if code == 0 else f"FAILED (exit status {code})"
        results[backend] = f"{verdict} in {time.time() - start:.0f} s"
    print("\nBackends:")
    for backend, result in results.items():
        print(f"  {backend:<11} {result}")
    return int(any("FAILED" in result for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
