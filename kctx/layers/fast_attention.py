"""Attention without a table of all scores, where a backend has it and it is faster.

Measured on a CPU with AVX2: torch's fused attention keeps the scores of a few queries at a time
in the cache, in float32 whatever the dtype of its inputs. Written out, the scores of 8 texts of 512
tokens and 12 heads are 100 MB, read and written five times. JAX and TensorFlow have none on a CPU.

Its gradients in bfloat16 take long: 7 times as long as in float32 at 32 tokens, 2 to 4 times at
128, as long at 512 (Sapphire Rapids, torch 2.13). Where gradients are wanted, it is given float32.

`attention(...)` returns None where there is none; the caller then takes the plain form, which is
also what the tests compare with.
"""

import keras


def attention(query, key, value, mask=None):
    """softmax(QKᵀ/√K)V for each head, or None where the backend's plain form is to be taken.

    Args:
        query: (B, T, H, K). key, value: (B, S, H, K), same dtype.
        mask: bool, broadcastable to (B, H, T, S), True = may attend, or None.

    Returns:
        (B, T, H, K), zeros for a query that may attend to nothing; or None.
    """
    if keras.config.backend() != "torch" or isinstance(query, keras.KerasTensor):
        return None
    import torch

    if (
        query.device.type != "cpu"
        or query.dtype not in (torch.float32, torch.bfloat16)
        or not (query.dtype == key.dtype == value.dtype)
        or not query.numel()
        or not key.numel()
    ):
        return None
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))  # (B, H, L, K)
    mask = None if mask is None else keras.ops.convert_to_tensor(mask, "bool")
    traced = torch.jit.is_tracing() or torch.compiler.is_compiling()
    if mask is not None and not traced and mask.all():
        mask = None  # what is sorted by length has little padding; without a mask it is faster
    if mask is not None:
        attends = mask.any(-1, keepdim=True)  # (B, H or 1, T or 1, 1)
        mask = mask | ~attends  # a row without any key would be NaN
    dtype = query.dtype
    if torch.is_grad_enabled() and any(x.requires_grad for x in (query, key, value)):
        query, key, value = query.float(), key.float(), value.float()
    found = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    found = found.to(dtype)
    if mask is not None:
        found = found * attends
    return found.transpose(1, 2)
