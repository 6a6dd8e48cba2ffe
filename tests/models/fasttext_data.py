"""Small texts for the tests of fastText's models."""

import numpy as np

from kctx.data.id_corpus import IdCorpus
from kctx.data.labelled_lines import LabelledLines, count_labelled_lines
from kctx.data.labelled_stream import LabelledStream
from kctx.data.window_stream import WindowStream
from kctx.data.window_targets import HierarchicalSoftmax, NegativeSampling
from kctx.data.word_features import WordFeatures
from kctx.data.word_vocabulary import WordVocabulary
from kctx.vectors import Subwords
from kctx.vectors.line_features import LineFeatures
from kctx.vectors.subword_table import SubwordRows

TOPICS = ("cat kitten cats purring fur".split(), "car cars wheel driving brakes".split())


def toy_lines(number=160, seed=0):
    """Sentences of two topics, with words that both share."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(number):
        words = [*TOPICS[rng.integers(2)], "the"]
        lines.append(" ".join(rng.choice(words, rng.integers(3, 9))))
    return lines


LINES = toy_lines()
VOCABULARY = WordVocabulary.train(lines=LINES, min_count=1, line_end="</s>")
LINE_END = VOCABULARY.words.index("</s>")
SUBWORDS = Subwords(3, 5, 40)


def words_stream(objective, lines=LINES, vocabulary=VOCABULARY, subwords=SUBWORDS, **options):
    counts = vocabulary.counts
    if objective == "negative_sampling":
        targets = NegativeSampling(counts, shared=4, exponent=0.5)
    else:
        targets = HierarchicalSoftmax(counts, positive_bit=1)
    rows = SubwordRows(vocabulary.words, subwords)
    small = {"sample": 0, "window": 2, "block_words": 4, "step_blocks": 8, "steps": 2, "epochs": 1}
    return WindowStream(
        IdCorpus.build(vocabulary, lines=lines),
        counts,
        targets,
        WordFeatures(*rows.of_words(vocabulary.words, np.arange(len(vocabulary)))),
        line_end_id=vocabulary.words.index("</s>"),
        **{**small, **options},
    )


def labelled_lines(number=120, seed=0):
    """(labels, words) of lines of three labels; every tenth line has two."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(number):
        label = int(rng.choice(3, p=[0.5, 0.3, 0.2]))
        words = [f"w{label}{x}" for x in rng.integers(0, 6, rng.integers(1, 7))]
        labels = {label, int(rng.integers(3))} if i % 10 == 0 else {label}
        lines.append(([f"__label__{x}" for x in labels], [*words, f"x{rng.integers(20)}"]))
    return lines


LABELLED = labelled_lines()
LABELLED_VOCABULARY = count_labelled_lines(LABELLED)
LINE_SUBWORDS, WORD_NGRAMS = Subwords(2, 3, 30), 2


def lines_stream(objective, lines=LABELLED, **options):
    words, _, labels, label_counts, _ = LABELLED_VOCABULARY
    features = LineFeatures(words, LINE_SUBWORDS, WORD_NGRAMS)
    small = {"step_lines": 4, "steps": 3, "epochs": 2, "learning_rate": 0.5}
    return LabelledStream(
        LabelledLines(lines, labels, features), label_counts, objective, **{**small, **options}
    )
