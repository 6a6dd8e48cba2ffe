"""A small training run, also started as a process of its own by the resume tests.

python small_run.py FOLDER TOTAL_STEPS [--resume] [--die-at STEP] [--dtype POLICY]
"""

import argparse
import os
import signal
from pathlib import Path

import keras
import numpy as np

from kctx.training import (
    AdamW,
    Checkpoints,
    CSVLog,
    Progress,
    StepCallback,
    WarmupLinearDecay,
    fit_steps,
    setup,
)


class Stream:
    """Endless batches, each from the seed and its number alone."""

    def __init__(self, seed=0):
        self.seed = seed
        self.start = 0
        self.made = []

    def state_at(self, step):
        return {"position": np.int64(step)}

    def restore(self, state):
        self.start = int(state["position"])

    def fingerprint(self):
        return {"seed": self.seed}

    def batches(self):
        number = self.start
        while True:
            self.made.append(number)
            random = np.random.default_rng([self.seed, number])
            x = random.integers(0, 50, (8, 6)).astype("int32")
            yield x, (x.sum(axis=1) % 3).astype("int32")
            number += 1


class Died(Exception):
    pass


def fail():
    raise Died


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


class DieAt(StepCallback):
    def __init__(self, at, die):
        super().__init__()
        self.at = at
        self.die = die

    def on_step(self, logs):
        if self.step == self.at:
            self.die()


def make_model(hidden=16, dtype="float32", total_steps=40):
    chosen = setup(seed=1, dtype=dtype)
    inputs = keras.Input((6,), dtype="int32")
    x = keras.layers.Embedding(50, 8, name="embedding")(inputs)
    x = keras.layers.Dropout(0.3, name="dropout_1")(x)
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(hidden, activation="relu", name="hidden")(x)
    x = keras.layers.Dropout(0.3, name="dropout_2")(x)
    model = keras.Model(inputs, keras.layers.Dense(3, dtype="float32", name="logits")(x))
    optimizer = AdamW(WarmupLinearDecay(0.02, 5, total_steps))
    if dtype == "mixed_float16":
        optimizer = chosen.scaled(optimizer)
        optimizer.dynamic_growth_steps = 7
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=chosen.jit_compile,
    )
    return model


def run(folder, total_steps, resume=False, die_at=None, dtype="float32", every=5, die=kill):
    model = make_model(dtype=dtype)
    stream = Stream()
    checkpoints = Checkpoints(Path(folder) / "checkpoints", every=every, stream=stream)
    log = CSVLog(Path(folder) / "log.csv", every=1)
    callbacks = [Progress(tokens_per_batch=48, every=5), log]
    if die_at is not None:
        callbacks.append(DieAt(die_at, die))
    fit_steps(
        model,
        stream.batches,
        total_steps,
        every,
        callbacks=callbacks,
        checkpoints=checkpoints,
        resume=resume,
        verbose=0,
    )
    return model, stream


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("total_steps", type=int)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--die-at", type=int)
    parser.add_argument("--dtype", default="float32")
    run(**vars(parser.parse_args()))
