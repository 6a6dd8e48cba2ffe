"""Inputs by name; bad input and failing data lose nothing, under JAX either.

Given a dict with one entry too many, Keras warns and then takes the entries in the order of their
names, the wrong ones. Here the extra entry is left out.

Under JAX, Keras takes the values out of a model's variables before a step and gives their memory
away to it. An error on the way, in the data or in a check of ids inside the compiled step, then
leaves a model without weights. Here each batch is fetched and checked before the step begins, and
on an error the values are put back.
"""

import itertools

import keras
import numpy as np

from kctx.layers.id_check import check_range


class CheckedInputs:
    """For models whose `check_inputs(inputs)` raises on what cannot be computed.

    Stands before `keras.Model` among the bases. Under TensorFlow and torch the steps are left as
    they are: there the layers' own checks raise before anything is lost.
    """

    def __call__(self, inputs, *args, **kwargs):
        return super().__call__(self._by_name(inputs), *args, **kwargs)

    def call(self, inputs, *args, **kwargs):
        # Compiled steps under JAX come here without `__call__`.
        return super().call(self._by_name(inputs), *args, **kwargs)

    def _by_name(self, inputs):
        if not isinstance(inputs, dict):
            return inputs
        missing = [name for name in self.input if name not in inputs]
        if missing:
            raise ValueError(
                f"`inputs` of {self.name} must hold {', '.join(self.input)}. "
                f"Received: {', '.join(inputs) or 'none'}"
            )
        return {name: _fitting(name, inputs[name], self.input[name].dtype) for name in self.input}

    def check_inputs(self, inputs):
        """Raises a `ValueError` on a dict of inputs that cannot be computed."""
        raise NotImplementedError

    def make_train_function(self, force=False):
        super().make_train_function(force)
        self.train_function = _checked(self, self.train_function)

    def make_test_function(self, force=False):
        super().make_test_function(force)
        self.test_function = _checked(self, self.test_function)

    def make_predict_function(self, force=False):
        super().make_predict_function(force)
        self.predict_function = _checked(self, self.predict_function)
        return self.predict_function


def _fitting(name, value, dtype):
    """`value`, if it can be cast to the dtype of the input without becoming other ids.

    Raises:
        ValueError: fractions, or integers beyond `dtype`.
    """
    if not dtype.startswith("int"):
        return value
    value = value if hasattr(value, "dtype") else np.asarray(value)
    found = keras.backend.standardize_dtype(value.dtype)
    message = f"`{name}` must hold integers that fit into {dtype}."
    if "int" not in found and found != "bool":
        raise ValueError(f"{message} Received: {found}")
    if found in ("int64", "uint32", "uint64"):
        return check_range(value, 2**31, message)
    return value


def _checked(model, step):
    """`step(state, iterator)` that touches `state` only once its batches are there and sound."""
    if keras.config.backend() != "jax" or getattr(step, "is_checked", False):
        return step

    def checked_step(state, iterator):
        try:
            batches = list(itertools.islice(iterator, model.steps_per_execution))
            for batch in batches:
                model.check_inputs(_named_inputs(model, batch))
                _check_labels(model, batch)
        except BaseException:
            _put_back(model, state)
            raise
        return step(state, iter(batches))  # without batches it raises StopIteration

    checked_step.is_checked = True
    return checked_step


def _named_inputs(model, batch):
    inputs, _, _ = keras.utils.unpack_x_y_sample_weight(batch)
    if isinstance(inputs, dict):
        return inputs
    names = [tensor.name for tensor in model.inputs]
    return dict(zip(names, keras.tree.flatten(inputs), strict=False))


def _check_labels(model, batch):
    """Has the loss check the labels, if it can."""
    _, labels, _ = keras.utils.unpack_x_y_sample_weight(batch)
    check = getattr(getattr(model, "loss", None), "check_labels", None)
    if check is not None and labels is not None:
        check(labels, model.output)


def _put_back(model, state):
    """Gives the variables the values that a step was about to take."""
    kinds = [model.trainable_variables, model.non_trainable_variables]
    if len(state) == 4:
        kinds.append(model.optimizer.variables)
    if len(state) >= 3:
        kinds.append(model.metrics_variables)
    for variables, values in zip(kinds, state, strict=True):
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
