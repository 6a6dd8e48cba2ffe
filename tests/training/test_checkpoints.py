import errno
import json
import os

import keras
import numpy as np
import pytest
import small_run

from kctx.training import Checkpoints, CSVLog, checkpoint_files, fit_steps, init_from


def weights(model):
    return [keras.ops.convert_to_numpy(weight) for weight in model.weights]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 10 steps with checkpoints at 5 and 10, and its model."""
    keras.config.set_dtype_policy("float32")
    folder = tmp_path_factory.mktemp("finished")
    model, _ = small_run.run(folder, 10)
    return folder / "checkpoints", model


@pytest.fixture
def folder(finished, tmp_path):
    copy = tmp_path / "checkpoints"
    checkpoint_files.shutil.copytree(finished[0], copy)
    return copy


def resumed(folder, model=None, **options):
    return Checkpoints(folder, every=5, **options).resume(model or small_run.make_model())


def stream(seed=0):
    return small_run.Stream(seed)


def truncate(path):
    path.write_bytes(path.read_bytes()[:-10])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "damage, file, message",
    [
        (truncate, "state.npz", r"state.npz has \d+ bytes instead of"),
        (flip, "state.npz", "state.npz has changed since it was written"),
        (os.remove, "stream.npz", "stream.npz is missing"),
        (os.remove, "manifest.json", "manifest.json is missing"),
        (truncate, "manifest.json", "manifest.json is damaged"),
    ],
)
def test_broken_newest_is_skipped(folder, damage, file, message):
    damage(folder / "step-00000010" / file)
    with pytest.warns(UserWarning, match=f"Skipping the checkpoint .*step-00000010: {message}"):
        assert resumed(folder, stream=stream()) == 5


def test_no_whole_checkpoint_is_an_error(folder):
    for step in ("step-00000005", "step-00000010"):
        truncate(folder / step / "state.npz")
    with (
        pytest.warns(UserWarning, match="Skipping"),
        pytest.raises(ValueError, match="No checkpoint in .* is whole"),
    ):
        resumed(folder, stream=stream())


def test_resume_without_checkpoints_starts_at_0(tmp_path):
    assert resumed(tmp_path / "none") == 0


def test_resume_restores_everything(folder, finished):
    model = small_run.make_model()
    data = stream()
    assert resumed(folder, model, stream=data) == 10
    assert data.start == 10 and int(model.optimizer.iterations) == 10
    for a, b in zip(weights(model), weights(finished[1]), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "model, options, message",
    [
        ({"hidden": 17}, {}, r"units: saved 16, now 17"),
        ({"total_steps": 50}, {}, r"total_steps: saved 40, now 50"),
        ({}, {"stream": stream(3)}, r"data/seed: saved 0, now 3"),
        ({}, {"fingerprint": {"vocabulary": "abc"}}, r"run/vocabulary: saved 'nothing', now 'abc'"),
    ],
)
def test_other_settings_are_named(folder, model, options, message):
    model = small_run.make_model(**model)
    before = weights(model)
    with pytest.raises(ValueError, match=f"(?s)use `init_from`. Received:.*{message}"):
        resumed(folder, model, **{"stream": stream(), **options})
    for a, b in zip(weights(model), before, strict=True):
        np.testing.assert_array_equal(a, b)


def test_full_disk_leaves_the_previous_whole(folder, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    model = small_run.make_model()
    data = stream()
    checkpoints = Checkpoints(folder, every=5, stream=data)
    monkeypatch.setattr(checkpoint_files.np, "savez", full)
    with pytest.raises(OSError, match="step 15 could not be saved .*No space left.*step-00000010"):
        fit_steps(model, data.batches, 20, 5, checkpoints=checkpoints, resume=True, verbose=0)
    assert sorted(os.listdir(folder)) == ["step-00000005", "step-00000010"]
    assert resumed(folder, stream=stream()) == 10


def test_a_new_run_does_not_touch_old_checkpoints(folder):
    data = stream()
    checkpoints = Checkpoints(folder, every=5, stream=data)
    log = folder.parent / "log.csv"
    log.write_text("step,loss\n10,1.0\n", encoding="utf-8")
    with pytest.raises(ValueError, match="already holds checkpoints .*--resume.*--output"):
        # Nor the log beside them, though its callback begins before that of the checkpoints.
        fit_steps(
            small_run.make_model(),
            data.batches,
            5,
            5,
            checkpoints=checkpoints,
            callbacks=[CSVLog(log)],
            verbose=0,
        )
    assert sorted(os.listdir(folder)) == ["step-00000005", "step-00000010"]
    assert log.read_text(encoding="utf-8") == "step,loss\n10,1.0\n"


def test_nothing_left_to_do(folder):
    data = stream()
    checkpoints = Checkpoints(folder, every=5, stream=data)
    history = fit_steps(
        small_run.make_model(), data.batches, 10, 5, checkpoints=checkpoints, resume=True
    )
    assert history is None and data.made == []


def test_files_hold_no_pickle(folder):
    path = folder / "step-00000010"
    manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["step"] == 10
    for name in manifest["files"]:
        assert all(a.dtype.kind != "O" for a in checkpoint_files.read_arrays(path / name).values())


def test_object_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"a.npz is not a readable .npz file"):
        checkpoint_files.read_arrays(tmp_path / "a.npz")


def test_init_from_takes_weights_only(folder, finished):
    for place in (folder, folder / "step-00000010"):
        model = small_run.make_model(total_steps=1000)  # another schedule
        path = init_from(model, place)
        assert path.name == "step-00000010"
        for a, b in zip(weights(model), weights(finished[1]), strict=True):
            np.testing.assert_array_equal(a, b)
        assert int(model.optimizer.iterations) == 0


def test_init_from_errors(tmp_path, folder):
    with pytest.raises(ValueError, match="`folder` must be a checkpoint"):
        init_from(small_run.make_model(), tmp_path)
    with pytest.raises(
        ValueError, match=r"hidden/kernel has shape \(48, 17\). Received: \(48, 16\)"
    ):
        init_from(small_run.make_model(hidden=17), folder)


def test_reduced_precision_variables_round_trip(tmp_path):
    from kctx.training.checkpoints import as_array, assign_all

    values = np.float32([1.0, 1.0 / 3, 1e30])
    one, two = (keras.Variable(v, dtype="bfloat16") for v in (values, values * 0))
    np.savez(tmp_path / "a.npz", v=as_array(one))
    assign_all({"v": two}, checkpoint_files.read_arrays(tmp_path / "a.npz"))
    np.testing.assert_array_equal(as_array(two), as_array(one))


@pytest.mark.parametrize("argument", [{"every": 0}, {"every": 1, "keep": 0}])
def test_bad_arguments(argument):
    with pytest.raises(ValueError, match="must be an integer of at least 1. Received: .*=0"):
        Checkpoints("folder", **argument)
    with pytest.raises(ValueError, match="`total_steps` must be .* Received: total_steps=0"):
        fit_steps(None, None, 0, 1)
