"""A small model with embeddings, blocks and a head, and data for it."""

import keras
import numpy as np

from kctx.training import StepCallback


def make_model():
    """Named as the encoders of kctx, but quick to compile."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(30, 8, name="token_embedding")(inputs)
    x = keras.layers.LayerNormalization(name="embedding_norm")(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    for number in range(2):
        x = keras.layers.Dense(8, "tanh", name=f"block_{number}")(x)
    outputs = keras.layers.Dense(3, dtype="float32", name="classifier")(x)
    return keras.Model(inputs, outputs, name="toy")


def compiled(model, optimizer, **options):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss, jit_compile=keras.config.backend() == "jax", **options)
    return model


class Stream:
    """Endless batches, each from its number alone."""

    start = 0

    def state_at(self, step):
        return {"step": np.int64(step)}

    def restore(self, state):
        self.start = int(state["step"])

    def fingerprint(self):
        return {}

    def batches(self):
        number = self.start
        while True:
            yield batch(number)
            number += 1


def batch(number):
    random = np.random.default_rng(number)
    ids = random.integers(0, 30, (8, 6)).astype("int32")
    return ids, (ids.sum(axis=1) % 3).astype("int32")


def numpy_of(variables):
    return [np.array(keras.ops.convert_to_numpy(variable)) for variable in variables]


class Recorder(StepCallback):
    """`read()` after every step, in `rows`; row 0 is from before the first step."""

    def __init__(self, read):
        super().__init__()
        self.read = read
        self.rows = []

    def on_train_batch_begin(self, batch, logs=None):
        if not self.rows:
            self.sync()
            self.rows.append(self.read())

    def on_step(self, logs):
        self.sync()
        self.rows.append(self.read())
