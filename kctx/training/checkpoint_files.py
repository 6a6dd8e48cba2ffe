"""Folders of checkpoints on disk: written whole or not at all, checked when read.

<folder>/step-00001000/
    manifest.json     step, fingerprint, and size and SHA-256 of each other file
    state.npz         variables of the model and the optimizer
    stream.npz        state of the data stream, if there is one
"""

import hashlib
import json
import os
import re
import shutil
import warnings
import zipfile
from pathlib import Path

import numpy as np

from kctx.files import flush, whole_file, write_json

MANIFEST = "manifest.json"


def step_folders(folder):
    """[(step, path)] of the checkpoints in `folder`, oldest first, whole or not."""
    folder = Path(folder)
    found = []
    for path in folder.iterdir() if folder.is_dir() else ():
        match = re.fullmatch(r"step-(\d{8,})", path.name)
        if match and path.is_dir():
            found.append((int(match[1]), path))
    return sorted(found)


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write(folder, step, arrays, fingerprint):
    """Writes the checkpoint of `step` beside the others, syncs it, and renames it into place.

    Args:
        folder: where the checkpoints of the run are; made if it is missing.
        step: int.
        arrays: dict of file stem to dict of arrays, one .npz each.
        fingerprint: what the run must agree with to go on from here; plain JSON.

    Raises:
        OSError: if the disk is full or refuses; what was there before is untouched.
    """
    folder = Path(folder)
    final = folder / f"step-{step:08d}"
    partial = folder / f".partial-{final.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for left_over in folder.glob(".partial-*"):
            shutil.rmtree(left_over)
        partial.mkdir()
        files = {}
        for stem, values in arrays.items():
            path = partial / f"{stem}.npz"
            with whole_file(path) as file:
                np.savez(file, **values)
            files[path.name] = {"bytes": path.stat().st_size, "sha256": digest(path)}
        manifest = {"format": 1, "step": step, "files": files, "fingerprint": fingerprint}
        write_json(partial / MANIFEST, manifest)
        flush(partial)
        if final.exists():  # an earlier try at the same step that was found broken
            shutil.rmtree(final)
        os.rename(partial, final)
        flush(folder)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        earlier = [path.name for _, path in step_folders(folder)]
        kept = f"the newest one before it, {earlier[-1]}, is kept" if earlier else "none is kept"
        raise OSError(
            error.errno,
            f"The checkpoint of step {step} could not be saved ({error}); {kept}",
            str(final),
        ) from error
    return final


def remove(path):
    """Removes a checkpoint; its manifest first, so that a kill in between leaves no half one."""
    (path / MANIFEST).unlink(missing_ok=True)
    shutil.rmtree(path)


def read_manifest(path):
    """The manifest of the checkpoint at `path` after checking its files.

    Raises:
        ValueError: if anything is missing, truncated or changed, with what it is.
    """
    path = Path(path)
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"].items()
        int(manifest["step"]), manifest["fingerprint"]
    except FileNotFoundError as error:
        raise ValueError(f"{MANIFEST} is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{MANIFEST} is damaged") from error
    for name, expected in files:
        file = path / name
        if not file.is_file():
            raise ValueError(f"{name} is missing")
        if file.stat().st_size != expected["bytes"]:
            raise ValueError(
                f"{name} has {file.stat().st_size} bytes instead of {expected['bytes']}"
            )
        if digest(file) != expected["sha256"]:
            raise ValueError(f"{name} has changed since it was written")
    return manifest


def newest(folder):
    """(path, manifest) of the newest whole checkpoint in `folder`, or None.

    Each broken one on the way is skipped with a warning.
    """
    for _, path in reversed(step_folders(folder)):
        try:
            return path, read_manifest(path)
        except ValueError as error:
            warnings.warn(f"Skipping the checkpoint {path}: {error}", stacklevel=2)
    return None


def read_arrays(path):
    """Dict of the arrays in the .npz file at `path`; never unpickles."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (zipfile.BadZipFile, ValueError) as error:
        raise ValueError(f"{path} is not a readable .npz file: {error}") from error
