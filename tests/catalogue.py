"""Every public layer, model, objective and head, once, with a tiny input.

`tests/test_catalogue.py` runs every check of `tests/checks.py` over every entry, so one entry here
buys a new class all of them; a public class without an entry fails the suite.

An entry is a function that builds a functional model with named inputs around the class. Inputs are
made by name from a batch description, see `batch`.
"""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

from kctx import heads, layers, models, objectives

VOCABULARY_SIZE, LENGTH, WIDTH, HEADS, INNER, SEGMENTS, SUBWORDS = 30, 6, 8, 2, 16, 2, 5
CONTEXT, SPANS, CHOICES = 3, 3, 2


@dataclasses.dataclass(frozen=True)
class Entry:
    """One class.

    Attributes:
        covers: the class.
        build: makes the model, under the dtype policy of the moment.
        name: what to call it; default the class's name.
        without_gradient: parts of weight paths that rightly get no gradient, and why is said
            where the entry is.
        float32_outputs: whether outputs stay in float32 under mixed precision, as logits must.
    """

    covers: type
    build: Callable
    name: str = ""
    without_gradient: tuple = ()
    float32_outputs: bool = False

    @property
    def title(self):
        return self.name or self.covers.__name__


def batch(names, lengths=(6, 4, 1), length=LENGTH, seed=0):
    """Named inputs for rows with so many real tokens, padded to `length`.

    Real content depends on the row's place and seed only, so the same row can be made in another
    batch or with more padding.

    Args:
        names: list of str, or the dict of a model's inputs. Those with the suffix "_b" are made
            from another seed; `choice_mask` makes the encoder's inputs (B, N, T).
    """
    if "choice_mask" in names:
        several = [name for name in names if name != "choice_mask"]
        choices = [batch(several, lengths, length, seed + i) for i in range(CHOICES)]
        made = {name: np.stack([x[name] for x in choices], axis=1) for name in several}
        real = np.arange(CHOICES) < np.array(lengths, int).reshape(-1, 1)  # (B, N)
        return {**made, "choice_mask": real}
    second = [name.removesuffix("_b") for name in names if name.endswith("_b")]
    if second:
        one = batch([name for name in names if not name.endswith("_b")], lengths, length, seed)
        other = batch(second, lengths, length, seed + 1)
        return {**one, **{f"{name}_b": value for name, value in other.items()}}
    size = len(lengths)

    def per_row(shape, make):
        rows = [make(np.random.default_rng([seed, row])) for row in range(size)]
        return np.stack(rows) if rows else np.zeros((0, *shape))

    def floats(width):  # (B, T, width)
        shape = (length, width)
        return per_row(
            shape, lambda rng: rng.normal(size=(32, width))[:length].astype("float32")
        ).astype("float32")

    def ids(limit):  # (B, T)
        return per_row((length,), lambda rng: rng.integers(1, limit, 32)[:length]).astype("int32")

    def subwords():  # (B, T, S), tokens of 0 to S features
        def row(rng):
            count = rng.integers(0, SUBWORDS + 1, 32)[:, None]
            made = rng.integers(1, VOCABULARY_SIZE, (32, SUBWORDS))
            return np.where(np.arange(SUBWORDS) < count, made, 0)[:length]

        return per_row((length, SUBWORDS), row)

    mask = np.arange(length)[None] < np.array(lengths, int).reshape(-1, 1)  # (B, T)
    made = {
        "token_ids": np.where(mask, ids(VOCABULARY_SIZE), 0).astype("int32"),
        "subword_ids": np.where(mask[..., None], subwords(), 0).astype("int32"),
        "segment_ids": ids(SEGMENTS + 1) - 1,
        "padding_mask": mask,
        "attention_mask": mask[:, None],
        "context_ids": per_row(
            (CONTEXT,), lambda rng: rng.integers(1, VOCABULARY_SIZE, CONTEXT)
        ).astype("int32"),
        "mask_positions": np.array([(max(x - 1, 0), 0) for x in lengths], "int32").reshape(-1, 2),
        # Each token is a word, and the second one is the predicate.
        "word_positions": np.where(mask, np.arange(length), 0).astype("int32"),
        "word_mask": mask,
        "predicate_indicator": np.where(mask, np.arange(length) == 1, 0).astype("int32"),
        "answer_mask": mask & (np.arange(length) > 1),
        **spans(lengths),
        "x": floats(WIDTH),
        "context": floats(WIDTH),
        "logits": floats(VOCABULARY_SIZE),
    }
    return {name: made[name] for name in names}


