"""Files and folders that are whole at every moment, and errors that say where one is broken.

What is written goes beside its place, is flushed to the disk and renamed: after a kill or a full
disk the place holds what it held before, or the new content, whole.
"""

import contextlib
import ctypes
import gzip
import json
import os
import shutil
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np


@contextlib.contextmanager
def whole_file(path):
    """Gives a binary file to write into, which takes the place of `path` once it is whole.

    Where `path` is a link, the file that it names is replaced. Devices and pipes, which cannot be,
    are written into.
    """
    path = Path(path)
    if path.is_dir():  # said now, not after hours of writing
        raise IsADirectoryError(f"A file must be given, not a folder. Received: {path}")
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_text(path, text):
    """Writes a UTF-8 file, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def write_json(path, value):
    """Writes a JSON file for people to read as well, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path):
    """A JSON file that holds a dict.

    Raises:
        ValueError: it is not whole, or not UTF-8, or holds something else; names the file.
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{path} must hold a dict. Received: {type(value).__name__}")
    return value


def read_array(path, memory_map=False):
    """A `.npy` file; no memory is taken for a size that the file cannot have.

    Raises:
        ValueError: it is cut short, or something else; names the file.
    """
    try:
        # Also where it is copied: a map is checked against the size of the file.
        values = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, TypeError, EOFError, OverflowError) as error:
        raise ValueError(f"{path} is truncated or no array: {error}") from error
    if not isinstance(values, np.ndarray):
        raise ValueError(f"{path} is no array, but several in one file.")
    return values if memory_map else np.array(values)


def is_gzipped(path):
    """Whether a file begins like gzip."""
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextlib.contextmanager
def unpacked(path):
    """Opens a file to read its bytes; one that begins like gzip is unpacked.

    Yields:
        (binary file, the file on the disk, whose `tell` says how much of it was read)

    Raises:
        ValueError: while reading, of a gzip file that is broken or cut short; names it.
    """
    with open(path, "rb") as raw:
        file = gzip.GzipFile(fileobj=raw) if is_gzipped(path) else raw
        try:
            yield file, raw
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} is a broken gzip file: {error}") from error


@contextlib.contextmanager
def replaced_folder(folder, known_files):
    """Gives a new folder to write into, which takes the place of `folder` once it is whole.

    Args:
        folder: str or `pathlib.Path`; its parents are made.
        known_files: names of files that may be replaced. A folder that holds anything else is not
            ours, and is refused rather than deleted.

    Yields:
        `pathlib.Path` of the folder to write into.

    Raises:
        FileExistsError: `folder` holds other files, or is a file.
        ValueError: `folder` is the working directory, which must not be replaced.
    """
    given, folder = folder, Path(folder).resolve()
    if folder == Path.cwd():
        raise ValueError(
            f"`folder` must not be the folder that the process works in. Received: {str(given)!r}"
        )
    if folder.exists():
        if not folder.is_dir():
            raise FileExistsError(f"`folder` must not be a file. Received: {folder}")
        foreign = sorted({entry.name for entry in folder.iterdir()} - set(known_files))
        if foreign:
            raise FileExistsError(
                f"`folder` holds files that would be lost: {', '.join(foreign[:5])}. Choose a "
                f"folder of its own. Received: {folder}"
            )
    folder.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    new, old = work / "new", work / "old"
    try:
        new.mkdir()
        yield new
        for path in [*new.rglob("*"), new]:
            flush(path)
        if folder.exists():
            _exchange(new, folder, old)
        else:
            os.rename(new, folder)
        flush(folder.parent)
    finally:
        if old.exists() and not folder.exists():  # stopped between two renames
            os.rename(old, folder)
        shutil.rmtree(work, ignore_errors=True)


def flush(path):
    """Waits until a file, or the list of entries of a folder, lies on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def warn_of_utf16(path, data):
    """Warns if a file that is read as plain bytes begins like UTF-16, whose words it cannot tell.

    Args:
        path: what to name.
        data: bytes, the beginning of the file.
    """
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        warnings.warn(
            f"{path} begins like UTF-16, of which words cannot be told apart: convert it to UTF-8.",
            stacklevel=3,
        )


def read_text(path, encoding=None):
    """The text of a file, without a byte order mark; line ends as they are.

    Args:
        path: file name.
        encoding: str that the caller let the user choose. Default: UTF-8, without a choice.

    Raises:
        ValueError: it is not in this encoding; names the file and the byte.
    """
    data, chosen = Path(path).read_bytes(), encoding or "utf-8"
    try:
        return data.decode(chosen).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise encoding_error(path, chosen, error.start, data, encoding is not None) from error


def encoding_error(path, encoding, byte_offset, data=b"", selectable=True):
    """The error for a file whose bytes are not text in the given encoding.

    Args:
        path: what to name.
        encoding: str, the one that was tried.
        byte_offset: int, where the first byte lies that does not fit.
        data: bytes, the beginning of the file.
        selectable: bool, whether the reader has an argument `encoding`. Default True.
    """
    parts = [f"{path} is not valid {encoding}: the byte at offset {byte_offset} does not fit."]
    if selectable:
        parts.append(
            "Give the encoding of the files (`encoding=`, for instance 'latin-1' or 'gb18030')."
        )
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        parts.append("The file begins like UTF-16: convert it to UTF-8.")
    return ValueError(" ".join(parts))


def _exchange(new, folder, old):
    """Puts `new` in the place of `folder` in one step where the system can, else in two renames.

    Between the two the old folder is whole, but lies at `old`: after an error the caller puts it
    back.
    """
    exchange, here = 2, -100  # RENAME_EXCHANGE, AT_FDCWD of Linux
    with contextlib.suppress(AttributeError, OSError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        if rename(here, os.fsencode(new), here, os.fsencode(folder), exchange) == 0:
            return
    os.rename(folder, old)
    os.rename(new, folder)
