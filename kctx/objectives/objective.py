"""What all objectives share: an encoder in, a trainable model out."""

import keras

from kctx.layers import CheckedInputs, check_positions


class Objective(CheckedInputs, keras.Model):
    """A functional model that predicts something from an encoder's outputs.

    A subclass creates its own layers, then calls `super().__init__(encoder, ...)`. It defines
    `extra_inputs()` and `predict_from(inputs, encoded)`, both plain methods, so that `Joint` can
    train several objectives on one pass through one encoder.

    Attributes:
        encoder: the encoder that is trained.
    """

    def __init__(self, encoder, name=None):
        inputs = {**encoder.input, **self.extra_inputs()}
        encoded = encoder({name: inputs[name] for name in encoder.input})
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

    def check_inputs(self, inputs):
        """Raises a `ValueError` on what the encoder cannot take, or positions outside of it."""
        self.encoder.check_inputs(inputs)
        if "mask_positions" in inputs:
            check_positions(inputs["mask_positions"], inputs["token_ids"].shape[1])

    def predict_from(self, inputs, encoded):
        """Dict of inputs and dict of encoder outputs in, dict of logits out."""
        raise NotImplementedError

    def compile_for(self, optimizer, loss_weights=None, **kwargs):
        """Compiles with cross-entropy and accuracy for each output.

        Each loss is Σ(w·CE)/Σw over the sample weights w of the batch, which come from the
        dataset; the total is their sum, as in the papers.

        Args:
            optimizer: Keras optimizer.
            loss_weights: dict of float by output. Default: all 1.
            **kwargs: as `keras.Model.compile`, for instance `jit_compile`.
        """
        names = list(self.output)
        self.compile(
            optimizer=optimizer,
            loss={
                name: keras.losses.SparseCategoricalCrossentropy(
                    from_logits=True, reduction="mean_with_sample_weight", name=f"{name}_loss"
                )
                for name in names
            },
            loss_weights=loss_weights,
            weighted_metrics={
                name: [keras.metrics.SparseCategoricalAccuracy(name="accuracy")] for name in names
            },
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
