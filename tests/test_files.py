"""Nothing is ever half written."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from kctx import files

pytestmark = pytest.mark.once


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "vocabulary.txt"
    files.write_text(path, "old\n")

    def full(descriptor):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        files.write_text(path, "new\n")
    assert [x.name for x in tmp_path.iterdir()] == ["vocabulary.txt"]
    assert path.read_text(encoding="utf-8") == "old\n"


def test_links_and_pipes_stay_what_they_are(tmp_path):
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    files.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    files.write_text(tmp_path / "pipe", "through")
    assert os.read(reader, 99) == b"through" and (tmp_path / "pipe").is_fifo()
    os.close(reader)


def test_json_round_trip_and_errors(tmp_path):
    path = tmp_path / "new" / "a.json"
    files.write_json(path, {"ß": [1, None]})
    assert files.read_json(path) == {"ß": [1, None]}
    assert "ß" in path.read_text(encoding="utf-8")
    path.write_bytes(b'{"a": ')
    with pytest.raises(ValueError, match=r"a\.json is not valid JSON"):
        files.read_json(path)
    path.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match=r"a\.json is not valid JSON"):
        files.read_json(path)
    path.write_bytes(b"[1]")
    with pytest.raises(ValueError, match=r"a\.json must hold a dict. Received: list"):
        files.read_json(path)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_an_error_between_two_renames_puts_the_old_folder_back(tmp_path, monkeypatch, error):
    """Where the system cannot exchange two folders in one step."""
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "a").write_text("old", encoding="utf-8")
    rename = files.os.rename

    def no_system_call(*args, **kwargs):
        raise OSError("no such call")

    def stop_at_the_second(source, target):
        if source.name == "new":
            raise error
        rename(source, target)

    monkeypatch.setattr(files.ctypes, "CDLL", no_system_call)
    monkeypatch.setattr(files.os, "rename", stop_at_the_second)
    with pytest.raises(type(error)), files.replaced_folder(folder, ("a",)) as new:
        (new / "a").write_text("new", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert (folder / "a").read_text(encoding="utf-8") == "old"

    monkeypatch.setattr(files.os, "rename", rename)
    with files.replaced_folder(folder, ("a",)) as new:
        (new / "a").write_text("new", encoding="utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["p"]
    assert (folder / "a").read_text(encoding="utf-8") == "new"


def test_advice_on_encodings_is_for_readers_that_take_one():
    assert "`encoding=`" in str(files.encoding_error("x.txt", "utf-8", 3))
    message = str(files.encoding_error("x.txt", "utf-8", 0, b"\xff\xfea", selectable=False))
    assert message == (
        "x.txt is not valid utf-8: the byte at offset 0 does not fit. The file begins like "
        "UTF-16: convert it to UTF-8."
    )


def test_kill_while_replacing(tmp_path):
    """A process that does nothing but replace a folder is killed many times: it stays whole."""
    program = (
        "import sys, itertools; sys.path.insert(0, sys.argv[2])\n"
        "import importlib.util\n"
        "spec = importlib.util.spec_from_file_location('files', sys.argv[3])\n"
        "module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module)\n"
        "for i in itertools.count():\n"
        "    with module.replaced_folder(sys.argv[1], ('a', 'b')) as new:\n"
        "        for name in ('a', 'b'): (new / name).write_text(str(i) * 10000)\n"
        "    print(i, flush=True)\n"
    )
    for attempt in range(8):
        command = [sys.executable, "-c", program, tmp_path / "p", ".", files.__file__]
        child = subprocess.Popen(command, stdout=subprocess.PIPE)
        for _ in range(1 + attempt):
            assert child.stdout.readline()
        child.send_signal(signal.SIGKILL)
        child.wait()
        first, second = ((tmp_path / "p" / name).read_text() for name in ("a", "b"))
        assert first == second and len(first) >= 10000


def test_arrays_whose_header_lies(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6, dtype="float32").reshape(3, 2))
    for memory_map in (False, True):
        array = files.read_array(path, memory_map)
        assert array.tolist() == [[0, 1], [2, 3], [4, 5]]
        assert isinstance(array, np.memmap) == memory_map
    data = path.read_bytes().replace(b"(3, 2), }" + b" " * 12, b"(3000000000000, 2), }")
    assert b"3000000000000" in data
    for content in (data, data[:-1], b"", b"text"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="a.npy is truncated or no array"):
            files.read_array(path)
    np.savez(tmp_path / "b.npz", a=np.zeros(2))
    with pytest.raises(ValueError, match="b.npz is no array"):
        files.read_array(tmp_path / "b.npz")


def test_a_folder_is_refused_before_anything_is_written(tmp_path):
    message = "A file must be given, not a folder"
    with pytest.raises(IsADirectoryError, match=message), files.whole_file(tmp_path):
        pytest.fail("nothing must be written")


def test_json_of_too_many_brackets_names_the_file(tmp_path):
    (tmp_path / "a.json").write_text("[" * 200_000, encoding="utf-8")
    with pytest.raises(ValueError, match="a.json is not valid JSON: maximum recursion"):
        files.read_json(tmp_path / "a.json")
