"""The exported graph: raw text or token ids in, named answers out."""

import types

import tensorflow as tf


class TextGraph(tf.Module):
    """A model, its preprocessor and its answer as one trackable object with signatures.

    It owns every table and variable its signatures read. Batch and length are free, and a batch of
    zero gives outputs of zero rows.

    Args:
        model: keras.Model, inputs a dict of (B, T) tensors.
        preprocessor: callable, texts (and second texts) to a dict of (B, T) tensors.
        answer: see `kctx.export.answers`.
        weights: see `kctx.export.stored_weights`.
    """

    def __init__(self, model, preprocessor, answer, weights):
        super().__init__()
        self.weights = weights
        self.preprocessor_resources = trackables(preprocessor)
        # Python objects that serve to trace the graph and are no part of it.
        self._model = untracked(model)
        self._preprocessor = untracked(preprocessor)
        self._answer = untracked(answer)

    def answer_ids(self, inputs):
        """Dict of (B, T) tensors to the dict of answers."""
        # An empty batch may have length 0, where there is no first token to look at.
        missing = tf.maximum(1 - tf.shape(inputs["token_ids"])[1], 0)
        inputs = {key: tf.pad(value, [[0, 0], [0, missing]]) for key, value in inputs.items()}
        answer = self._answer()
        inputs = answer.prepare(inputs)
        with self.weights.scope():
            outputs = self._model()(inputs, training=False)
        return answer(outputs, inputs)

    def signatures(self):
        """Dict of concrete functions: `serving_default`, `pair` and `token_ids`."""
        texts = tf.TensorSpec([None], tf.string, name="text")
        second_texts = tf.TensorSpec([None], tf.string, name="text_pair")
        prepared = self._preprocessor()(tf.constant(["a"]))
        ids = {key: tf.TensorSpec([None, None], prepared[key].dtype, name=key) for key in prepared}
        # One function for all signatures, so that the graph holds the model once.
        answer_ids = tf.function(self.answer_ids, input_signature=[ids], autograph=False)

        @tf.function(input_signature=[texts], autograph=False)
        def serving_default(text):
            return answer_ids(self._preprocessor()(text))

        @tf.function(input_signature=[texts, second_texts], autograph=False)
        def pair(text, text_pair):
            tf.debugging.assert_equal(
                tf.size(text),
                tf.size(text_pair),
                message="`text_pair` must have as many texts as `text`.",
            )
            return answer_ids(self._preprocessor()(text, text_pair))

        @tf.function(autograph=False)
        def token_ids(**inputs):
            shape = tf.shape(inputs["token_ids"])
            for key, value in inputs.items():
                tf.debugging.assert_equal(
                    tf.shape(value),
                    shape,
                    message=f"`{key}` must have the shape of `token_ids`.",
                )
            return answer_ids(inputs)

        return {
            "serving_default": serving_default.get_concrete_function(),
            "pair": pair.get_concrete_function(),
            "token_ids": token_ids.get_concrete_function(**ids),
        }


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
