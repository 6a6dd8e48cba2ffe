"""A folder that is whole at every moment, whatever happens while it is written."""

import contextlib
import ctypes
import os
import shutil
import tempfile
from pathlib import Path


@contextlib.contextmanager
def replaced_folder(folder, known_files):
    """Gives a new folder to write into, which takes the place of `folder` once it is whole.

    The new folder is written beside its place, flushed to the disk and renamed. After a kill at
    any moment the place holds either the old folder or the new one, whole; if writing fails, the
    old one stays.

    Args:
        folder: str or `pathlib.Path`; its parents are made.
        known_files: names of files that may be replaced. A folder that holds anything else is not
            ours, and is refused rather than deleted.

    Yields:
        `pathlib.Path` of the folder to write into.

    Raises:
        FileExistsError: `folder` holds other files, or is a file.
    """
    folder = Path(folder).resolve()
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
    try:
        new = work / "new"
        new.mkdir()
        yield new
        for path in [*new.rglob("*"), new]:
            flush(path)
        if folder.exists():
            _exchange(new, folder, work / "old")
        else:
            os.rename(new, folder)
        flush(folder.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def flush(path):
    """Waits until a file, or the list of entries of a folder, lies on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _exchange(new, folder, old):
    """Puts `new` in the place of `folder` in one step where the system can, else in two renames.

    Between the two the old folder is whole, but lies at `old`.
    """
    exchange, here = 2, -100  # RENAME_EXCHANGE, AT_FDCWD of Linux
    with contextlib.suppress(AttributeError, OSError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        if rename(here, os.fsencode(new), here, os.fsencode(folder), exchange) == 0:
            return
    os.rename(folder, old)
    os.rename(new, folder)
