"""What is predicted and how it is scored: an encoder in, a trainable model out."""

from kctx.objectives.joint import Joint
from kctx.objectives.masked_lm import MaskedLM
from kctx.objectives.next_sentence import NextSentence
from kctx.objectives.objective import Objective

__all__ = ["Joint", "MaskedLM", "NextSentence", "Objective"]
