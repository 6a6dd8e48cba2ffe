"""Exact resume: what a run needs to go on as if it had never stopped."""

import json
from collections import Counter

import keras
import numpy as np

from kctx.arguments import check_count
from kctx.training import checkpoint_files
from kctx.training.step_callback import StepCallback

# Names and wiring differ between equal models made twice in one process; the shapes of all
# variables are compared beside the configuration.
NOT_COMPARED = {"name", "inbound_nodes", "input_layers", "output_layers", "build_config"}


def flatten(value, prefix=""):
    """Nested dicts and lists as one dict of "a/b/0" to plain values."""
    if isinstance(value, dict):
        items = [(key, entry) for key, entry in value.items() if key not in NOT_COMPARED]
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        return {prefix: value}
    return {
        path: entry
        for key, child in items
        for path, entry in flatten(child, f"{prefix}/{key}" if prefix else str(key)).items()
    }


def plain(value):
    """`value` as JSON would give it back."""
    return json.loads(json.dumps(value, default=str))


def model_fingerprint(model):
    """Configuration of the model and its optimizer, and the shapes of the variables."""
    return {
        "model": flatten(plain(model.get_config())),
        "optimizer": flatten(plain(keras.optimizers.serialize(model.optimizer))),
        "shapes": [list(variable.shape) for variable in model.weights],
        "weights": weight_places(model),
    }


def differences(saved, current):
    """Lines "field: saved ..., now ..." for the fields that differ."""
    saved, current = flatten(saved), flatten(current)
    return [
        f"{field}: saved {saved.get(field, 'nothing')!r}, now {current.get(field, 'nothing')!r}"
        for field in sorted(saved.keys() | current.keys())
        if field not in saved or field not in current or saved[field] != current[field]
    ]


def own_variables(model):
    """Weights and seed states, without metrics."""
    metrics = {id(variable) for variable in model.metrics_variables}
    return [variable for variable in model.variables if id(variable) not in metrics]


def weight_places(model):
    """For each of `model.weights`, its place among `own_variables`."""
    places = {id(variable): i for i, variable in enumerate(own_variables(model))}
    return [places[id(variable)] for variable in model.weights]


def state_variables(model):
    """Dict of name to variable: weights and seed states, then the optimizer's, in fixed order."""
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    own = own_variables(model)
    own_ids = {id(variable) for variable in own}
    optimizer = [v for v in model.optimizer.variables if id(v) not in own_ids]
    return {
        **{f"model/{i}": variable for i, variable in enumerate(own)},
        **{f"optimizer/{i}": variable for i, variable in enumerate(optimizer)},
    }


def as_array(variable):
    array = keras.ops.convert_to_numpy(variable)
    # NumPy's files know no bfloat16; float32 holds each of its values.
    return array if array.dtype.kind in "biufc" else array.astype("float32")


def assign_all(variables, arrays):
    """Sets variables from arrays of the same names and shapes, or changes none."""
    for name, variable in variables.items():
        if name not in arrays or tuple(arrays[name].shape) != tuple(variable.shape):
            shape = arrays[name].shape if name in arrays else "nothing"
            raise ValueError(
                f"The checkpoint does not fit: {variable.path} has shape {tuple(variable.shape)}. "
                f"Received: {shape}"
            )
    if len(arrays) != len(variables):
        raise ValueError(
            f"The checkpoint does not fit: the model has {len(variables)} variables. "
            f"Received: {len(arrays)}"
        )
    for name, variable in variables.items():
        variable.assign(keras.ops.convert_to_tensor(arrays[name], dtype=variable.dtype))


def random_states():
    """States of generators outside the model: torch draws dropout from its global ones."""
    if keras.config.backend() != "torch":
        return {}
    import torch

    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states.update({f"cuda:{i}": s for i, s in enumerate(torch.cuda.get_rng_state_all())})
    return {name: value.numpy() for name, value in states.items()}


def restore_random_states(states):
    """Sets what `random_states` gave; a device that is not here is left out."""
    if keras.config.backend() != "torch":
        return
    import torch

    torch.set_rng_state(torch.from_numpy(states["cpu"]))
    for i in range(torch.cuda.device_count()):
        if f"cuda:{i}" in states:
            torch.cuda.set_rng_state(torch.from_numpy(states[f"cuda:{i}"]), i)


def has_checkpoint(folder):
    """Whether a folder holds a checkpoint, from which a run can be resumed.

    What a recipe has made of its input before the first one, only the checkpoint can vouch for: it
    knows the options. Without one it is made anew.
    """
    return bool(checkpoint_files.step_folders(folder))


def refuse_used(folder):
    """Raises a `ValueError` if a folder holds checkpoints, which a new run would mix with its own.

    A recipe calls it before it writes anything, so that a forgotten `--resume` costs nothing.
    """
    present = checkpoint_files.step_folders(folder)
    if present:
        raise ValueError(
            f"{folder} already holds checkpoints ({present[-1][1]}): resume (--resume), or choose "
            "another folder for the run (--output)."
        )


