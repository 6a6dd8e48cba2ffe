"""Encoders of the lineage, one file each."""

from kctx.models.bert import BERT
from kctx.models.encoder import Encoder
from kctx.models.ragged import RaggedEncoder, packed_model
from kctx.models.static_encoder import StaticEncoder
from kctx.models.subword_encoder import SubwordEncoder

__all__ = [
    "BERT",
    "Encoder",
    "RaggedEncoder",
    "StaticEncoder",
    "SubwordEncoder",
    "packed_model",
]
