"""A tiny classifier of films, texts for it, and what it says of them."""

import numpy as np

LABELS = ["good", "schlecht", "中"]
VOCABULARY = [
    *["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
    *["the", "a", "film", "was", "fine", "bad", "##ly", "##s", "made", ".", ",", "!", "中", "文"],
    *["e", "##e", "n", "##n", "x", "##x"],
]
SEQUENCE_LENGTH = 12
TEXTS = [
    "the film was fine .",
    "",
    "a",
    "The FILM was badly made, the films badly!",
    "中文 film 中",
    "the film was fine . " * 40,
    "emoji \U0001f600\U0001f468‍\U0001f469 é é",
    b"broken \xff\xfe bytes \xe4\xb8",
    "[MASK] [SEP] in a text\r\nx\ty\x00z​.",
]


def make_preprocessor():
    from kctx.preprocessors import BERTPreprocessor
    from kctx.tokenizers import WordPieceTokenizer

    return BERTPreprocessor(WordPieceTokenizer(VOCABULARY), sequence_length=SEQUENCE_LENGTH)


def make_encoder(more_rows=0):
    """Its token table may have more rows than there are tokens."""
    from kctx.models import BERT

    return BERT(len(VOCABULARY) + more_rows, 2, 32, 2, 64, max_sequence_length=SEQUENCE_LENGTH)


def with_lively_weights(model):
    """Weights far from their small start values, the same under every backend."""
    generator = np.random.default_rng(7)
    model.set_weights(
        [
            generator.normal(
                float(weight.name == "gamma"), 0.5 if len(weight.shape) > 1 else 0.1, weight.shape
            )
            for weight in model.weights
        ]
    )
    return model


def predict(model, preprocessor, texts, second_texts=None):
    """What the Keras model says of texts under the backend of this run."""
    import tensorflow as tf

    arguments = [tf.constant(x) for x in (texts, second_texts) if x is not None]
    inputs = {key: value.numpy() for key, value in preprocessor(*arguments).items()}
    return model.predict(inputs, verbose=0)


def softmax(logits):
    exponents = np.exp(logits - logits.max(-1, keepdims=True))
    return exponents / exponents.sum(-1, keepdims=True)
