"""kctx: the lineage of word representations in Keras 3."""

__version__ = "0.1.0"
