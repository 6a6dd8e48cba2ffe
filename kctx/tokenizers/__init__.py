"""Text to ids and back, with offsets; trainers of vocabularies."""

from kctx.tokenizers.training import train_wordpiece
from kctx.tokenizers.word_tokenizer import WordTokenizer
from kctx.tokenizers.wordpiece import WordPieceTokenizer

__all__ = ["WordPieceTokenizer", "WordTokenizer", "train_wordpiece"]
