"""What all objectives share: an encoder in, a trainable model out."""

import keras

from kctx.layers import CheckedInputs, GatherPositions


def encoded_at(encoder, inputs, positions):
    """The encoder's outputs, `sequence_output` at the wanted positions alone.

    Args:
        encoder: its last block does no work on other positions, if it can leave them out.
        inputs: dict of tensors, the encoder's among them.
        positions: None for all; "cls" for no more than the first and `pooled_output`; int (B, P).
    """
    inputs = {name: inputs[name] for name in encoder.input}
    if positions is None:
        return encoder(inputs)
    if getattr(encoder, "takes_positions", False):
        return encoder(inputs, positions=positions)
    encoded = encoder(inputs)
    if isinstance(positions, str):
        return encoded
    return {**encoded, "sequence_output": GatherPositions()(encoded["sequence_output"], positions)}


class Objective(CheckedInputs, keras.Model):
    """A functional model that predicts something from an encoder's outputs.

    A subclass creates its own layers, then calls `super().__init__(encoder, ...)`. It defines
    `extra_inputs()`, `needed_positions(inputs)` and `predict_from(inputs, encoded)`, all plain
    methods, so that `Joint` can train several objectives on one pass through one encoder.

    Attributes:
        encoder: the encoder that is trained.
    """

    def __init__(self, encoder, name=None):
        inputs = {**encoder.input, **self.extra_inputs()}
        encoded = encoded_at(encoder, inputs, self.needed_positions(inputs))
        outputs = self.predict_from(inputs, encoded)
        object.__setattr__(self, "_has_graph", True)
        super().__init__(inputs=inputs, outputs=outputs, name=name)
        self.encoder = encoder

    def __setattr__(self, name, value):
        # What is set before the graph is there is tracked through the graph, so that weights have
        # one order on every backend, the encoder's first. (torch.nn.Module would refuse it too.)
        if "_has_graph" in self.__dict__:
            super().__setattr__(name, value)
        else:
            object.__setattr__(self, name, value)

    def extra_inputs(self):
        """Inputs beside the encoder's: dict of `keras.Input`."""
        return {}

    def needed_positions(self, inputs):
        """Where the encoder's vectors are looked at, see `encoded_at`. Default: everywhere."""
        return None

    def check_inputs(self, inputs):
        """Raises a `ValueError` on what the encoder or the objective cannot take."""
        self.encoder.check_inputs(inputs)

    def predict_from(self, inputs, encoded):
        """Dict of inputs and dict of encoder outputs in, dict of logits out.

        `sequence_output` holds what `needed_positions` asked for, in that order.
        """
        raise NotImplementedError

    def output_losses(self):
        """Output -> loss. Default: cross-entropy, Σ(w·CE)/Σw over the sample weights w."""
        return {
            name: keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="mean_with_sample_weight", name=f"{name}_loss"
            )
            for name in self.output
        }

    def output_metrics(self):
        """Output -> list of metrics, weighted as the loss is. Default: accuracy."""
        return {
            name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")] for name in self.output
        }

    def compile_for(self, optimizer, loss_weights=None, **kwargs):
        """Compiles with the `output_losses` and `output_metrics` of the objective.

        The sample weights of a batch come from the dataset; the total loss is the sum over the
        outputs, as in the papers.

        Args:
            optimizer: Keras optimizer.
            loss_weights: dict of float by output. Default: all 1.
            **kwargs: as `keras.Model.compile`, for instance `jit_compile`.
        """
        self.compile(
            optimizer=optimizer,
            loss=self.output_losses(),
            loss_weights=loss_weights,
            weighted_metrics=self.output_metrics(),
            **kwargs,
        )

    def get_config(self):
        return {
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        encoder = keras.saving.deserialize_keras_object(
            config.pop("encoder"), custom_objects=custom_objects
        )
        return cls(encoder, **config)
