import csv
import math
import time

import keras
import numpy as np
import pytest
import small_run

from kctx.training import (
    CSVLog,
    Progress,
    StopOnNonFinite,
    TensorBoardLog,
    fit_steps,
    tokens_per_batch,
)


def read(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fit(callbacks, total=12, every=6, **kwargs):
    model = small_run.make_model()
    data = small_run.Stream()
    kwargs.setdefault("verbose", 0)
    history = fit_steps(model, data.batches, total, every, callbacks=callbacks, **kwargs)
    return model, data, history


def test_rows_are_means_over_their_own_interval(tmp_path):
    fit([CSVLog(tmp_path / "one.csv", every=1)])
    fit([CSVLog(tmp_path / "four.csv", every=4)])
    one = [float(row["loss"]) for row in read(tmp_path / "one.csv")]
    four = read(tmp_path / "four.csv")
    # an interval ends where the epoch of 6 does
    assert [row["step"] for row in four] == ["4", "6", "8", "12"]
    for row, interval in zip(four, (one[:4], one[4:6], one[6:8], one[8:12]), strict=True):
        assert float(row["loss"]) == pytest.approx(np.mean(interval), rel=1e-5)


def test_learning_rate_and_throughput(tmp_path):
    log = CSVLog(tmp_path / "log.csv", every=3)
    fit([Progress(tokens_per_batch=48, every=3), log])
    rows = read(tmp_path / "log.csv")
    # the schedule: 0.02 * step / 5 up to 5, then 0.02 * (40 - step) / 40
    rates = [float(row["learning_rate"]) for row in rows]
    assert rates == pytest.approx([0.012, 0.017, 0.0155, 0.014], rel=1e-6)
    assert all(float(row["tokens_per_second"]) > 0 for row in rows)


def test_throughput_leaves_out_what_other_callbacks_evaluate(tmp_path):
    class Evaluation(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            time.sleep(2)

    log = CSVLog(tmp_path / "log.csv", every=5)
    fit([Evaluation(), Progress(tokens_per_batch=48, every=5), log])
    last = read(tmp_path / "log.csv")[-1]  # of the steps behind the last whole interval
    assert float(last["tokens_per_second"]) > 5 * 48 / 2


def test_progress_bar_shows_them(capsys):
    fit([Progress(tokens_per_batch=48, every=1)], total=2, every=2, verbose=2)
    shown = capsys.readouterr().out
    assert "learning_rate: " in shown and "tokens_per_second: " in shown and "accuracy" in shown


def test_not_a_terminal_gives_one_line_for_each_interval(capsys):
    model, data = small_run.make_model(), small_run.Stream()
    fit_steps(model, data.batches, 4, 2)
    shown = capsys.readouterr().out
    assert "\r" not in shown and "\x08" not in shown
    assert shown.count("loss:") == 2


def test_resume_drops_later_and_half_rows(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss,x\n5,1.5,2\n10,1.25,2\n15,1.0,3\n20,0.", encoding="utf-8")
    log = CSVLog(path)
    log.step = 10
    log.on_train_begin()
    assert path.read_text(encoding="utf-8").split() == ["step,loss,x", "5,1.5,2", "10,1.25,2"]
    log.step = 0
    log.on_train_begin()
    assert path.read_text(encoding="utf-8").split() == ["step"]


def test_validation_gets_its_own_rows(tmp_path):
    x = np.zeros((8, 6), "int32")
    validation = (x, np.zeros(8, "int32"))
    _, _, history = fit([CSVLog(tmp_path / "log.csv", every=6)], validation_data=validation)
    rows = [row for row in read(tmp_path / "log.csv") if row["val_loss"]]
    assert [row["step"] for row in rows] == ["6", "12"]
    assert [float(row["val_loss"]) for row in rows] == history.history["val_loss"]
    assert all(row["loss"] == "" for row in rows)


def test_tensorboard(tmp_path):
    tensorflow = pytest.importorskip("tensorflow")
    fit([TensorBoardLog(tmp_path, every=4)])
    (path,) = tmp_path.iterdir()
    found = {}
    for record in tensorflow.compat.v1.train.summary_iterator(str(path)):
        for value in record.summary.value:
            found.setdefault(value.tag, []).append(record.step)
    assert found["loss"] == [4, 8, 12] and found["accuracy"] == [4, 8, 12]


def test_non_finite_loss_stops_with_its_step():
    model, data = small_run.make_model(), small_run.Stream()

    def batches():
        for i, (x, y) in enumerate(data.batches()):
            if i == 3:
                yield x, y, np.full(len(y), np.inf, "float32")
            else:
                yield x, y, np.ones(len(y), "float32")

    with pytest.raises(
        FloatingPointError, match=r"at step 4: loss=(nan|inf), learning_rate=0\.016"
    ):
        fit_steps(model, batches, 10, 5, callbacks=[StopOnNonFinite()], verbose=0)


def test_steps_in_an_epoch_shorter_than_the_interval():
    model, _, history = fit([], total=13, every=5)
    assert int(model.optimizer.iterations) == 13
    assert len(history.history["loss"]) == 3 and math.isfinite(history.history["loss"][-1])


def test_tokens_per_batch():
    tf = pytest.importorskip("tensorflow")
    mask = tf.ones((8, 16), "bool")
    dataset = tf.data.Dataset.from_tensors(({"padding_mask": mask}, tf.zeros(8)))
    assert tokens_per_batch(dataset) == 128
    ragged = dataset.unbatch().batch(3)
    with pytest.raises(ValueError, match=r"Received: padding_mask of shape \(None, 16\)"):
        tokens_per_batch(ragged)


@pytest.mark.parametrize("make", [Progress, CSVLog, TensorBoardLog])
def test_bad_interval(make):
    with pytest.raises(ValueError, match="`every` must be .* Received: every=0"):
        make("file", every=0)
