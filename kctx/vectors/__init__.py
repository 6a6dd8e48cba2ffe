"""Word vectors apart from what trained them: tables, hashed subwords, quantisation."""

from kctx.vectors.fasttext_predictor import FastTextPredictor
from kctx.vectors.line_features import LineFeatures
from kctx.vectors.product_quantizer import ProductQuantizer, QuantizedTable
from kctx.vectors.subword_table import SubwordRows, SubwordTable
from kctx.vectors.subwords import Subwords, hash_tokens, word_ngram_ids
from kctx.vectors.tables import DenseTable, Int8Table
from kctx.vectors.vectors import Vectors

__all__ = [
    "DenseTable",
    "FastTextPredictor",
    "Int8Table",
    "LineFeatures",
    "ProductQuantizer",
    "QuantizedTable",
    "SubwordRows",
    "SubwordTable",
    "Subwords",
    "Vectors",
    "hash_tokens",
    "word_ngram_ids",
]
