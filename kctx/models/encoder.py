"""The base of every encoder of the lineage."""

import keras_nlp


class Encoder(keras_nlp.models.Backbone):
    """A functional graph from named inputs to a dict of named outputs.

    A subclass creates its layers, its `keras.Input`s, calls `encode(inputs)` and hands both to
    `super().__init__`. `encode` is a plain method, so an objective may build a second graph on
    the same weights. From `keras_nlp.models.Backbone` come preset folders (`save_to_preset`,
    `from_preset`), dtype on load, and LoRA.

    Outputs every encoder gives: `sequence_output` (B, T, D) and `hidden_states`, a list of
    (B, T, D), embeddings first; `pooled_output` (B, D) where the paper has one.
    """

    # Name of a size -> constructor arguments: the paper's own table.
    SIZES = {}

    @classmethod
    def from_size(cls, size, **overrides):
        """Builds a size of the paper, randomly initialised.

        Args:
            size: str, a key of `SIZES`.
            **overrides: constructor arguments that replace those of the size.

        Raises:
            ValueError: no such size; the message lists them.
        """
        if size not in cls.SIZES:
            raise ValueError(f"`size` must be one of {', '.join(cls.SIZES)}. Received: {size!r}")
        return cls(**{**cls.SIZES[size], **overrides})

    def encode(self, inputs):
        """Builds the graph on this encoder's weights: dict of tensors in, dict of tensors out."""
        raise NotImplementedError
