"""A state that goes step by step along a sequence: one of the few places that must know the
backend.

`keras.ops.scan` is compiled anew at each call under JAX outside of compiled steps, which takes
seconds, and under TensorFlow it takes no two inputs of a length that is not known before.
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
    return plain_scan_states(step, first, inputs, constants, reverse)


def plain_scan_states(step, first, inputs, constants=(), reverse=False):
    """`scan_states` as Keras does it."""

    def along(state, x):
        state = step(state, x, constants)
        return state, state

    return ops.scan(along, first, inputs, reverse=reverse)[1]


@functools.cache
def _compiled_by_jax(step, reverse):
    import jax

    return jax.jit(functools.partial(plain_scan_states, step, reverse=reverse))