def spans(lengths):
    """Inputs of a `MentionRanker`: one token, two tokens and three, as far as the rows reach."""
    lengths = np.array(lengths, int).reshape(-1, 1)  # (B, 1)
    ends = np.arange(SPANS)
    mask = ends < lengths  # (B, S)
    return {
        "span_starts": np.where(mask, np.minimum(ends, 1), 0).astype("int32"),
        "span_ends": np.where(mask, ends, 0).astype("int32"),
        "span_mask": mask,
    }


def spec(name):
    """The `keras.Input` of a name."""
    shapes = {
        "x": ((None, WIDTH), None),
        "context": ((None, WIDTH), None),
        "logits": ((None, VOCABULARY_SIZE), "float32"),
        "padding_mask": ((None,), "bool"),
        "attention_mask": ((None, None), "bool"),
        "subword_ids": ((None, None), "int32"),
        "context_ids": ((CONTEXT,), "int32"),
    }
    shape, dtype = shapes.get(name, ((None,), "int32"))
    return keras.Input(shape, dtype=dtype, name=name)


def around(layer, *positional, **keyword):
    """A model that calls `layer` on inputs of these names."""
    inputs = {name: spec(name) for name in (*positional, *keyword.values())}
    output = layer(
        *(inputs[name] for name in positional),
        **{argument: inputs[name] for argument, name in keyword.items()},
    )
    return keras.Model(inputs, output)


def bert(**options):
    return models.BERT(VOCABULARY_SIZE, 2, WIDTH, HEADS, INNER, max_sequence_length=16, **options)


def nnlm(hidden, direct=True):
    return models.NNLM(VOCABULARY_SIZE, CONTEXT, WIDTH, hidden, direct, dropout=0.1)


# The bias of the keys adds the same number to all scores of a query, which softmax ignores.
KEYS = ("key/bias",)
# The pooler is trained by objectives and heads that use the pooled output.
POOLER = ("pooler",)

