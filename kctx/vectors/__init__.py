"""Word vectors apart from what trained them: tables, hashed subwords, quantisation."""

from kctx.vectors.subwords import Subwords, hash_tokens, word_ngram_ids

__all__ = ["Subwords", "hash_tokens", "word_ngram_ids"]
