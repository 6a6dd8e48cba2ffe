"""The GloVe recipe as a user runs it: text to vectors, broken off and resumed."""

import csv
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kctx.vectors import Vectors

pytestmark = pytest.mark.once

RECIPE = Path(__file__).resolve().parent.parent.parent / "recipes" / "pretrain_glove.py"
SETTINGS = {"dim": 8, "epochs": 30, "save_every": 1, "min_count": 2}
OPTIONS = [f"--{name.replace('_', '-')}={value}" for name, value in SETTINGS.items()]


@pytest.fixture(scope="module")
def recipe():
    """The recipe as a module: starting Python anew for each run would take most of the time."""
    spec = importlib.util.spec_from_file_location("pretrain_glove", RECIPE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def run(recipe, corpus, folder, **options):
    recipe.main(recipe.Config((str(corpus),), folder, **{**SETTINGS, **options}))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    rng = np.random.default_rng(0)
    words = rng.geometric(0.03, (400, 30))
    lines = [" ".join(f"w{word}" for word in line) for line in words]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def whole(recipe, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "glove"
    run(recipe, corpus, folder, unknown=True)
    return folder


def losses(folder):
    with open(folder / "log.csv", encoding="utf-8", newline="") as file:
        return [(row["step"], row["loss"]) for row in csv.DictReader(file)]


def test_all_that_it_writes(whole):
    vectors = Vectors.load(whole / "vectors")
    assert vectors.words[-1] == "<unk>" and vectors.dim == 8
    first = (whole / "vectors.txt").read_text(encoding="utf-8").split("\n")[0].split(" ")
    assert first[0] == vectors.words[0] and len(first) == 9
    size = (whole / "vectors.bin").stat().st_size
    assert size == 8 * 2 * (len(vectors) - 1) * 9
    metrics = json.loads((whole / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["words"] == len(vectors) - 1
    rows = losses(whole)
    assert len(rows) == 30 and float(rows[-1][1]) < 0.7 * float(rows[0][1])
    assert metrics["records_per_second"] > 0
    assert metrics["loss"] == pytest.approx(float(rows[-1][1]))


def test_killed_and_resumed_gives_the_same(recipe, corpus, whole, tmp_path):
    folder = tmp_path / "glove"
    child = subprocess.Popen(
        [sys.executable, RECIPE, "--corpus", corpus, "--output", folder, *OPTIONS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.time() + 120
    while not list(folder.glob("checkpoints/step-*/manifest.json")):
        assert child.poll() is None and time.time() < deadline
        time.sleep(0.005)
    child.kill()
    child.wait()
    assert not (folder / "metrics.json").exists()
    with pytest.raises(ValueError, match="checkpoints"):
        run(recipe, corpus, folder)
    with pytest.raises(ValueError, match="run/window: saved 10, now 3"):
        run(recipe, corpus, folder, resume=True, window=3)
    run(recipe, corpus, folder, resume=True)
    assert losses(folder) == losses(whole)
    assert (folder / "vectors.bin").read_bytes() == (whole / "vectors.bin").read_bytes()


def test_counts_that_no_checkpoint_vouches_for_are_made_anew(recipe, corpus, whole, tmp_path):
    folder = tmp_path / "glove"
    shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("checkpoints"))
    run(recipe, corpus, folder, resume=True, window=1, epochs=1)
    counted = [json.loads((x / "metrics.json").read_text("utf-8")) for x in (whole, folder)]
    assert counted[1]["records"] < counted[0]["records"]


def test_bad_input(recipe, corpus, tmp_path):
    with pytest.raises(ValueError, match="Lower `min_count`"):
        run(recipe, corpus, tmp_path / "x", min_count=9999)
    text = tmp_path / "unknown.txt"
    text.write_text("a b <unk> a b <unk>\n" * 9, encoding="utf-8")
    with pytest.raises(ValueError, match="holds the word <unk>"):
        run(recipe, text, tmp_path / "y", unknown=True)
    with pytest.raises(FileNotFoundError, match="No file matches"):
        run(recipe, tmp_path / "absent.txt", tmp_path / "z")
