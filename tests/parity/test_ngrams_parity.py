"""n-gram models against stored models of KenLM's `lmplz` and answers of its `query`."""

from pathlib import Path

import numpy as np
import pytest

from kctx.ngrams import NGramLM
from tests.parity.make_ngrams import MODELS, TEST, TRAIN

pytestmark = [
    pytest.mark.once,
    pytest.mark.filterwarnings("ignore:The Kneser-Ney discounts"),
]

OPTIONS = {
    "pruned": {"prune": [0, 1, 2]},
    "pruned_words": {"prune": [1, 1, 3]},
    "unknown_mass": {"interpolate_unigrams": False},
    "padded": {"vocabulary_pad": 1000},
}
SCORED = [name for name, (order, _) in MODELS.items() if order > 1]


@pytest.fixture(scope="module")
def stored():
    return np.load(Path(__file__).with_name("ngrams.npz"), allow_pickle=False)


def values(path):
    """n-gram -> (log10 p, log10 back-off), read in the plainest way."""
    found = {}
    for line in Path(path).read_bytes().split(b"\n"):
        fields = line.split(b"\t")
        if len(fields) > 1:
            found[fields[1]] = (float(fields[0]), float(fields[2]) if len(fields) > 2 else 0.0)
    return found


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    differences = [np.abs(np.subtract(ours[key], theirs[key])).max() for key in ours]
    assert len(differences) > 20 and max(differences) < 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_trained_models_equal_lmplz(name, stored, tmp_path):
    theirs, ours = tmp_path / "theirs.arpa", tmp_path / "ours.arpa"
    theirs.write_bytes(stored[f"{name}_arpa"].tobytes())
    options = OPTIONS.get(name, {})
    model = NGramLM.train(lines=TRAIN, order=MODELS[name][0], progress=False, **options)
    model.write_arpa(ours)
    same(values(ours), values(theirs))


@pytest.mark.parametrize("name", SCORED)
def test_scores_and_perplexities_equal_query(name, stored, tmp_path):
    (tmp_path / "theirs.arpa").write_bytes(stored[f"{name}_arpa"].tobytes())
    options = OPTIONS.get(name, {})
    trained = NGramLM.train(lines=TRAIN, order=MODELS[name][0], progress=False, **options)
    read = NGramLM.read_arpa(tmp_path / "theirs.arpa", progress=False)
    including, excluding, oov, tokens = stored[f"{name}_summary"]
    for model in (trained, read):
        # KenLM adds up in float32.
        np.testing.assert_allclose(model.score(TEST), stored[f"{name}_totals"], atol=1e-5)
        found = model.perplexity(lines=TEST)
        assert found.including_oov == pytest.approx(including, rel=1e-6)
        assert found.excluding_oov == pytest.approx(excluding, rel=1e-6)
        assert (found.oov, found.tokens) == (oov, tokens)


@pytest.mark.parametrize("name", MODELS)
def test_what_was_read_is_written_alike(name, stored, tmp_path):
    theirs, ours = tmp_path / "theirs.arpa", tmp_path / "ours.arpa.gz"
    theirs.write_bytes(stored[f"{name}_arpa"].tobytes())
    model = NGramLM.read_arpa(theirs, progress=False)
    model.write_arpa(ours)
    again = NGramLM.read_arpa(ours, progress=False)
    again.write_arpa(tmp_path / "again.arpa")
    same(values(tmp_path / "again.arpa"), values(theirs))
    assert again.sizes == model.sizes and again.vocabulary == model.vocabulary


@pytest.mark.parametrize("name", SCORED)
def test_kenlm_reads_what_is_written(name, tmp_path):
    kenlm = pytest.importorskip("kenlm", reason="the Python module of KenLM is not installed")
    model = NGramLM.train(
        lines=TRAIN, order=MODELS[name][0], progress=False, **OPTIONS.get(name, {})
    )
    model.write_arpa(tmp_path / "ours.arpa")
    theirs = kenlm.Model(str(tmp_path / "ours.arpa"))
    rows = model.score(TEST, per_token=True)
    for line, row in zip(TEST, rows, strict=True):
        found = [log10 for log10, _, _ in theirs.full_scores(line)]
        np.testing.assert_allclose(row, found, atol=1e-6)