ENTRIES = [
    Entry(
        layers.MultiHeadAttention,
        lambda: around(layers.MultiHeadAttention(HEADS, 0.1), "x", attention_mask="attention_mask"),
        without_gradient=KEYS,
    ),
    Entry(
        layers.MultiHeadAttention,
        lambda: around(layers.MultiHeadAttention(HEADS, 0.1), "x", context="context"),
        name="MultiHeadAttention over another sequence",
        without_gradient=KEYS,
    ),
    Entry(layers.Dense, lambda: around(layers.Dense(INNER), "x")),
    Entry(layers.Dropout, lambda: around(layers.Dropout(0.5), "x")),
    Entry(layers.FeedForward, lambda: around(layers.FeedForward(INNER, "gelu_tanh"), "x")),
    Entry(
        layers.PostNormBlock,
        lambda: around(layers.PostNormBlock(HEADS, INNER), "x", attention_mask="attention_mask"),
        without_gradient=KEYS,
    ),
    Entry(
        layers.TokenEmbedding,
        lambda: around(layers.TokenEmbedding(VOCABULARY_SIZE, WIDTH), "token_ids"),
    ),
    Entry(
        layers.SegmentEmbedding,
        lambda: around(layers.SegmentEmbedding(SEGMENTS, WIDTH), "segment_ids"),
    ),
    Entry(
        layers.SubwordEmbedding,
        lambda: around(layers.SubwordEmbedding(VOCABULARY_SIZE, WIDTH), "subword_ids"),
    ),
    Entry(layers.PositionEmbedding, lambda: positions()),
    Entry(layers.MaskedLMHead, lambda: around(layers.MaskedLMHead(), "x")),
    Entry(layers.OutputBias, lambda: around(layers.OutputBias(), "logits"), float32_outputs=True),
    Entry(
        layers.CRF,
        lambda: around(layers.CRF(WIDTH), "x", step_mask="padding_mask"),
        float32_outputs=True,
    ),
    Entry(layers.GatherPositions, lambda: around(layers.GatherPositions(), "x", "mask_positions")),
    Entry(layers.Pooling, lambda: around(layers.Pooling("mean"), "x", "padding_mask")),
    Entry(
        layers.Pooling,
        lambda: around(layers.Pooling("max"), "x", "padding_mask"),
        name="Pooling max",
    ),
    Entry(models.BERT, bert, without_gradient=KEYS),
    Entry(models.BERT, lambda: bert(pooler=False, activation="relu"), "BERT without pooler", KEYS),
    Entry(models.StaticEncoder, lambda: models.StaticEncoder(VOCABULARY_SIZE, WIDTH)),
    Entry(models.SubwordEncoder, lambda: models.SubwordEncoder(VOCABULARY_SIZE, WIDTH)),
    Entry(models.NNLM, lambda: nnlm(4), float32_outputs=True),
    Entry(models.NNLM, lambda: nnlm(0), "NNLM without hidden layer", float32_outputs=True),
    Entry(models.NNLM, lambda: nnlm(4, False), "NNLM without direct", float32_outputs=True),
    Entry(
        objectives.MaskedLM,
        lambda: objectives.MaskedLM(bert()),
        without_gradient=KEYS + POOLER,
        float32_outputs=True,
    ),
    Entry(
        objectives.NextSentence,
        lambda: objectives.NextSentence(bert()),
        without_gradient=KEYS,
        float32_outputs=True,
    ),
    Entry(objectives.Joint, lambda: joint(), without_gradient=KEYS, float32_outputs=True),
    Entry(
        heads.Classifier,
        lambda: heads.attach(bert(), heads.Classifier(3)),
        without_gradient=KEYS,
        float32_outputs=True,
    ),
    Entry(
        heads.Classifier,
        lambda: heads.attach(bert(), heads.Classifier(3, pooling="mean")),
        name="Classifier of the mean",
        without_gradient=KEYS + POOLER,
        float32_outputs=True,
    ),
    Entry(
        heads.Classifier,
        lambda: heads.attach(models.StaticEncoder(VOCABULARY_SIZE, WIDTH), heads.Classifier(3)),
        name="Classifier of static vectors",
        float32_outputs=True,
    ),
    Entry(
        heads.Classifier,
        lambda: heads.attach(models.SubwordEncoder(VOCABULARY_SIZE, WIDTH), heads.Classifier(3)),
        name="Classifier of subwords",
        float32_outputs=True,
    ),
    Entry(
        heads.Regressor,
        lambda: heads.attach(bert(), heads.Regressor()),
        without_gradient=KEYS,
        float32_outputs=True,
    ),
    Entry(
        heads.Tagger,
        lambda: heads.attach(bert(), heads.Tagger(3)),
        without_gradient=KEYS + POOLER,
        float32_outputs=True,
    ),
    Entry(
        heads.CRFTagger,
        lambda: heads.attach(bert(), heads.CRFTagger(3)),
        # The output is the emissions; transitions are trained by the head's own loss.
        without_gradient=(*KEYS, *POOLER, "crf/"),
        float32_outputs=True,
    ),
    Entry(
        heads.RoleTagger,
        lambda: heads.attach(bert(), heads.RoleTagger(3, indicator_dim=4, hidden_dim=8)),
        without_gradient=KEYS + POOLER,
        float32_outputs=True,
    ),
    Entry(
        heads.Span,
        lambda: heads.attach(bert(), heads.Span()),
        without_gradient=KEYS + POOLER,
        float32_outputs=True,
    ),
    Entry(
        heads.ChoiceScorer,
        lambda: heads.attach_choices(bert(), heads.ChoiceScorer()),
        without_gradient=KEYS,
        float32_outputs=True,
    ),
    Entry(
        heads.BiEncoder,
        lambda: heads.attach_pair(bert(), heads.BiEncoder()),
        without_gradient=KEYS + POOLER,
        float32_outputs=True,
    ),
    Entry(
        heads.MentionRanker,
        lambda: heads.attach(bert(), heads.MentionRanker(hidden_dim=8, feature_dim=4)),
        without_gradient=KEYS + POOLER,
        float32_outputs=True,
    ),
]

# Bases that are not used by themselves.
ABSTRACT = {layers.CheckedInputs, models.Encoder, objectives.Objective}
# Not called on inputs as layers are: they have tests of their own in tests/models.
TESTED_APART = {
    models.FastText,
    models.FastTextClassifier,
    models.GloVe,
    models.RaggedEncoder,
    models.Word2Vec,
}


def joint():
    encoder = bert()
    return objectives.Joint([objectives.MaskedLM(encoder), objectives.NextSentence(encoder)])


def positions():
    inputs = {"x": spec("x")}
    x = keras.layers.Identity()(inputs["x"])  # casts to the dtype of the policy
    return keras.Model(inputs, x + layers.PositionEmbedding(16)(x))
