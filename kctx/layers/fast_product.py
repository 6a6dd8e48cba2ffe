"""Matrix products as fast as the CPU allows, where a backend's plain one is not.

Measured on the shapes of BERT-base, on a CPU with AVX-512 and its bfloat16 instructions:

- JAX: XLA turns bfloat16 products into float32 ones, at half the speed, unless the result is
  float32 and both operands lie row by row. Forward and both backward products are written so.
- torch: the float32 product of MKL is 5 to 12% slower than the one of oneDNN, which also adds the
  bias. It is the one that torch's own compiler calls.
- TensorFlow: the plain form is already fused and fast.

That was on a CPU of AMD. On one of Intel (Sapphire Rapids, torch 2.13), where MKL is at home, it is
oneDNN that is slower: forwards mostly by up to 10%, and for the gradient of a kernel, for which it
copies its inputs, 1.3 to 3 times in float32 and 0.9 to 2.4 times in bfloat16. On a CPU with AVX2
alone (Zen 3), oneDNN takes 1.2 to 2.0 times MKL's time in float32 and has no bfloat16 product at
all. On both torch's `addmm` is taken, which adds the bias as well.

`product(x, kernel, bias)` returns None where there is nothing to win; the caller then takes the
plain form, `ops.matmul(x, kernel) + bias`, which is also what the tests compare with.
"""

import functools

import keras

from kctx.layers.devices import made_by_intel


def product(x, kernel, bias=None):
    """x·kernel + bias, or None where the backend's plain form is as good.

    Args:
        x: (..., D). kernel: (D, I), same dtype. bias: (I,), same dtype, or None.

    Returns:
        (..., I), dtype of `x`, or None.
    """
    backend = keras.config.backend()
    if backend == "jax":
        return _jax_product(x, kernel, bias)
    if backend == "torch":
        return _torch_product(x, kernel, bias)
    return None


def _jax_product(x, kernel, bias):
    import jax

    if x.dtype != "bfloat16" or kernel.dtype != x.dtype or jax.default_backend() != "cpu":
        return None
    multiply = _jax_bfloat16_product()
    if multiply is None:
        return None
    total = multiply(x.reshape(-1, x.shape[-1]), kernel)  # (N, I), float32
    if bias is not None:
        total = total + bias.astype("float32")
    return total.astype(x.dtype).reshape(*x.shape[:-1], total.shape[-1])


@functools.cache
def _jax_bfloat16_product():
    import jax

    try:
        from jax.experimental.layout import Layout, with_layout_constraint
    except ImportError:  # another version of an experimental part of JAX
        return None

    def by_rows(matrix):
        return with_layout_constraint(matrix, Layout((0, 1)))

    def multiply(a, b):
        return jax.numpy.matmul(a, b, preferred_element_type="float32")

    @jax.custom_vjp
    def product(x, kernel):
        return multiply(x, kernel)

    def forward(x, kernel):
        return multiply(x, kernel), (x, kernel)

    def backward(residuals, gradient):
        x, kernel = residuals
        gradient = gradient.astype(x.dtype)  # (N, I); exact, it was cast from bfloat16
        x_gradient = multiply(gradient, by_rows(kernel.T))
        kernel_gradient = multiply(by_rows(x.T), gradient)
        return x_gradient.astype(x.dtype), kernel_gradient.astype(kernel.dtype)

    product.defvjp(forward, backward)
    return product


def _torch_product(x, kernel, bias):
    import torch

    if (
        x.device.type != "cpu"
        or x.dtype not in (torch.float32, torch.bfloat16)
        or kernel.dtype != x.dtype
        or not x.numel()
        or torch.compiler.is_compiling()
        or torch.jit.is_tracing()
    ):
        return None
    flat = x.reshape(-1, x.shape[-1])  # (N, D)
    if _onednn_is_faster():
        linear = _torch_linear().apply if torch.is_grad_enabled() else _linear
        total = linear(flat, kernel, bias)
    elif bias is not None:
        total = torch.addmm(bias, flat, kernel)
    else:
        return None
    return total.reshape(*x.shape[:-1], total.shape[-1])


@functools.cache
def _onednn_is_faster():
    import torch

    if not torch.backends.mkldnn.is_available() or made_by_intel():
        return False
    if "AVX512" not in torch.backends.cpu.get_cpu_capability():
        return False
    try:
        one = torch.ones((1, 1))
        return bool(_onednn(one, one, None) == 1)
    except (AttributeError, RuntimeError):  # a torch without this operator
        return False


def _onednn(x, transposed_kernel, bias):
    """x·transposed_kernelᵀ + bias by oneDNN."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, transposed_kernel, bias, "none", [], "")


def _linear(x, kernel, bias):
    """x·kernel + bias."""
    return _onednn(x, kernel.T, bias)


@functools.cache
def _torch_linear():
    import torch

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kernel, bias):
            ctx.save_for_backward(x, kernel)
            return _linear(x, kernel, bias)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            x, kernel = ctx.saved_tensors
            needs_x, needs_kernel, needs_bias = ctx.needs_input_grad
            gradient = gradient.contiguous()  # (N, I)
            return (
                _onednn(gradient, kernel, None) if needs_x else None,
                _onednn(x.T, gradient.T, None) if needs_kernel else None,
                gradient.sum(0) if needs_bias else None,
            )

    return Linear
