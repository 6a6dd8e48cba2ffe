"""Encoders of the lineage, one file each."""

from kctx.models.bert import BERT
from kctx.models.encoder import Encoder
from kctx.models.ragged import RaggedEncoder, packed_model

__all__ = ["BERT", "Encoder", "RaggedEncoder", "packed_model"]
