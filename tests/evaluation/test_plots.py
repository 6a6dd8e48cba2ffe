import sys

import numpy as np
import pytest

from kctx.evaluation import confusion_matrix, draw, learning_curves, reliability

pytestmark = pytest.mark.once
LOG = "step,loss,val_loss\n10,2.5,\n20,1.5,1.75\n"


def test_learning_curves(tmp_path):
    pytest.importorskip("matplotlib")
    (tmp_path / "log.csv").write_text(LOG, encoding="utf-8")
    learning_curves(tmp_path / "log.csv", tmp_path / "new" / "curves.png")
    assert (tmp_path / "new" / "curves.png").read_bytes()[:4] == b"\x89PNG"
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["curves.png"]


def test_confusion_matrix(tmp_path):
    pytest.importorskip("matplotlib")
    counts = confusion_matrix([0, 0, 1], [0, 1, 1], ["a", "贝"], tmp_path / "confusion.png")
    np.testing.assert_array_equal(counts, [[1, 1], [0, 1]])
    assert (tmp_path / "confusion.png").read_bytes()[:4] == b"\x89PNG"


def test_reliability(tmp_path):
    pytest.importorskip("matplotlib")
    error = reliability([0.9, 0.9, 0.2], [True, False, False], tmp_path / "reliability.png")
    assert error == pytest.approx((2 * 0.4 + 0.2) / 3)
    assert (tmp_path / "reliability.png").read_bytes()[:4] == b"\x89PNG"


def test_confusion_matrix_checks_classes(tmp_path):
    with pytest.raises(ValueError, match=r"`predictions` must be in \[0, 2\).*from 1 to 2"):
        confusion_matrix([0, 1], [1, 2], ["a", "b"], tmp_path / "confusion.png")


@pytest.mark.parametrize(
    "text, message", [("a,b\n1,2\n", "`step` column"), ("step,loss\n", "at least one row")]
)
def test_bad_log(tmp_path, text, message):
    (tmp_path / "log.csv").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        learning_curves(tmp_path / "log.csv", tmp_path / "curves.png")


def test_without_matplotlib(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_agg", None)
    (tmp_path / "log.csv").write_text(LOG, encoding="utf-8")
    draw(learning_curves, tmp_path / "log.csv", tmp_path / "curves.png")
    assert "No plot: Plots need matplotlib" in capsys.readouterr().out
    with pytest.raises(ImportError, match=r"extra `plot`: pip install 'kctx\[plot\]'"):
        learning_curves(tmp_path / "log.csv", tmp_path / "curves.png")


def test_confusion_of_many_classes_is_small(tmp_path):
    """With a name and a count each, 2,000 classes took hours and gigabytes."""
    pytest.importorskip("matplotlib")
    names = [str(i) for i in range(2000)]
    counts = confusion_matrix([0, 1999], [0, 1], names, tmp_path / "a.png")
    assert counts[1999, 1] == 1 and (tmp_path / "a.png").stat().st_size < 1 << 20
    with pytest.raises(ValueError, match="`labels` must be integers. Received: float64"):
        confusion_matrix([0.5], [0], ["a"], tmp_path / "a.png")
