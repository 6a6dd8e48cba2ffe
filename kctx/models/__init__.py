"""Encoders of the lineage, one file each."""

from kctx.models.bert import BERT
from kctx.models.encoder import Encoder
from kctx.models.fasttext import FastText
from kctx.models.fasttext_classifier import FastTextClassifier
from kctx.models.glove import PARTS as GLOVE_PARTS
from kctx.models.glove import GloVe
from kctx.models.nnlm import NNLM
from kctx.models.ragged import RaggedEncoder, packed_model
from kctx.models.static_encoder import StaticEncoder
from kctx.models.subword_encoder import SubwordEncoder
from kctx.models.word2vec import Word2Vec

__all__ = [
    "BERT",
    "GLOVE_PARTS",
    "NNLM",
    "Encoder",
    "FastText",
    "FastTextClassifier",
    "GloVe",
    "RaggedEncoder",
    "StaticEncoder",
    "SubwordEncoder",
    "Word2Vec",
    "packed_model",
]
