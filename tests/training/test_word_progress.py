"""Words done, words a second, and the loss of the last interval."""

import csv
import io
import re
import sys

import keras
import numpy as np
import pytest

from kctx.training import CSVLog, StepCallback, WordProgress, fit_steps


def make_model():
    inputs = keras.Input((1,))
    model = keras.Model(inputs, keras.layers.Dense(1, kernel_initializer="zeros")(inputs))
    # A rate of 0: the loss of a batch is its square.
    model.compile(keras.optimizers.SGD(0.0), loss="mse")
    return model


def batches():
    for number in range(1000):
        yield np.zeros((2, 1), "float32"), np.full((2, 1), number**0.5, "float32")


class Seen(StepCallback):
    def __init__(self):
        super().__init__()
        self.logs = []

    def on_step(self, logs):
        self.logs.append(dict(logs))


def run(callback, total=12, every=12, extra=()):
    fit_steps(make_model(), batches(), total, every, callbacks=[callback, *extra], verbose=0)


def test_lines_with_the_loss_of_their_interval(capsys):
    run(WordProgress(1000.5, 12, every=4, seconds=0), every=6)
    lines = capsys.readouterr().out.strip().split("\n")
    plain = [re.sub(r"[\d,]+ words/s", "S words/s", line) for line in lines]
    # Losses 0 1 2 3 | 4 5 6 7 | ...; Keras also begins anew after batch 6.
    assert plain == [
        "4,002 of 12,006 words, S words/s, loss 1.5000",
        "8,004 of 12,006 words, S words/s, loss 6.5000",
        "12,006 of 12,006 words, S words/s, loss 9.5000",
    ]


def test_few_lines_and_the_last_one(capsys):
    seen = Seen()
    run(WordProgress(10, 12, every=1, seconds=1000, what="records"), extra=[seen])
    assert seen.logs[-1]["records_per_second"] > 0 and "words_per_second" not in seen.logs[-1]
    lines = capsys.readouterr().out.strip().split("\n")
    assert len(lines) == 2 and lines[0] == "10 of 120 records, loss 0.0000"
    assert lines[1].startswith("120 of 120 records, ") and lines[1].endswith("loss 11.0000")


def test_nothing_is_shown(capsys):
    seen = Seen()
    run(WordProgress(10, every=3, progress=False), extra=[seen])
    assert capsys.readouterr().out == ""
    assert [name for name, logs in enumerate(seen.logs) if "words_per_second" not in logs] == [0, 1]
    assert seen.logs[-1]["words_per_second"] > 0


def test_beside_a_log(tmp_path):
    callback = WordProgress(10, every=3, progress=False)
    run(callback, extra=[CSVLog(tmp_path / "log.csv", every=3)])
    with open(tmp_path / "log.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["loss"]) for row in rows] == [1, 4, 7, 10]
    assert all(float(row["words_per_second"]) > 0 for row in rows)


def test_keras_knows_the_total(capsys):
    run(WordProgress(10, every=6, seconds=0), total=12, every=6)
    assert "of 120 words" in capsys.readouterr().out
    callback = WordProgress(10, every=4)
    make_model().fit(batches(), steps_per_epoch=4, callbacks=[callback], shuffle=False, verbose=0)
    assert capsys.readouterr().out.startswith("40 of 40 words, ")


def test_a_bar_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    callback = WordProgress(10, 12, every=3)
    run(callback)
    shown = terminal.getvalue()
    assert "\x1b" in shown and "120 of 120 words" in shown and "loss 10.0000" in shown
    assert callback._bar is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words_per_step": 0}, "`words_per_step` must be above 0. Received: 0"),
        ({"words_per_step": 1, "every": 0}, "`every` must be"),
        ({"words_per_step": 1, "total_steps": 0}, "`total_steps` must be"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        WordProgress(**options)
