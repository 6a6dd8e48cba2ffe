"""Rows of different lengths through a model, in batches of few shapes."""

import math

import keras
import numpy as np

from kctx.layers.devices import on_cpu

# Lengths are rounded up to a multiple of this, and batches to a power of two, so that few shapes
# are ever compiled.
LENGTH_STEP = 16
# On a CPU, most tokens of a batch of several rows: long rows are fewer in a batch. More would leave
# the caches and take longer for each; fewer leave what is spent on each call to too few.
BATCH_TOKENS = 2048


def run_rows(model, declared, inputs, select, batch_size, limit):
    """What a model gives for rows, which are sorted by length and batched with their like.

    Args:
        model: keras.Model.
        declared: dict of name to `ModelInput`, of its inputs.
        inputs: dict of name to array (N, ...), all rows of them padded to one shape.
        select: function of a batch's outputs and inputs to a dict of tensors with a row for each.
        batch_size: int, most rows that the model sees at a time; on a CPU fewer of long rows, see
            `BATCH_TOKENS`.
        limit: int, most tokens of a row.

    Returns:
        list of N dicts of float32 or int arrays, in the order of the rows. Those of rows from
        different batches may be padded to different lengths.

    Raises:
        FloatingPointError: a value is NaN or infinite.
    """
    inputs = {key: np.asarray(value) for key, value in inputs.items()}
    sizes = real_sizes(declared, inputs)  # axis -> (N,)
    count = len(next(iter(inputs.values())))
    keys = [size for _, size in sorted(sizes.items(), reverse=True)]
    keys.append(sizes.get("T", np.zeros(count)))  # the last one counts most
    order = np.lexsort(keys)
    rows = [None] * count
    tokens = BATCH_TOKENS
    if model.weights and not on_cpu(model.weights[0].value):
        tokens = math.inf
    start = 0
    while start < count:
        most = batch_size
        while True:
            chosen = order[start : start + most]
            lengths = {
                axis: rounded(size[chosen].max(), axis, limit) for axis, size in sizes.items()
            }
            in_row = lengths.get("T", 0) * lengths.get("N", 1) + lengths.get("T_b", 0)
            if most == 1 or most * in_row <= tokens:
                break
            most = 1 << (most - 1).bit_length() - 1  # the next lower power of two
        start += most
        size = min(1 << (len(chosen) - 1).bit_length(), most)
        batch = {
            key: fitted(value[chosen], declared[key], size, lengths)
            for key, value in inputs.items()
        }
        outputs = select(model.predict_on_batch(batch), batch)
        outputs = {key: np.asarray(value) for key, value in outputs.items()}
        if not all(np.isfinite(value).all() for value in outputs.values()):
            raise FloatingPointError(
                f"{model.name} gives scores that are no finite numbers: its weights are broken, or "
                "its dtype policy is too narrow for them."
            )
        for place, row in enumerate(chosen):
            rows[row] = {key: value[place] for key, value in outputs.items()}
    return rows


def real_sizes(declared, inputs):
    """How far each row reaches along each axis behind the batch: dict of axis to (N,).

    Told by the boolean inputs, in which True is real. An axis without any is used in full.
    """
    sizes = {}
    for key, value in inputs.items():
        for place, axis in enumerate(declared[key].axes[1:], 1):
            if value.dtype == bool:
                others = tuple(x for x in range(1, value.ndim) if x != place)
                reached = value.any(axis=others) * np.arange(1, value.shape[place] + 1)
                size = reached.max(axis=1, initial=0)  # (N,)
                sizes[axis] = np.maximum(sizes.get(axis, 0), size)
    return sizes


def rounded(length, axis, limit):
    """The length that is compiled for a length; choices are few and stay as many as they are."""
    length = max(int(length), 1)
    if axis == "N":
        return length
    room = -(-length // LENGTH_STEP) * LENGTH_STEP
    return room if axis == "M" else min(room, limit)  # mentions may be more than tokens


def fitted(value, declared, size, lengths):
    """Cuts or pads (n, ...) to `size` rows and to the given lengths; added rows repeat the last."""
    for place, axis in enumerate(declared.axes[1:], 1):
        if axis in lengths:
            value = np.take(value, np.arange(min(value.shape[place], lengths[axis])), axis=place)
            missing = [(0, 0)] * value.ndim
            missing[place] = (0, lengths[axis] - value.shape[place])
            value = np.pad(value, missing, constant_values=declared.padding)
    return np.concatenate([value, np.repeat(value[-1:], size - len(value), axis=0)])


def stacked(rows, shape):
    """Rows that are padded differently, as one array per key.

    Args:
        rows: list of N dicts of arrays.
        shape: tuple of int or None, the lengths of the first axes behind the batch. What lies
            beyond is padding and cut; what is missing becomes 0.

    Returns:
        dict of arrays (N, *shape, ...)
    """
    found = {}
    for key, first in rows[0].items():
        whole = np.zeros((len(rows), *shape, *first.shape[len(shape) :]), first.dtype)
        for target, row in zip(whole, rows, strict=True):
            part = row[key]
            part = part[tuple(slice(0, length) for length in shape)]
            target[tuple(slice(0, length) for length in part.shape)] = part
        found[key] = whole
    return found


def axis_sizes(declared, inputs):
    """The length of each axis: dict of letter to int."""
    return {
        axis: size
        for key, value in inputs.items()
        for axis, size in zip(declared[key].axes, np.shape(value), strict=True)
    }


def copied_settings(model, source):
    """Gives a model the settings for prediction of another."""
    model.jit_compile = source.jit_compile
    return model


def functional(inputs, outputs, source, name):
    """A functional `keras.Model` that runs as another does."""
    return copied_settings(keras.Model(inputs, outputs, name=name), source)
