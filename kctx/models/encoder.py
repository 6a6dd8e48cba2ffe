"""The base of every encoder of the lineage."""

import keras
import keras_nlp

from kctx.layers import CheckedInputs, check_ids, check_length
from kctx.models.sizes import HasSizes


class Encoder(CheckedInputs, HasSizes, keras_nlp.models.Backbone):
    """A functional graph from named inputs to a dict of named outputs.

    A subclass creates its layers, its `keras.Input`s, calls `encode(inputs)` and hands both to
    `super().__init__`. `encode` is a plain method, so an objective may build a second graph on
    the same weights. From `keras_nlp.models.Backbone` come preset folders (`save_to_preset`,
    `from_preset`), dtype on load, and LoRA.

    Outputs every encoder gives: `sequence_output` (B, T, D) and `hidden_states`, a list of
    (B, T, D), embeddings first; `pooled_output` (B, D) where the paper has one.
    """

    # Whether `encode` takes `positions`, and so can leave out work on the others.
    takes_positions = False
    # Rows of the position table; None where there is none, and so no longest sequence.
    max_sequence_length = None

    def __init__(self, *, inputs, outputs, dtype=None, name=None, trainable=True):
        # By name, since `Backbone` ignores an argument that it does not know, as of a typing error.
        super().__init__(inputs=inputs, outputs=outputs, dtype=dtype, name=name)
        self.trainable = trainable

    def check_inputs(self, inputs):
        """Raises a `ValueError` on ids and lengths outside the tables of this encoder.

        Args:
            inputs: dict of arrays.
        """
        for name, limit in self.id_limits().items():
            if name in inputs:
                check_ids(name, inputs[name], limit, name.removesuffix("_ids"))
                if self.max_sequence_length is not None:
                    check_length(inputs[name].shape[1], self.max_sequence_length)

    def id_limits(self):
        """Name of each input of ids -> rows of the table that they are looked up in."""
        return {"token_ids": self.vocabulary_size}

    def call(self, inputs, training=None, mask=None, positions=None):
        """Encodes a batch.

        Args:
            inputs: dict of tensors.
            positions: which vectors of the last block are wanted, if not all of them: "cls" for the
                first alone, or int (B, P). The last block then computes no others (but all keys and
                values), which saves most of the work of one block. Only where `takes_positions`.

        Returns:
            dict of outputs; with "cls", `sequence_output` and the last hidden state are (B, 1, D),
            with positions (B, P, D). `pooled_output` is the same in any case.
        """
        if positions is None:
            return super().call(inputs, training=training, mask=mask)
        inputs = {
            name: keras.ops.cast(value, self.input[name].dtype)
            for name, value in self._by_name(inputs).items()
        }
        if not isinstance(positions, str):
            positions = keras.ops.convert_to_tensor(positions)
        return self.encode(inputs, positions)

    def compute_output_spec(self, inputs, training=None, mask=None, positions=None):
        outputs = super().compute_output_spec(inputs, training=training, mask=mask)
        if positions is None:
            return outputs
        batch, _, width = outputs["sequence_output"].shape
        count = 1 if isinstance(positions, str) else positions.shape[1]
        wanted = keras.KerasTensor((batch, count, width), outputs["sequence_output"].dtype)
        hidden_states = [*outputs["hidden_states"][:-1], wanted]
        return {**outputs, "sequence_output": wanted, "hidden_states": hidden_states}

    def encode(self, inputs):
        """Builds the graph on this encoder's weights: dict of tensors in, dict of tensors out."""
        raise NotImplementedError
