"""n-gram language models: counting, smoothing, ARPA files, scoring and sampling."""

from kctx.ngrams.counting import count_ngrams, count_words
from kctx.ngrams.counts import NGramCounts
from kctx.ngrams.model import NGramLM
from kctx.ngrams.options import Options
from kctx.ngrams.perplexity import Perplexity


def read_arpa(path, progress=True, positive="error"):
    """`NGramLM.read_arpa`."""
    return NGramLM.read_arpa(path, progress, positive)


def write_arpa(model, path):
    """`model.write_arpa(path)`."""
    model.write_arpa(path)


__all__ = [
    "NGramCounts",
    "NGramLM",
    "Options",
    "Perplexity",
    "count_ngrams",
    "count_words",
    "read_arpa",
    "write_arpa",
]
