"""Task heads: encoder outputs in, logits out; a head knows no encoder."""

from kctx.heads.attach import attach, encoder_of, head_of
from kctx.heads.bi_encoder import BiEncoder, attach_pair
from kctx.heads.choice_scorer import ChoiceScorer, attach_choices
from kctx.heads.mention_ranker import MentionRanker
from kctx.heads.role_tagger import RoleTagger
from kctx.heads.sequence_head import Classifier, Regressor
from kctx.heads.span import Span
from kctx.heads.tagger import CRFTagger, Tagger

__all__ = [
    "BiEncoder",
    "CRFTagger",
    "ChoiceScorer",
    "Classifier",
    "MentionRanker",
    "Regressor",
    "RoleTagger",
    "Span",
    "Tagger",
    "attach",
    "attach_choices",
    "attach_pair",
    "encoder_of",
    "head_of",
]
