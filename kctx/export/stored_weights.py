"""The weights of an exported graph, as they lie on the disk and as the graph reads them."""

import keras
import tensorflow as tf


class Float32Copy(tf.saved_model.experimental.TrackableResource):
    """A float32 variable that is no part of the checkpoint but filled from a bfloat16 one.

    It is filled once, when a server has restored the checkpoint: on disk only the bfloat16 values
    lie, and a request pays nothing for the cast.

    Args:
        stored: bfloat16 tf.Variable.
        name: str, unique among the copies.
    """

    def __init__(self, stored, name):
        super().__init__()
        self.stored = stored
        self.shared_name = name

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(
            dtype=tf.float32, shape=self.stored.shape, shared_name=self.shared_name
        )

    def _initialize(self):
        tf.raw_ops.AssignVariableOp(
            resource=self.resource_handle, value=tf.cast(self.stored, tf.float32)
        )

    def read(self):
        value = tf.raw_ops.ReadVariableOp(resource=self.resource_handle, dtype=tf.float32)
        value.set_shape(self.stored.shape)
        return value


class StoredWeights(tf.Module):
    """Owns the weights of a Keras model for a SavedModel.

    Args:
        model: keras.Model under the TensorFlow backend.
        dtype: None (as they are) or "bfloat16". Float32 weights of two dimensions and more, which
            are all but a thousandth of a Transformer, are then stored in bfloat16; biases and norms
            stay float32. The arithmetic remains the model's own.
    """

    def __init__(self, model, dtype=None):
        super().__init__()
        # Owned by this object and so part of the SavedModel: the variables of the checkpoint, and
        # the copies, which are filled from some of them. The replaced weights are no part of it.
        self.checkpointed, self.copies = [], []
        replaced = []
        for index, weight in enumerate(model.weights):
            variable = weight.value
            if dtype == "bfloat16" and variable.dtype == tf.float32 and len(variable.shape) >= 2:
                stored = tf.Variable(tf.cast(variable, tf.bfloat16), name=f"weight_{index}")
                copy = Float32Copy(stored, f"kctx_weight_{index}")
                copy._initialize()
                self.copies.append(copy)
                replaced.append(weight)
            else:
                stored = variable
            self.checkpointed.append(stored)
        self._replaced = lambda: replaced

    def scope(self):
        """Within it, the model's layers read the stored weights."""
        values = [copy.read() for copy in self.copies]
        return keras.StatelessScope(state_mapping=list(zip(self._replaced(), values, strict=True)))
