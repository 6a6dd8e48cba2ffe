"""Task heads: encoder outputs in, logits out; a head knows no encoder."""

from kctx.heads.attach import attach, encoder_of
from kctx.heads.sequence_head import Classifier, Regressor

__all__ = ["Classifier", "Regressor", "attach", "encoder_of"]
