"""One part of a request."""

import tensorflow as tf


class Field:
    """One part of a request.

    Args:
        argument: str, its name in `TextModel.predict`, where it is a list of many.
        meaning: str, a few words for those who write to a server.
        axes: tuple of str, of its tensor; a number is a fixed length. Default ("B",).
        dtype: str. Default "string".
        required: bool. Default True.
    """

    def __init__(self, argument, meaning, axes=("B",), dtype="string", required=True):
        self.argument = argument
        self.meaning = meaning
        self.axes = axes
        self.dtype = dtype
        self.required = required

    def spec(self, name):
        """Its `tf.TensorSpec` under a name."""
        shape = [int(axis) if axis.isdecimal() else None for axis in self.axes]
        return tf.TensorSpec(shape, self.dtype, name=name)
