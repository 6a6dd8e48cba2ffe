"""The exported graph: raw text or token ids in, named answers out."""

import types

import tensorflow as tf

from kctx.heads.bi_encoder import SECOND
from kctx.presets.task import InputLimits

UNCHECKED = InputLimits({}, None)


class TextGraph(tf.Module):
    """A task with its model and preprocessor as one trackable object with signatures.

    It owns every table and variable its signatures read. Batch and length are free, and a batch of
    zero gives outputs of zero rows.

    Args:
        task: `kctx.tasks.Task`.
        weights: see `kctx.export.stored_weights`.
        limits: `kctx.presets.task.InputLimits`, which clients' ids and T are checked against.
            Default: unchecked.
        embedding: `kctx.tasks.Embedding` of the same encoder, for a signature `embed`. Default:
            none.
    """

    def __init__(self, task, weights, limits=UNCHECKED, embedding=None):
        super().__init__()
        self.weights = weights
        self.limits = untracked(limits)
        self.preprocessor_resources = trackables(task.preprocessor)
        # Python objects that serve to trace the graph and are no part of it.
        self._task = untracked(task)
        self._embedding = untracked(embedding)

    def run(self, task, inputs):
        """What counts of the outputs for a dict of (B, T, ...) tensors."""
        with self.weights.scope():
            outputs = task.model(inputs, training=False)
        return task.select(outputs, inputs)

    def checked(self, inputs, declared):
        """Ids as a client sent them, unless one of the checks fails.

        The values depend on the checks, so no later op can fail first with a less clear message.

        Args:
            inputs: dict of tensors.
            declared: dict of name to `ModelInput`, of the same.
        """
        sizes, checks = {}, []  # sizes: axis -> (the first input that has it, length)
        known = [key for key in declared if key in inputs]  # in the order of the preprocessor
        for key in sorted(known, key=lambda key: len(declared[key].axes)):
            axes = declared[key].axes
            for axis, size in zip(axes, tf.unstack(tf.shape(inputs[key])), strict=True):
                first, wanted = sizes.setdefault(axis, (key, size))
                message = f"`{key}` must have the length of `{first}` along {axis}."
                if axes == declared[first].axes:
                    message = f"`{key}` must have the shape of `{first}`."
                checks.append(tf.debugging.assert_equal(size, wanted, message))
        limits = self.limits()
        for key, value in inputs.items():
            limit = limits.ids.get(key.removesuffix(SECOND))
            if declared[key].places_of is not None:
                _, size = sizes[declared[key].places_of]
                limit = tf.maximum(size, 1)  # padding is 0, in rows of no tokens, too
            if limit is None:
                continue
            inside = (value >= 0) & (value < limit)
            wrong = tf.boolean_mask(value, ~inside)[:1]
            described = [f"`{key}` must lie in [0,", limit, "). Received, the first:", wrong]
            if isinstance(limit, int):
                described = [f"`{key}` must lie in [0, {limit}). Received, the first:", wrong]
            checks.append(tf.debugging.Assert(tf.reduce_all(inside), described))
        for axis, (first, length) in sizes.items():
            if limits.length is not None and axis.removesuffix(SECOND) == "T":
                message = f"`{first}` must have at most {limits.length} columns."
                checks.append(tf.debugging.assert_less_equal(length, limits.length, message))
        with tf.control_dependencies(checks):
            return {key: tf.identity(value) for key, value in inputs.items()}

    def signatures(self):
        """Dict of concrete functions: the task's, `token_ids` for ids, and `embed`."""
        functions = self._functions(self._task())
        if self._embedding() is not None:
            functions["embed"] = self._functions(self._embedding())["serving_default"]
        return functions

    def _functions(self, task):
        """Concrete functions of one task, each traced before the next is defined."""
        # One function for all signatures, so that the graph holds the model once.
        declared = {
            key: tf.TensorSpec([None] * len(entry.axes), entry.dtype, name=key)
            for key, entry in task.inputs.items()
        }
        run = tf.function(
            lambda inputs: self.run(task, inputs), input_signature=[declared], autograph=False
        )

        def answer(inputs, state):
            inputs = with_first(inputs)
            outputs = run(inputs)
            with self.weights.scope():
                return task.answer(outputs, inputs, state)

        functions = {}
        for name, fields in task.signatures().items():

            @tf.function(autograph=False)
            def asked(**texts):
                return answer(*task.prepare(name, *equal_in_number(texts, fields)))  # noqa: B023

            specs = {field: task.fields[field].spec(field) for field in fields}
            functions[name] = asked.get_concrete_function(**specs)
        if task is self._task():

            @tf.function(autograph=False)
            def token_ids(**inputs):
                inputs = with_first(task.complete(self.checked(inputs, task.id_inputs)))
                outputs = run(inputs)
                with self.weights.scope():
                    return task.answer_ids(outputs, inputs)

            ids = {key: declared[key] for key in task.id_inputs}
            functions["token_ids"] = token_ids.get_concrete_function(**ids)
        return functions


def with_first(inputs):
    """Inputs with at least one token, word and choice: an empty batch may have none to look at.

    Masks to be filled may be none.
    """
    padded = {}
    for key, value in inputs.items():
        missing = [tf.maximum(1 - size, 0) for size in tf.unstack(tf.shape(value))[1:]]
        padding = [[0, 0], *([0, count] for count in missing)]
        padded[key] = value if key == "mask_positions" else tf.pad(value, padding)
    return padded


def equal_in_number(texts, fields):
    """The tensors of a request in the order of its fields, checked to be equal in number."""
    first, *others = fields
    checks = [
        tf.debugging.assert_equal(
            tf.shape(texts[first])[0],
            tf.shape(texts[name])[0],
            message=f"`{name}` must have as many texts as `{first}`.",
        )
        for name in others
    ]
    with tf.control_dependencies(checks):
        return [tf.identity(texts[first]), *(texts[name] for name in others)]


def untracked(value):
    """Hides an object from `tf.Module`, which would otherwise take it into the SavedModel."""
    return lambda: value


def trackables(owner):
    """The tables and modules that a Python object owns, at any depth.

    A graph that looks up a table may be saved only by an object that owns the table.
    """
    found, seen, waiting = [], set(), [owner]
    while waiting:
        item = waiting.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, (tf.Module, tf.saved_model.experimental.TrackableResource)):
            found.append(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, (list, tuple)):
            waiting.extend(x for x in item if not isinstance(x, (str, bytes, int)))
        elif hasattr(item, "__dict__") and not isinstance(item, (type, types.ModuleType)):
            waiting.extend(vars(item).values())
    return found
