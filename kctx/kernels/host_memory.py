"""Weights and batches as NumPy arrays that share their memory, for the kernels of CPUs."""

import numpy as np

from kctx import kernels


def window_kernel(architecture, num_negatives, loss_every, cbow_average=True, cbow_corrected=False):
    """The kernel of window steps, see `kctx.kernels.windows`; None where it is no use."""
    if not kernels.usable():
        return None
    from kctx.kernels.windows import WindowKernel

    return WindowKernel(architecture, num_negatives, cbow_average, cbow_corrected, loss_every)


def in_memory(variable):
    """The array of a variable under torch on a CPU; changes to it change the variable."""
    return variable.value.detach().numpy()


def arrays(batch):
    """A dict of tensors under torch on a CPU, or of arrays, as arrays."""
    return {name: np.asarray(value) for name, value in batch.items()}
