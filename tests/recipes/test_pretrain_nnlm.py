"""The recipe of the neural language model at a tiny size: results, files, and exact resume."""

import csv
import json

import keras
import numpy as np
import pytest

from kctx import presets, training, vectors
from recipes import pretrain_nnlm as recipe


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """About 3,000 words of a language in which the last word decides much."""
    generator = np.random.default_rng(0)
    words = [f"w{i}" for i in range(20)]
    text = ["w0"]
    for _ in range(3000):
        likely = words[(7 * int(text[-1][1:]) + 3) % 20]
        text.append(likely if generator.random() < 0.7 else generator.choice(words))
    text[100] = "seldom"
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    lines = [" ".join(text[i : i + 9]) for i in range(0, len(text), 9)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def config(corpus, folder, **options):
    given = {
        "corpus": (str(corpus),),
        "output": folder,
        "embedding_dim": 6,
        "hidden_dim": 16,
        "context_length": 2,
        "batch_size": 32,
        "epochs": 4,
        "learning_rate": 0.02,
        "dropout": 0.1,
    }
    return recipe.Config(**{**given, **options})


def losses(folder):
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if k != "tokens_per_second"} for row in rows]


@pytest.fixture(scope="module")
def unbroken(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "nnlm"
    recipe.main(config(corpus, folder))
    return folder


def test_results(unbroken):
    metrics = json.loads((unbroken / "metrics.json").read_text("utf-8"))
    found = {name: parts["test"] for name, parts in metrics["perplexity"].items()}
    mixtures = [name for name in found if name.startswith("mixture")]
    assert list(found)[:2] == ["NNLM", "interpolated trigram"] and len(mixtures) == 2
    assert max(found["NNLM"], found["interpolated trigram"]) < 10  # of 20 words
    valid = {name: parts["valid"] for name, parts in metrics["perplexity"].items()}
    assert valid[mixtures[1]] <= valid["interpolated trigram"]  # the weight was chosen there
    assert 0 < metrics["mixture_weight"] < 1
    assert "| NNLM |" in (unbroken / "results.md").read_text("utf-8")
    assert (unbroken / "learning_curves.png").stat().st_size > 1000


def test_files(unbroken):
    model = presets.load(unbroken / "preset").model
    table = keras.ops.convert_to_numpy(model.token_embedding.embeddings)
    found = vectors.Vectors.load(unbroken / "vectors")
    assert len(found) == 21 and found.words[0] == "<unk>" and "seldom" not in found
    np.testing.assert_array_equal(found["w3"], table[found.index("w3")])
    encoder = presets.load(unbroken / "encoder")
    ids = encoder.preprocessor(["w3 seldom"])
    made = encoder.encoder({key: value.numpy() for key, value in ids.items()})["sequence_output"]
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(made)[0, 0], found["w3"])


class Break(training.StepCallback):
    """A crash in the middle of the third epoch."""

    def on_step(self, logs):
        if self.step == 150:
            raise KeyboardInterrupt


def test_resumed_as_if_never_broken(corpus, unbroken, tmp_path, monkeypatch):
    whole = training.reports

    def broken(*arguments, **options):
        return [*whole(*arguments, **options), Break()]

    folder = tmp_path / "nnlm"
    monkeypatch.setattr(training, "reports", broken)
    with pytest.raises(KeyboardInterrupt):
        recipe.main(config(corpus, folder))
    monkeypatch.setattr(training, "reports", whole)
    with pytest.raises(ValueError, match="already holds checkpoints"):
        recipe.main(config(corpus, folder))
    with pytest.raises(ValueError, match="data/batch_size: saved 32, now 16"):
        recipe.main(config(corpus, folder, batch_size=16, resume=True))
    recipe.main(config(corpus, folder, resume=True))
    assert losses(folder) == losses(unbroken)
    for name in ("metrics.json", "results.md"):
        assert (folder / name).read_bytes() == (unbroken / name).read_bytes()


@pytest.mark.once
def test_stops_when_validation_no_longer_gains(corpus, tmp_path):
    """At a rate that is far too high nothing is better than the first epochs."""
    folder = tmp_path / "nnlm"
    recipe.main(config(corpus, folder, epochs=50, learning_rate=2.0, patience=1))
    assert int(losses(folder)[-1]["step"]) < 20 * 63
    best = json.loads((folder / "best.json").read_text("utf-8"))
    metrics = json.loads((folder / "metrics.json").read_text("utf-8"))
    assert metrics["perplexity"]["NNLM"]["valid"] == pytest.approx(best["perplexity"], rel=1e-6)


@pytest.mark.once
def test_optimizers_decay_weights_but_no_biases():
    """Also the paper's, with its schedule in words rather than steps."""
    model = recipe.models.NNLM(5, 2, 3, 4)
    for name in ("adam", "sgd"):
        options = {"learning_rate": 0.5, "weight_decay": 0.1, "batch_size": 10}
        optimizer = recipe.make_optimizer(recipe.Config(("x",), optimizer=name, **options), 100)
        for weight in model.trainable_weights:
            weight.assign(keras.ops.ones(weight.shape))
        zeros = [keras.ops.zeros(weight.shape) for weight in model.trainable_weights]
        optimizer.apply(zeros, model.trainable_weights)
        for weight in model.trainable_weights:
            wanted = 1.0 if weight.name == "bias" else 1 - 0.5 * 0.1
            np.testing.assert_allclose(keras.ops.convert_to_numpy(weight), wanted, rtol=1e-6)
    rate = recipe.make_optimizer(recipe.Config(("x",), optimizer="sgd", batch_size=10), 1)
    rate = rate._learning_rate
    assert float(rate(0)) == pytest.approx(1e-3)
    assert float(rate(10**7)) == pytest.approx(1e-3 / 2)


@pytest.mark.once
def test_errors(corpus, tmp_path):
    with pytest.raises(ValueError, match="leave something to test on. Received: 0.9 and 0.2"):
        recipe.main(config(corpus, tmp_path / "x", train_share=0.9, valid_share=0.2))
    assert not (tmp_path / "x").exists()
