"""The cores that kernels run on."""

import functools
import os
import threading

import numba

# One thread at a time: not every threading layer of Numba may be entered twice.
LOCK = threading.Lock()


@functools.cache
def num_cores():
    """int, cores that this process may use, at most those that Numba will."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, numba.get_num_threads())
