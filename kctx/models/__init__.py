"""Encoders of the lineage, one file each."""

from kctx.models.bert import BERT
from kctx.models.encoder import Encoder

__all__ = ["BERT", "Encoder"]
