"""Callbacks that count training steps over the whole run."""

import keras


class StepCallback(keras.callbacks.Callback):
    """Knows `step`, the number of batches trained on since the start of the run.

    Keras counts batches within an epoch only. `fit_steps` sets `step` when a run is resumed.
    A subclass defines `on_step(logs)`, called after each batch (after each execution with
    `steps_per_execution`), and `logs` may be added to: callbacks after it, and the progress bar,
    show what it adds.
    """

    def __init__(self):
        super().__init__()
        self.step = 0
        self._epoch_start = 0

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch_start = self.step

    def on_train_batch_end(self, batch, logs=None):
        self.step = self._epoch_start + batch + 1
        self.on_step({} if logs is None else logs)

    def on_step(self, logs):
        pass

    def sync(self):
        """Brings the model's variables up to date; JAX keeps them apart during an epoch."""
        if keras.config.backend() == "jax":
            self.model.jax_state_sync()
