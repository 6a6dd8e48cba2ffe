"""Small models with lively weights, for every task, and what asks them."""

import keras
import numpy as np
import pytest

from kctx import heads, layers, models, presets
from kctx.preprocessors import BERTPreprocessor, SubwordsPreprocessor, WordsPreprocessor
from kctx.tokenizers import WordPieceTokenizer, WordTokenizer
from kctx.vectors import Subwords

WORDS = "the a film was good bad in paris anna saw , . ? who ##s 中 文 e".split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
LENGTH = 14


def lively(model, seed=0):
    """Weights far from their start values, the same under every backend."""
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        shift = 0.5 * generator.normal(size=weight.shape).astype("float32")
        weight.assign(keras.ops.add(weight, shift))
    return model


def bert_parts():
    encoder = models.BERT(len(VOCABULARY), 2, 8, 2, 16, max_sequence_length=LENGTH)
    return encoder, BERTPreprocessor(WordPieceTokenizer(VOCABULARY), sequence_length=LENGTH)


def static_parts():
    encoder = models.StaticEncoder(2 + len(WORDS), 8)
    return encoder, WordsPreprocessor(WordTokenizer(WORDS), sequence_length=LENGTH)


def subword_parts():
    encoder = models.SubwordEncoder(1 + len(WORDS) + 50, 8)
    preprocessor = SubwordsPreprocessor(WordTokenizer(WORDS), Subwords(2, 3, 50))
    return encoder, preprocessor.with_options(sequence_length=LENGTH)


MAKERS = {"bert": bert_parts, "static": static_parts, "subwords": subword_parts}


def first_everywhere(*values):
    """Parameters of a test, of which all but the first are tried under one backend only."""
    first, *others = values
    return [first, *(pytest.param(value, marks=pytest.mark.once) for value in others)]


PARTS = first_everywhere(*MAKERS)


def make(task, parts="bert", head=None, labels=None, **options):
    """A `TextModel`."""
    encoder, preprocessor = MAKERS[parts]()
    if task == "multiple_choice":
        model = heads.attach_choices(encoder, head or heads.ChoiceScorer())
    elif task == "similarity":
        model = heads.attach_pair(encoder, head or heads.BiEncoder())
    else:
        known = {
            "classification": lambda: heads.Classifier(3),
            "tagging": lambda: heads.Tagger(len(TAGS)),
            "span": heads.Span,
        }
        model = heads.attach(encoder, head or known[task]())
    labels = labels or {"tagging": TAGS, "classification": ["x", "y", "z"]}.get(task)
    return presets.TextModel(lively(model), preprocessor, task, labels, options)


def crf_tagger():
    return heads.CRFTagger(len(TAGS), allowed=layers.tag_transitions(TAGS, "BIO"))


def assert_alike(found, expected, tolerance=1e-5):
    """Two answers, nested as they may be; numbers need to be close only."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list):
        assert len(found) == len(expected), (found, expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other, tolerance)
    elif isinstance(expected, float):
        assert abs(found - expected) <= tolerance, (found, expected)
    else:
        assert found == expected
