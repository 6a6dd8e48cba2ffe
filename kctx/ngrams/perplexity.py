"""What a text costs under a model."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Perplexity:
    """Perplexities of a text, as KenLM's `query` and SRILM's `ngram -ppl` define them.

    Those of models with different vocabularies cannot be compared.

    Attributes:
        sentences: int.
        words: int, without `</s>`.
        oov: int, words that are not in the vocabulary.
        impossible: int, words in the vocabulary, or `</s>`, with probability 0.
        log10_total: float, sum of log10 p of all tokens.
        log10_known: float, the same without unknown words.
        log10_possible: float, the same without impossible ones either.
    """

    sentences: int
    words: int
    oov: int
    impossible: int
    log10_total: float
    log10_known: float
    log10_possible: float

    @property
    def tokens(self):
        """Words and one `</s>` a sentence."""
        return self.words + self.sentences

    @property
    def including_oov(self):
        """KenLM's perplexity including OOVs."""
        return _perplexity(self.log10_total, self.tokens)

    @property
    def excluding_oov(self):
        """KenLM's perplexity excluding OOVs, out of the sum and out of the number of tokens."""
        return _perplexity(self.log10_known, self.tokens - self.oov)

    @property
    def srilm_ppl(self):
        """SRILM's ppl: unknown and impossible words are left out."""
        return _perplexity(self.log10_possible, self.tokens - self.oov - self.impossible)

    @property
    def srilm_ppl1(self):
        """SRILM's ppl1: as ppl, but the ends of sentences are not counted as tokens."""
        return _perplexity(self.log10_possible, self.words - self.oov - self.impossible)

    def __str__(self):
        return (
            f"perplexity {self.including_oov:.4f} including OOV, {self.excluding_oov:.4f} "
            f"excluding OOV; {self.tokens:,} tokens, {self.oov:,} OOV, {self.sentences:,} sentences"
        )


def _perplexity(log10, tokens):
    if tokens <= 0:
        return float("nan")
    try:
        return 10.0 ** (-log10 / tokens)
    except OverflowError:
        return float("inf")
