"""Runs the suite once under each Keras backend that is installed, and says which ran.

python -m tests [pytest arguments]
"""

import importlib.util
import os
import subprocess
import sys
import time

MODULES = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}


def main():
    results = {}
    for backend, module in MODULES.items():
        if importlib.util.find_spec(module) is None:
            results[backend] = "not installed, not run"
            continue
        print(f"\n=== {backend} ===", flush=True)
        start = time.time()
        environment = {**os.environ, "KERAS_BACKEND": backend, "PYTHONUTF8": "0"}
        code = subprocess.call([sys.executable, "-m", "pytest", *sys.argv[1:]], env=environment)
        verdict = "passed" if code == 0 else f"FAILED (exit status {code})"
        results[backend] = f"{verdict} in {time.time() - start:.0f} s"
    print("\nBackends:")
    for backend, result in results.items():
        print(f"  {backend:<11} {result}")
    return int(any("FAILED" in result for result in results.values()))


if __name__ == "__main__":
    sys.exit(main())
