"""Next sentence prediction."""

import keras

from kctx.layers import truncated_normal
from kctx.objectives.objective import Objective


@keras.saving.register_keras_serializable("kctx")
class NextSentence(Objective):
    """Tells whether the second segment followed the first (Devlin et al., 2018, section 3.1).

    Args:
        encoder: an encoder with a `pooled_output`.

    Outputs:
        {"next_sentence": float32 logits (B, 2)}; class 0 = it did follow, 1 = a random segment,
        as in the reference implementation.
    """

    def __init__(self, encoder, name="next_sentence", **kwargs):
        if "pooled_output" not in encoder.output:
            raise ValueError(
                "`encoder` must have a `pooled_output` to predict the next sentence. "
                f"Received: {encoder.name} with outputs {sorted(encoder.output)}"
            )
        self.classifier = keras.layers.Dense(
            2,
            kernel_initializer=truncated_normal(),
            dtype="float32",
            name="next_sentence_classifier",
        )
        super().__init__(encoder, name=name, **kwargs)

    def needed_positions(self, inputs):
        return "cls"

    def predict_from(self, inputs, encoded):
        return {"next_sentence": self.classifier(encoded["pooled_output"])}
