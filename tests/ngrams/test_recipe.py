import json

import numpy as np
import pytest

from kctx.ngrams import NGramLM
from recipes.pretrain_ngram import Config, main
from tests.ngrams.texts import CATS, random_lines

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:The Kneser-Ney discounts"),
    pytest.mark.filterwarnings("ignore:The Good-Turing discounts"),
]


@pytest.fixture
def texts(tmp_path):
    for seed, name in enumerate(["train", "dev", "test"]):
        lines = [*random_lines(seed, 300, words=20 + 10 * seed), *CATS]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path


def config(texts, **options):
    places = {"train": (texts / "train",), "held_out": (texts / "test",)}
    return Config(**places, output=texts / "run", order=3, **options)


def test_what_a_run_leaves(texts, capsys):
    main(config(texts, samples=4))
    folder = texts / "run"
    metrics = json.loads((folder / "metrics.json").read_text())
    assert [row["order"] for row in metrics["orders"]] == [1, 2, 3]
    last = metrics["orders"][-1]
    assert last["oov"] > 0
    for model in (NGramLM.load(folder / "model"), NGramLM.read_arpa(folder / "model.arpa")):
        found = model.perplexity(texts / "test")
        assert found.including_oov == pytest.approx(last["including_oov"], rel=1e-6)
        assert found.excluding_oov == pytest.approx(last["excluding_oov"], rel=1e-6)
    assert len((folder / "samples.txt").read_text().split("\n")) == 5
    assert (folder / "perplexity.png").read_bytes().startswith(b"\x89PNG")
    assert "n-grams of orders 1 to 3" in capsys.readouterr().out
    with pytest.raises(FileExistsError, match="--output already holds a model: .*run"):
        main(config(texts))


@pytest.mark.parametrize(
    "options",
    [
        {"smoothing": "katz"},
        {"smoothing": "add_k", "min_count": 3},
        {"smoothing": "mle"},
        {"smoothing": "kneser_ney", "prune": (0, 1), "memory_limit": 1},
    ],
)
def test_other_smoothings(texts, options):
    main(config(texts, **options))
    rows = json.loads((texts / "run" / "metrics.json").read_text())["orders"]
    assert np.isfinite([row["srilm_ppl"] for row in rows]).all()


@pytest.mark.parametrize("buckets", ["nested", "joint"])
def test_jelinek_mercer_on_dev_text(texts, buckets):
    with pytest.raises(ValueError, match="needs --dev"):
        main(config(texts, smoothing="jelinek_mercer"))
    main(config(texts, smoothing="jelinek_mercer", buckets=buckets, dev=(texts / "dev",)))
    assert (texts / "run" / "model.arpa").exists() == (buckets == "nested")


def test_globs_of_files(texts):
    main(
        Config(
            train=(texts / "t[r]ai*",), held_out=(texts / "[dt]e*",), output=texts / "a", order=1
        )
    )
    files = {"train": (texts / "train",), "held_out": (texts / "dev", texts / "test")}
    main(Config(**files, output=texts / "b", order=1))
    found = [json.loads((texts / run / "metrics.json").read_text())["orders"] for run in "ab"]
    assert found[0] == found[1]


def test_files_are_looked_for_before_the_counting(texts):
    for name in ("train", "held_out", "dev"):
        options = {name: (texts / "absent*",)}
        settings = {"train": (texts / "train",), "held_out": (texts / "test",), **options}
        with pytest.raises(FileNotFoundError, match="No file matches .*absent"):
            main(Config(output=texts / "run", **settings))
    assert not (texts / "run").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "`seed` must be an integer of at least 0"),
        ({"smoothing": "add_k", "k": float("nan")}, "`k` must be a number above 0"),
        ({"smoothing": "katz", "katz_limit": -1}, "`katz_limit` must be"),
        ({"prune": (5, 1)}, "thresholds that do not fall"),
    ],
)
def test_errors_before_the_counting(texts, monkeypatch, options, message):
    monkeypatch.setattr("kctx.ngrams.count_ngrams", None)
    with pytest.raises(ValueError, match=message):
        main(config(texts, **options))
    (texts / "run").write_text("a file")
    with pytest.raises(FileExistsError, match="--output must be a folder"):
        main(config(texts))


def test_nothing_to_measure(texts):
    (texts / "test").write_text("")
    with pytest.raises(ValueError, match="--held-out must hold a line"):
        main(config(texts))


def test_a_vocabulary_that_is_empty(texts):
    with pytest.raises(ValueError, match="No word occurs --min-count times"):
        main(config(texts, min_count=10_000))
