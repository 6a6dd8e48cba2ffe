"""The best evaluation is kept, and early stopping ends the run."""

import math

import numpy as np
import pytest
from toy_encoder import Stream, compiled, make_model

from kctx.files import read_json
from kctx.training import AdamW, Checkpoints, KeepBest, fit_steps


def run(folder, scores, steps=20, resume=False, **options):
    """Two steps an epoch, whose scores are given; returns the callback and what was saved."""
    model = compiled(make_model(), AdamW(0.01))
    scores, saved = iter(scores), []
    best = KeepBest(
        folder / "best.json",
        evaluate=lambda: {"score": next(scores), "other": 0.0},
        save=lambda: saved.append(best.step),
        **options,
    )
    history = fit_steps(
        model,
        Stream().batches,
        steps,
        2,
        callbacks=[best],
        checkpoints=Checkpoints(folder / "checkpoints", every=2),
        resume=resume,
        verbose=0,
    )
    return best, saved, history


def test_the_best_is_saved(tmp_path):
    best, saved, history = run(tmp_path, [0.1, 0.3, 0.2, 0.3, 0.4], steps=10)
    assert saved == [2, 4, 10]
    assert read_json(tmp_path / "best.json") == {"score": 0.4, "other": 0.0, "step": 10}
    assert history.history["val_score"] == [0.1, 0.3, 0.2, 0.3, 0.4]
    assert not best.is_over()


def test_patience_ends_the_run_and_a_resume_leaves_it_so(tmp_path, capsys):
    best, saved, history = run(tmp_path, [0.1, 0.3, 0.2, 0.3, 0.9], patience=4)
    assert best.step == 8 and saved == [2, 4] and len(history.history["loss"]) == 4
    assert "nothing was better than step 4" in capsys.readouterr().out
    _, saved, history = run(tmp_path, [], patience=4, resume=True)
    assert history is None and saved == []
    assert "The run was ended by KeepBest" in capsys.readouterr().out
    # with more patience it goes on
    best, saved, _ = run(tmp_path, [0.5, 0.4, 0.4, 0.4], patience=6, resume=True)
    assert saved == [10] and best.step == 16


def test_min_gain_and_nan(tmp_path):
    _, saved, _ = run(tmp_path, [math.nan, 0.3, 0.35, math.nan, 0.45], steps=10, min_gain=0.1)
    assert saved == [2, 4, 10]


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="`patience` must be an integer of at least 1"):
        KeepBest(tmp_path, None, None, patience=0)
    with pytest.raises(ValueError, match="`min_gain` must be at least 0. Received: min_gain=-1"):
        KeepBest(tmp_path, None, None, min_gain=-1)


@pytest.mark.once
@pytest.mark.parametrize("metrics", [{}, None, {"a": "x"}, [1.0]])
def test_what_is_no_evaluation(tmp_path, metrics):
    best = KeepBest(tmp_path / "best.json", lambda: metrics, lambda: None)
    best.set_model(make_model())
    with pytest.raises(ValueError, match="`evaluate` must give a dict of numbers, one at least"):
        best.on_epoch_end(0)


def test_numbers_of_numpy_are_written(tmp_path):
    best = KeepBest(tmp_path / "best.json", lambda: {"a": np.float32(0.5)}, lambda: None)
    best.set_model(make_model())
    best.on_epoch_end(0)
    assert read_json(tmp_path / "best.json") == {"a": 0.5, "step": 0}
