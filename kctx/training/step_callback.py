"""Callbacks that count training steps over the whole run."""

import keras


class StepCallback(keras.callbacks.Callback):
    """Knows `step`, the number of batches trained on since the start of the run, and `last_step`,
    the one before, which differs by more than 1 under `steps_per_execution`.

    Keras counts batches within an epoch only. `fit_steps` sets `step` when a run is resumed.
    A subclass defines `on_step(logs)`, called after each batch (after each execution with
    `steps_per_execution`), and `logs` may be added to: callbacks after it, and the progress bar,
    show what it adds. One that must remember something over a resume defines `state`, `restore`
    and `fingerprint`, which `Checkpoints` asks for.
    """

    def __init__(self):
        super().__init__()
        self.step = self.last_step = 0
        self._epoch_start = 0

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch_start = self.step

    def on_train_batch_end(self, batch, logs=None):
        self.last_step, self.step = self.step, self._epoch_start + batch + 1
        self.on_step({} if logs is None else logs)

    def on_step(self, logs):
        pass

    def state(self):
        """Dict of arrays that a checkpoint must hold for this callback; {} if it needs nothing."""
        return {}

    def restore(self, state):
        """Takes what `state` gave, before a resumed run begins."""

    def fingerprint(self):
        """Dict of plain values that must be the same on resume; {} if there are none."""
        return {}

    def is_over(self):
        """Whether the run ended before `self.step` for a reason that still holds on resume."""
        return False

    def sync(self):
        """Brings the model's variables up to date; JAX keeps them apart during an epoch."""
        if keras.config.backend() == "jax":
            self.model.jax_state_sync()
