"""A state that goes step by step along a sequence: one of the few places that must know the
backend.

`keras.ops.scan` is compiled anew at each call under JAX outside of compiled steps, which takes
seconds; under TensorFlow it takes no two inputs of a length that is not known before; and under
torch its bookkeeping takes longer than the steps themselves.
"""

import functools

import keras
from keras import ops


def scan_states(step, first, inputs, constants=(), reverse=False):
    """All states of a recursion.

    Args:
        step: function (state, input, constants) -> state. One of a module, rather than one made
            anew for each call, since what is compiled is kept for it.
        first: tensor, the state before the first step.
        inputs: tuple of tensors (N, ...), taken apart along their first axis.
        constants: tuple of tensors, the same at each step.
        reverse: bool, whether the last input comes first. Default False.

    Returns:
        (N, ...), the state after each step, in the order of `inputs`
    """
    backend = keras.config.backend()
    if backend == "jax":
        return _compiled_by_jax(step, reverse)(first, inputs, constants)
    if backend == "tensorflow":
        import tensorflow as tf

        def along(state, x):
            return step(state, x, constants)

        return tf.scan(along, inputs, first, reverse=reverse)
    import torch

    # Apart as a whole: the gradient of `x[i]` would be as large as `x`, for each step.
    steps = list(zip(*(x.unbind(0) for x in inputs), strict=True))
    states, state = [], first
    for x in reversed(steps) if reverse else steps:
        state = step(state, x, constants)
        states.append(state)
    return torch.stack(states[::-1] if reverse else states)


def plain_scan_states(step, first, inputs, constants=(), reverse=False):
    """`scan_states` as Keras does it."""

    def along(state, x):
        state = step(state, x, constants)
        return state, state

    return ops.scan(along, first, inputs, reverse=reverse)[1]


def look_up(table, places):
    """table (N,), int places (M,) -> (M,): `keras.ops.take`, without its bookkeeping in a loop."""
    if keras.config.backend() == "torch":
        return table[places]
    return ops.take(table, places)


@functools.cache
def _compiled_by_jax(step, reverse):
    import jax

    return jax.jit(functools.partial(plain_scan_states, step, reverse=reverse))
