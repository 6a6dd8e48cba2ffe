"""Coreference: scores of antecedents, the loss over all right ones, clusters."""

import numpy as np
import pytest
from keras import ops

from kctx.heads import MentionRanker, attach, encoder_of, head_of
from kctx.heads.losses import gold_antecedents
from kctx.heads.mention_ranker import bucket
from kctx.models import BERT
from tests.catalogue import batch


def numpy_of(x):
    return ops.convert_to_numpy(x)


@pytest.fixture(scope="module")
def model():
    encoder = BERT(30, 2, 8, 2, 16, max_sequence_length=16)
    model = attach(encoder, MentionRanker(hidden_dim=6, feature_dim=3))
    rng = np.random.default_rng(0)
    head = head_of(model)
    head.set_weights([0.5 * rng.normal(size=w.shape) for w in head.get_weights()])
    return model


def test_scores_one_by_one(model):
    """Each score from the formula of the paper, with loops."""
    head, encoder = head_of(model), encoder_of(model)
    inputs = batch(model.input, lengths=(6, 5, 2))
    x = numpy_of(encoder({name: inputs[name] for name in encoder.input})["sequence_output"])
    weights = {weight.path.split("/", 1)[1]: numpy_of(weight) for weight in head.weights}

    def dense(name, x):
        return x @ weights[f"{name}/kernel"] + weights.get(f"{name}/bias", 0)

    def buckets(number):
        return sum(number >= least for least in (2, 3, 4, 5, 8, 16, 32, 64))

    found = numpy_of(model(inputs))
    for row in range(3):
        count = inputs["span_mask"][row].sum()
        spans = list(zip(inputs["span_starts"][row], inputs["span_ends"][row], strict=True))
        vectors = []
        for start, end in spans[:count]:
            tokens = x[row, start : end + 1]
            attention = np.exp(dense("token_score", tokens))
            head_vector = (attention / attention.sum() * tokens).sum(0)
            width = weights["width_embedding/embeddings"][buckets(end - start + 1)]
            vectors.append(np.concatenate([tokens[0], tokens[-1], head_vector, width]))
        mention = [
            dense("mention_score", np.maximum(dense("mention_hidden", g), 0))[0] for g in vectors
        ]
        for i in range(count):
            for j in range(i):
                distance = weights["distance_embedding/embeddings"][buckets(i - j)]
                hidden = (
                    dense("pair_span", vectors[i])
                    + dense("pair_antecedent", vectors[j])
                    + dense("pair_product", vectors[i] * vectors[j])
                    + dense("pair_distance", distance)
                )
                pair = dense("pair_score", np.maximum(hidden, 0))[0]
                wanted = mention[i] + mention[j] + pair
                np.testing.assert_allclose(found[row, i, j + 1], wanted, rtol=1e-4, atol=1e-4)
    assert (found[..., 0] == 0).all()
    assert (found[:, 0, 1:] == -1e9).all()  # the first span has no antecedent
    later = np.arange(3)[:, None] <= np.arange(3)
    assert (found[:, :, 1:][:, later] == -1e9).all()


def test_buckets():
    found = numpy_of(bucket(ops.convert_to_tensor([-3, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 63, 64])))
    np.testing.assert_array_equal(found, [0, 0, 1, 2, 3, 4, 4, 5, 5, 6, 6, 7, 8])


def test_gold_antecedents():
    """Spans of clusters 1, none, 1, 1 and padding."""
    gold = numpy_of(gold_antecedents(ops.convert_to_tensor([[1, 0, 1, 1, -1]])))[0]
    wanted = {0: [0], 1: [0], 2: [1], 3: [1, 3], 4: [0]}
    for span, antecedents in wanted.items():
        assert list(np.flatnonzero(gold[span])) == antecedents


def test_loss_is_the_marginal_likelihood():
    head = MentionRanker()
    scores = np.full((1, 5, 6), -1e9, "float32")
    rng = np.random.default_rng(0)
    for i in range(5):
        scores[0, i, : i + 1] = rng.normal(size=i + 1)
    labels = np.array([[1, 0, 1, 1, -1]], "int32")
    p = np.exp(scores[0]) / np.exp(scores[0]).sum(-1, keepdims=True)
    wanted = -np.log([p[0, 0], p[1, 0], p[2, 1], p[3, 1] + p[3, 3]]).mean()
    np.testing.assert_allclose(float(head.output_loss()(labels, scores)), wanted, rtol=1e-5)
    assert float(head.output_loss()(np.full((1, 5), -1), scores)) == 0
    (metric,) = head.output_metrics()
    metric.update_state(labels, scores)
    best = scores[0].argmax(-1)
    right = [best[0] == 0, best[1] == 0, best[2] == 1, best[3] in (1, 3)]
    np.testing.assert_allclose(float(metric.result()), np.mean(right))


def test_clusters_follow_the_links():
    """0 <- 2 <- 3 and 1 <- 4; span 5 stands alone; one is padding."""
    best = [[0, 0, 1, 3, 2, 0, 1]]
    scores = np.eye(8, dtype="float32")[np.array(best)]
    mask = np.array([[True] * 6 + [False]])
    found = numpy_of(MentionRanker().decode(scores, mask))
    np.testing.assert_array_equal(found, [[1, 2, 1, 1, 2, 0, 0]])


def test_errors():
    with pytest.raises(ValueError, match="`hidden_dim` must be an integer of at least 1. Rec.*=0"):
        MentionRanker(hidden_dim=0)
