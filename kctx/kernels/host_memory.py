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


def shared_tensors(batches):
    """`(dict of arrays,)` of each batch as tensors of torch that share the arrays' memory.

    Of arrays Keras makes copies, of a tree or a text too, which stand in every batch.
    """
    import torch

    def shared(value):
        writable = isinstance(value, np.ndarray) and value.flags.writeable
        return torch.from_numpy(value) if writable else value

    for (batch,) in batches:
        yield ({name: shared(value) for name, value in batch.items()},)
