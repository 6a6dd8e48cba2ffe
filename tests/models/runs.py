"""Runs of sparse models, for their tests."""

import keras
import numpy as np

from kctx import training


def array(x):
    return keras.ops.convert_to_numpy(x)


def tables(model):
    return [array(model.input_table), array(model.output_table)]


def with_values(model):
    """The same values on each backend."""
    rng = np.random.default_rng(0)
    model.set_weights([rng.normal(size=w.shape, scale=0.3) for w in model.trainable_weights])
    return model


def in_stream(model, stream, every=None, **options):
    """Trains to the end; returns the loss of each epoch."""
    every = every or stream.steps_per_epoch
    history = training.fit_steps(
        model, lambda: stream, stream.total_steps, every, verbose=0, **options
    )
    return history.history["loss"]


class Died(Exception):
    pass


class DieAt(training.StepCallback):
    def __init__(self, at):
        super().__init__()
        self.at = at

    def on_step(self, logs):
        if self.step == self.at:
            raise Died