class Checkpoints(StepCallback):
    """Saves all that an exact resume needs, every so many batches.

    Weights, optimizer (moments, iterations, loss scale), seed generators, torch's global
    generators, step, and the state of the data stream go into `<folder>/step-00001000/`. A kill
    or a full disk while saving leaves the previous checkpoint whole. A new run does not start in
    a folder that holds checkpoints.

    It saves at the end of a Keras epoch, which `fit_steps` makes an interval of steps.

    Example:
        checkpoints = Checkpoints("runs/bert", every=1000, stream=stream)
        fit_steps(model, dataset, total_steps=100_000, every=1000, checkpoints=checkpoints)

    Args:
        folder: where the checkpoints are, one subfolder each.
        every: int >= 1, in batches.
        keep: int >= 1, how many of the newest are kept.
        stream: where the batches come from: an object with `state_at(step)` -> dict of arrays,
            the state before batch number `step` (counted from 0); `restore(state)`; and
            `fingerprint()` -> dict of the options that the batches depend on. None: the caller
            makes the dataset begin at the right batch.
        fingerprint: dict of anything else that must be the same on resume, plain JSON values.
        callbacks: list of `StepCallback` whose state is saved as well. Default: those that
            `fit_steps` is given.
    """

    def __init__(self, folder, every, keep=2, stream=None, fingerprint=None, callbacks=()):
        super().__init__()
        for name, value in (("every", every), ("keep", keep)):
            check_count(name, value)
        self.folder = folder
        self.every = every
        self.keep = keep
        self.stream = stream
        self.own_fingerprint = fingerprint or {}
        self.callbacks = callbacks
        self._resumed = False
        self._random_states = None
        self._saved_step = 0

    def _fingerprint_of(self, model):
        data = self.stream.fingerprint() if self.stream is not None else {}
        callbacks = {name: callback.fingerprint() for name, callback in self._named_callbacks()}
        return plain(
            {
                **model_fingerprint(model),
                "data": data,
                "run": self.own_fingerprint,
                "callbacks": {name: value for name, value in callbacks.items() if value},
            }
        )

    def _named_callbacks(self):
        """[(name, callback)], the names all different and the same in every run."""
        counts = Counter()
        named = []
        for callback in self.callbacks:
            kind = type(callback).__name__
            counts[kind] += 1
            named.append((f"{kind}-{counts[kind]}", callback))
        return named

    def resume(self, model):
        """Restores `model`, its optimizer, seeds and the stream from the newest whole checkpoint.

        Args:
            model: compiled as for the interrupted run.

        Returns:
            the step to go on from; 0 if there is no checkpoint.

        Raises:
            ValueError: if model, optimizer, data or run differ from the saved ones; it names the
                fields with both values, and nothing is changed.
        """
        self._resumed = True
        found = checkpoint_files.newest(self.folder)
        if found is None:
            broken = [path.name for _, path in checkpoint_files.step_folders(self.folder)]
            if broken:
                raise ValueError(f"No checkpoint in {self.folder} is whole. Received: {broken}")
            return 0
        path, manifest = found
        changed = differences(manifest["fingerprint"], self._fingerprint_of(model))
        if changed:
            raise ValueError(
                f"The run cannot be resumed from {path}, which was saved with other settings; to "
                "start anew from its weights use `init_from`. Received:\n  "
                + "\n  ".join(changed[:20])
            )
        # All is read before anything is changed.
        arrays = {
            name.removesuffix(".npz"): checkpoint_files.read_arrays(path / name)
            for name in manifest["files"]
        }
        absent = {"state"} | ({"stream"} if self.stream is not None else set())
        absent |= {name for name, callback in self._named_callbacks() if callback.state()}
        absent -= set(arrays)
        if absent:
            raise ValueError(f"{path} holds no {' and no '.join(sorted(absent))}.npz")
        assign_all(state_variables(model), arrays["state"])
        self._random_states = arrays.get("random")
        if self.stream is not None:
            self.stream.restore(arrays["stream"])
        for name, callback in self._named_callbacks():
            if name in arrays:
                callback.restore(arrays[name])
        self.step = self._saved_step = int(manifest["step"])
        return self.step

    def save(self):
        """Saves now."""
        self.sync()
        arrays = {"state": {k: as_array(v) for k, v in state_variables(self.model).items()}}
        if random := random_states():
            arrays["random"] = random
        if self.stream is not None:
            state = self.stream.state_at(self.step)
            arrays["stream"] = {name: np.asarray(value) for name, value in state.items()}
        for name, callback in self._named_callbacks():
            if state := callback.state():
                arrays[name] = {key: np.asarray(value) for key, value in state.items()}
        fingerprint = self._fingerprint_of(self.model)
        checkpoint_files.write(self.folder, self.step, arrays, fingerprint)
        self._saved_step = self.step
        past = [p for step, p in checkpoint_files.step_folders(self.folder) if step <= self.step]
        for path in past[: -self.keep]:
            checkpoint_files.remove(path)

    def on_train_begin(self, logs=None):
        if self.step == 0 and not self._resumed:
            refuse_used(self.folder)

    def on_train_batch_begin(self, batch, logs=None):
        # Not before: Keras draws some numbers of its own when `fit` starts.
        if self._random_states is not None:
            restore_random_states(self._random_states)
            self._random_states = None

    def on_epoch_end(self, epoch, logs=None):
        # At the end of an interval and after all other callbacks, so that a kill after the save
        # loses no row of a log and no evaluation.
        if self.step // self.every > self._saved_step // self.every:
            self.save()

    def on_train_end(self, logs=None):
        if self.step != self._saved_step:
            self.save()
