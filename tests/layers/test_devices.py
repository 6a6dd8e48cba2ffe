"""The tests run on a CPU, so that is where every value lies."""

import keras
import numpy as np
from keras import ops

from kctx.layers.devices import on_cpu


def test_arrays_and_tensors():
    assert on_cpu(np.zeros(2))
    assert on_cpu(ops.zeros(2))


def test_within_a_compiled_model():
    seen = []

    class Spy(keras.layers.Layer):
        def call(self, x):
            if not isinstance(x, keras.KerasTensor):
                seen.append(on_cpu(x))
            return x

    x = keras.Input((2,))
    model = keras.Model(x, Spy()(x))
    model.compile(jit_compile=False)
    model.predict(np.zeros((1, 2), "float32"), verbose=0)
    assert seen[-1]  # before it, Keras may have asked for the shape with values that lie nowhere
