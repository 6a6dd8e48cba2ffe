"""The base of models whose step changes a few rows of large tables."""

import math

import keras
from keras import ops

from kctx.kernels.host_memory import shared_tensors


class SparseModel(keras.Model):
    """A model trained by `fit` without gradients of the size of its tables.

    Automatic differentiation gives a gradient for every row of a table, and an optimizer then
    reads and writes all of them; of a vocabulary of a million words a batch touches a few
    thousand. A subclass writes its gradients out, in `update`, and adds them to the rows that
    they belong to.

    `fit` takes a dataset of dicts of arrays, one for each batch, as the streams of `kctx.data`
    make them. The model is compiled from the start; the optimizer that Keras asks for has no
    part, since the rate comes with the batch.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def _finish(self):
        """To be called once all weights are made."""
        self.built = True
        # XLA has no part in TensorFlow on a CPU: its scatter copies the table.
        jit_compile = keras.config.backend() == "jax"
        self.compile(optimizer=keras.optimizers.SGD(1.0), jit_compile=jit_compile)
        self.optimizer.build(self.trainable_variables)

    @property
    def metrics(self):
        return [self.loss_tracker]

    def fit(self, x, **kwargs):
        """As `keras.Model.fit`.

        Args:
            x: dataset of dicts, or a stream of `kctx.data`, which is then asked for `dataset()`
                under TensorFlow and for `batches()` elsewhere, where tf.data would cost more than
                the step.
            **kwargs: as there; `shuffle` is of no meaning.

        Raises:
            FloatingPointError: the loss is NaN or infinite, as after a rate that is too high.
            ValueError: a stream with rows that the tables do not have.
        """
        if hasattr(x, "batches"):
            self.check_stream(x)
            x = self.batches_of(x)
        kwargs.setdefault("shuffle", False)
        # First, so that no other callback writes what went wrong.
        kwargs["callbacks"] = [_StopOnNonFinite(), *(kwargs.get("callbacks") or [])]
        return super().fit(x, **kwargs)

    def check_stream(self, stream):
        """Raises a `ValueError` for a stream with rows that the tables do not have.

        No backend says so of an index: one passes it over, another writes elsewhere in memory.
        """
        check_rows("vocabulary_size", self.vocabulary_size, stream.vocabulary_size)

    def batches_of(self, stream):
        """What `fit` trains on of a stream of `kctx.data`."""
        if keras.config.backend() == "tensorflow":
            return stream.dataset()
        batches = stream.batches()
        return shared_tensors(batches) if keras.config.backend() == "torch" else batches

    def non_finite_error(self, loss):
        """The error of a loss that is not finite; the variables are up to date."""
        return FloatingPointError(
            f"The loss is not finite: loss={loss}. A lower learning rate keeps training from "
            "diverging"
        )

    def update(self, batch):
        """One step on the weights: changes them and returns (sum of losses, their number).

        Args:
            batch: dict of tensors.
        """
        raise NotImplementedError

    def _step(self, batch):
        (batch,) = batch if isinstance(batch, (tuple, list)) else (batch,)
        loss, count = self.update(batch)
        self.loss_tracker.update_state(loss / ops.maximum(count, 1.0), sample_weight=count)
        return {"loss": self.loss_tracker.result()}

    def train_step(self, *arguments):
        """Keras gives the state of the model to a step under JAX, and the batch alone elsewhere."""
        if keras.config.backend() == "jax":
            state, batch = arguments
            return self._stateless_step(state, batch)
        if keras.config.backend() == "torch":
            import torch

            with torch.no_grad():
                return self._step(arguments[0])
        return self._step(arguments[0])

    def _stateless_step(self, state, batch):
        groups = (
            self.trainable_variables,
            self.non_trainable_variables,
            self.optimizer.variables,
            self.metrics_variables,
        )
        mapping = [
            pair
            for variables, values in zip(groups, state, strict=True)
            for pair in zip(variables, values, strict=True)
        ]
        with keras.StatelessScope(state_mapping=mapping) as scope:
            logs = self._step(batch)
        state = tuple([scope.get_current_value(variable) for variable in group] for group in groups)
        return logs, state


def check_rows(argument, rows, needed):
    """Raises a `ValueError` unless a model has the rows that a stream needs."""
    if needed > rows:
        raise ValueError(
            f"The stream needs a model of `{argument}` of at least {needed}. "
            f"Received: {argument}={rows}"
        )


class _StopOnNonFinite(keras.callbacks.Callback):
    """Ends training at the first loss that is not finite."""

    def on_train_batch_end(self, batch, logs=None):
        loss = float((logs or {}).get("loss", 0.0))
        if not math.isfinite(loss):
            if keras.config.backend() == "jax":
                # Else the values stay apart from the variables.
                self.model.jax_state_sync()
            raise self.model.non_finite_error(loss)
