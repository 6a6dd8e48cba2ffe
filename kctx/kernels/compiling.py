"""How kernels are compiled."""

import numba

# Results are kept beside the source, or in NUMBA_CACHE_DIR. Python's check of divisors, which may
# end a loop, would keep it from running on vectors.
_OPTIONS = {"fastmath": True, "cache": True, "nogil": True, "error_model": "numpy"}
compiled = numba.njit(**_OPTIONS)
parallel = numba.njit(parallel=True, **_OPTIONS)
