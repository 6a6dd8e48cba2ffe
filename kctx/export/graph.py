"""The exported graph: raw text or token ids in, named answers out."""

import types

import tensorflow as tf

from kctx.presets.task import InputLimits

UNCHECKED = InputLimits({}, None)


class TextGraph(tf.Module):
    """A model, its preprocessor and its answer as one trackable object with signatures.

    It owns every table and variable its signatures read. Batch and length are free, and a batch of
    zero gives outputs of zero rows.

    Args:
        model: keras.Model, inputs a dict of tensors (B, T) or (B, T, ...).
        preprocessor: see `kctx.preprocessors.ModelInput`: texts (and second texts) to a dict of
            such tensors.
        answer: see `kctx.export.answers`.
        weights: see `kctx.export.stored_weights`.
        limits: `kctx.presets.task.InputLimits`, which clients' ids and T are checked against.
            Default: unchecked.
    """

    def __init__(
        self,
        model,
        preprocessor,
        answer,
        weights,
        limits=UNCHECKED,
    ):
        super().__init__()
        self.weights = weights
        self.limits = untracked(limits)
        self.preprocessor_resources = trackables(preprocessor)
        # Python objects that serve to trace the graph and are no part of it.
        self._model = untracked(model)
        self._preprocessor = untracked(preprocessor)
        self._answer = untracked(answer)

    def answer_ids(self, inputs):
        """Dict of (B, T, ...) tensors to the dict of answers."""
        # An empty batch may have length 0, where there is no first token to look at.
        missing = tf.maximum(1 - tf.shape(inputs["padding_mask"])[1], 0)
        inputs = {
            key: tf.pad(value, [[0, 0], [0, missing], *[[0, 0]] * (value.shape.rank - 2)])
            for key, value in inputs.items()
        }
        answer = self._answer()
        inputs = answer.prepare(inputs)
        with self.weights.scope():
            outputs = self._model()(inputs, training=False)
        return answer(outputs, inputs)

    def checked(self, inputs):
        """Ids as a client sent them, unless one of the checks fails.

        The values depend on the checks, so no later op can fail first with a less clear message.
        """
        flat = [key for key, entry in self._preprocessor().inputs.items() if len(entry.axes) == 2]
        first = flat[0]
        texts, length = tf.unstack(tf.shape(inputs[first]))
        checks = []
        for key, value in inputs.items():
            if key != first:
                wanted = f"`{key}` must have the shape of `{first}`."
                if key not in flat:
                    wanted = f"`{key}` must have the rows and columns of `{first}`."
                checks.append(
                    tf.debugging.assert_equal(tf.shape(value)[:2], [texts, length], wanted)
                )
        limits = self.limits()
        for key, size in limits.ids.items():
            if key not in inputs:
                continue
            inside = (inputs[key] >= 0) & (inputs[key] < size)
            message = f"`{key}` must lie in [0, {size}). Received, the first:"
            wrong = tf.boolean_mask(inputs[key], ~inside)[:1]
            checks.append(tf.debugging.Assert(tf.reduce_all(inside), [message, wrong]))
        if limits.length is not None:
            message = f"`{first}` must have at most {limits.length} columns."
            checks.append(tf.debugging.assert_less_equal(length, limits.length, message))
        with tf.control_dependencies(checks):
            return {key: tf.identity(value) for key, value in inputs.items()}

    def signatures(self):
        """Dict of concrete functions: `serving_default`, `token_ids`, and `pair` for pairs."""
        texts = tf.TensorSpec([None], tf.string, name="text")
        second_texts = tf.TensorSpec([None], tf.string, name="text_pair")
        ids = {
            key: tf.TensorSpec([None] * len(entry.axes), entry.dtype, name=key)
            for key, entry in self._preprocessor().inputs.items()
        }
        # One function for all signatures, so that the graph holds the model once.
        answer_ids = tf.function(self.answer_ids, input_signature=[ids], autograph=False)

        @tf.function(input_signature=[texts], autograph=False)
        def serving_default(text):
            return answer_ids(self._preprocessor()(text))

        @tf.function(input_signature=[texts, second_texts], autograph=False)
        def pair(text, text_pair):
            same = tf.debugging.assert_equal(
                tf.size(text),
                tf.size(text_pair),
                message="`text_pair` must have as many texts as `text`.",
            )
            with tf.control_dependencies([same]):
                text = tf.identity(text)
            return answer_ids(self._preprocessor()(text, text_pair))

        @tf.function(autograph=False)
        def token_ids(**inputs):
            return answer_ids(self.checked(inputs))

        functions = {"serving_default": serving_default.get_concrete_function()}
        if self._preprocessor().takes_pairs:
            functions["pair"] = pair.get_concrete_function()
        return {**functions, "token_ids": token_ids.get_concrete_function(**ids)}


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
