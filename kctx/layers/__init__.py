"""Trainable parts; they know only keras."""

from kctx.layers.activations import gelu_erf, gelu_tanh, get_activation, truncated_normal
from kctx.layers.attention import MultiHeadAttention, dot_product_attention
from kctx.layers.checked_inputs import CheckedInputs
from kctx.layers.crf import CRF
from kctx.layers.dense import Dense
from kctx.layers.dropout import Dropout
from kctx.layers.feed_forward import FeedForward
from kctx.layers.gather_positions import GatherPositions, at_positions, first_and_chosen
from kctx.layers.id_check import check_ids, check_length, check_positions, check_range
from kctx.layers.masked_lm_head import MaskedLMHead
from kctx.layers.output_bias import OutputBias
from kctx.layers.pooling import Pooling
from kctx.layers.position_embedding import PositionEmbedding
from kctx.layers.post_norm_block import PostNormBlock
from kctx.layers.segment_embedding import SegmentEmbedding
from kctx.layers.subword_embedding import SubwordEmbedding
from kctx.layers.tag_chains import best_tags, check_allowed, tag_probabilities
from kctx.layers.tag_transitions import tag_transitions
from kctx.layers.token_embedding import TokenEmbedding

__all__ = [
    "CRF",
    "CheckedInputs",
    "Dense",
    "Dropout",
    "FeedForward",
    "GatherPositions",
    "MaskedLMHead",
    "MultiHeadAttention",
    "OutputBias",
    "Pooling",
    "PositionEmbedding",
    "PostNormBlock",
    "SegmentEmbedding",
    "SubwordEmbedding",
    "TokenEmbedding",
    "at_positions",
    "best_tags",
    "check_allowed",
    "check_ids",
    "check_length",
    "check_positions",
    "check_range",
    "dot_product_attention",
    "first_and_chosen",
    "gelu_erf",
    "gelu_tanh",
    "get_activation",
    "tag_probabilities",
    "tag_transitions",
    "truncated_normal",
]
