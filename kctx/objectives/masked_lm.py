"""Masked language modelling."""

import keras

from kctx.layers import MaskedLMHead, OutputBias, check_positions
from kctx.objectives.objective import Objective


@keras.saving.register_keras_serializable("kctx")
class MaskedLM(Objective):
    """Predicts the tokens that were hidden from the encoder (Devlin et al., 2018, section 3.1).

    Only the masked positions are computed in the last block and reach the vocabulary projection,
    whose kernel is the encoder's token embedding.

    Args:
        encoder: an encoder with a `token_embedding`, `activation` and `layer_norm_epsilon`.

    Inputs:
        the encoder's, and `mask_positions`: int32 (B, M), positions to predict; unused places
        hold 0 and have sample weight 0.

    Outputs:
        {"masked_lm": float32 logits (B, M, V)}
    """

    def __init__(self, encoder, name="masked_lm", **kwargs):
        self.token_embedding = encoder.token_embedding
        self.head = MaskedLMHead(
            activation=encoder.activation,
            layer_norm_epsilon=encoder.layer_norm_epsilon,
            dtype=encoder.dtype_policy,
            name="masked_lm_head",
        )
        self.output_bias = OutputBias(name="masked_lm_bias")
        super().__init__(encoder, name=name, **kwargs)

    def extra_inputs(self):
        return {"mask_positions": keras.Input((None,), dtype="int32", name="mask_positions")}

    def needed_positions(self, inputs):
        return inputs["mask_positions"]

    def check_inputs(self, inputs):
        super().check_inputs(inputs)
        check_positions(inputs["mask_positions"], inputs["token_ids"].shape[1])

    def predict_from(self, inputs, encoded):
        masked = encoded["sequence_output"]  # (B, M, D)
        logits = self.token_embedding(self.head(masked), reverse=True)  # (B, M, V)
        return {"masked_lm": self.output_bias(logits)}
