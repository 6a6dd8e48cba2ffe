"""What all tests share: the backend, the data folder, and tests that run under one backend only."""

import gc
import os
from pathlib import Path

import pytest

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
# Tests compile much and compute little: XLA takes about 0.6 of the time when it optimizes less.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
if int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1)) > 1:
    # Processes that share the cores must not have each a thread for every core. Numba keeps its
    # threads: what the kernels do with several of them is tested.
    for name in ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "NPROC"):
        os.environ.setdefault(name, "1")

ROOT = Path(__file__).resolve().parent.parent


def pytest_collection_finish():
    """What the imports made stays: collecting garbage, which some code asks for, passes it by."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items):
    if os.environ["KERAS_BACKEND"] != "tensorflow":
        skip = pytest.mark.skip(reason="does not depend on the backend: runs under TensorFlow")
        for item in items:
            if "once" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def float32_policy():
    """Each test starts from the same seed and from float32, whatever the one before it set."""
    import keras

    keras.utils.set_random_seed(0)
    keras.config.set_dtype_policy("float32")
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture(scope="session")
def kctx_data():
    """The folder of real data sets, `KCTX_DATA`; tests that need it are skipped without it."""
    folder = Path(os.environ.get("KCTX_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data sets at {folder}; set KCTX_DATA")
    return folder
