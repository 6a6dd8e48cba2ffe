"""One call from a trained model to a folder that TensorFlow Serving serves."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np

from kctx import presets
from kctx.export.arguments import (
    all_layers,
    check_arguments,
    example_requests,
    with_own_options,
)
from kctx.export.documents import models_config
from kctx.files import replaced_folder, write_json, write_text
from kctx.tasks import task_of


class ExportError(RuntimeError):
    """The export could not be made; nothing was left at its place."""


def saved_model(
    model,
    preprocessor,
    path,
    labels=None,
    task=None,
    weights_dtype=None,
    dtype=None,
    name=None,
    version=None,
    pooling=None,
    top_k=None,
    options=None,
    embed=None,
    examples=None,
    include_preset=True,
    verbose=True,
):
    """Writes a SavedModel that takes raw text and gives named answers: `<path>/<version>/`.

    The model may have been trained under any Keras backend: its configuration and weights are
    rebuilt under the TensorFlow backend in a child process, and compared there with what the model
    answers here, unless `dtype` asks for another arithmetic. To load the result needs neither Keras
    nor kctx, only TensorFlow and the ops of TensorFlow Text that the stock server links; in Python,
    `import tensorflow_text` beside `import tensorflow`.

    Signatures, with batch size B and length T free (0 texts give 0 answers):
        serving_default: `text` string (B,); for "span" `question` and `context`, for
            "multiple_choice" `context` and `choices` (B, N), for "similarity" `text` and `text_b`;
            of a `RoleTagger` `text` and `predicate` int32 (B,), the number of a word; for
            "coreference" `text` and `mentions` int32 (B, M, 2), code points, -1 behind the last.
        pair: `text` and `text_pair` string (B,), for classifiers and regressors, where the
            preprocessor takes them. Those taught on pairs take both as `serving_default`, too.
        words: for "tagging" and "coreference", `words` string (B, W), "" behind the last one, in
            place of `text`; mentions are numbers of words then.
        token_ids: what the preprocessor makes; for BERT `token_ids` int32, `segment_ids` int32,
            `padding_mask` bool, (B, T) each. Heads that look at more take that too: places of
            words and mentions, which tokens may be an answer, several choices or a second text,
            see `signature.json`. It answers in places of tokens where the others answer in text.
        embed: `text` string (B,) to `embedding` float32 (B, D), where it is asked for.
    The outputs of each task are those of `kctx.export.answers.MEANINGS`, of `token_ids` the
    `id_meanings` of its class, and those that
    `TextModel.predict` gives: the same lines make both.

    Beside the version lies `models.config`; within it, `assets.extra/` holds warm-up requests,
    request and response examples, `signature.json`, `README.md` and `preset/`. The version appears
    whole or not at all; versions that are there are never touched.

    Args:
        model: keras.Model: an encoder with a head of `kctx.heads`; for embedding anything with an
            encoder; for masked_lm a `kctx.objectives.MaskedLM` or a `Joint` with one.
        preprocessor: raw text to the inputs of the encoder, see `kctx.preprocessors`.
        path: folder of the model, whose versions are its subfolders.
        labels: list of C str, names of the classes or tags. Default: "0", "1", ...
        task: str, a key of `kctx.tasks.TASKS`. Default: told by the head, or by the names of the
            outputs.
        weights_dtype: None (as trained) or "bfloat16": half the size, cast to float32 once when
            the server loads them.
        dtype: dtype policy of the arithmetic, for instance "float32" for a model trained in
            "mixed_bfloat16". Default: the model's own.
        name: str, name under which it is served. Default: the last part of `path`.
        version: int of at least 1. Default: one more than the greatest there.
        pooling: one of `kctx.tasks.POOLINGS`, for the task "embedding". Default: of `options`, or
            "mean".
        top_k: int, K, entries for each mask, for the task "masked_lm". Default: of `options`, or 5.
        options: dict, options of the task, see its class.
        embed: one of `kctx.tasks.POOLINGS`, for a signature `embed` beside those of the task.
            Default: none.
        examples: list of requests, for the warm-up and the example requests: texts, or tuples or
            dicts of a request's parts, see `TextModel.predict_stream`.
        include_preset: whether the model itself is put into `assets.extra/preset`.
        verbose: whether a line is printed for each step.

    Returns:
        pathlib.Path of the version.

    Raises:
        ValueError: an argument does not fit the model, or nothing tells its task.
        FileExistsError: the version is there already.
        ExportError: the child process failed; with its message.
    """
    path = Path(path)
    name = path.resolve().name if name is None else name
    if task is None:
        task = task_of(model, labels)
    options = with_own_options(task, options, pooling=pooling, top_k=top_k)
    task, labels = check_arguments(
        model, preprocessor, labels, task, options, weights_dtype, name, version, embed
    )
    modules = defining_modules(model, preprocessor)
    made_path = not path.exists()
    version = next_version(path) if version is None else version
    folder = path / str(version)
    try:
        _refuse_existing(folder)
        # Written beside the versions under a name that servers do not read, and renamed at last.
        with replaced_folder(folder, ()) as new, tempfile.TemporaryDirectory() as job_folder:
            job_folder = Path(job_folder)
            preset = new / "assets.extra" / "preset"
            _status(verbose, f"Exporting {model.name} to {folder}")
            presets.save(preset, model, preprocessor, task.name, labels, options)
            requests = example_requests(task, examples)
            if dtype is None:
                _write_expected(job_folder / "expected.npz", model, task, requests)
            job = {
                "folder": str(new.resolve()),
                "modules": modules,
                "task": task.name,
                "labels": labels,
                "options": options,
                "embed": embed,
                "weights_dtype": weights_dtype,
                "dtype": dtype,
                "name": name,
                "version": version,
                "examples": requests,
            }
            write_json(job_folder / "job.json", job)
            _run_child(job_folder, verbose)
            if not include_preset:
                shutil.rmtree(preset)
            _refuse_existing(folder)  # another export may have taken the number meanwhile
    except BaseException:
        if made_path:
            with contextlib.suppress(OSError):  # not there, or not empty
                path.rmdir()
        raise
    if not (path / "models.config").exists():  # else it is the keeper's, who may have changed it
        write_text(path / "models.config", models_config(name))
    _status(verbose, f"Exported {folder}")
    return folder


def next_version(path):
    """One more than the greatest version in a folder; 1 where there is none."""
    entries = path.iterdir() if path.exists() else ()
    found = [int(entry.name) for entry in entries if entry.name.isdecimal()]
    return max(found, default=0) + 1


def defining_modules(model, preprocessor):
    """Modules that a fresh process must import to know all classes of a model.

    Raises:
        ValueError: a class was defined in a script or a notebook, which cannot be imported.
    """
    found = {}
    for part in [preprocessor, *all_layers(model)]:
        for cls in type(part).__mro__:
            if cls.__module__.split(".")[0] not in ("keras", "keras_hub", "builtins", "torch"):
                found[cls.__module__] = cls
    if "__main__" in found:
        raise ValueError(
            f"`model` must not hold {found['__main__'].__name__}, which is defined in the script "
            "that runs. Move it to a module of its own, which the export can import."
        )
    return sorted(found)


def _write_expected(path, model, task, requests):
    """What the model answers under the backend of the caller, for the child to compare."""
    parts = [task.parts(request, number) for number, request in enumerate(requests)]
    columns = [list(column) for column in zip(*parts, strict=True)]
    inputs, _ = task.prepare(task.check(columns), *task.tensors(columns))
    inputs = {key: np.asarray(value) for key, value in inputs.items()}
    for key, tensor in model.input.items():
        if key not in inputs:  # positions to predict: any will do
            inputs[key] = np.zeros((len(parts), 1), tensor.dtype)
    inputs = {key: inputs[key] for key in model.input}
    outputs = keras.tree.flatten(model.predict_on_batch(inputs))
    np.savez(
        path,
        **{f"in_{key}": value for key, value in inputs.items()},
        **{f"out_{index}": np.asarray(value, "float32") for index, value in enumerate(outputs)},
    )


def _run_child(job_folder, verbose):
    """Runs `kctx.export.rebuild` under TensorFlow; its error becomes ours."""
    environment = {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        **os.environ,
        "KERAS_BACKEND": "tensorflow",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": os.pathsep.join(entry or os.getcwd() for entry in sys.path),
        "CUDA_VISIBLE_DEVICES": "-1",  # the accelerator is the caller's
        "KCTX_CHECK_IDS": "0",  # the graph has its own checks, where ids come from a client
    }
    command = [sys.executable, "-m", "kctx.export.rebuild", str(job_folder.resolve())]
    log_path = job_folder / "log.txt"
    with log_path.open("wb") as log:
        child = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=log, encoding="utf-8"
        )
        try:
            for line in child.stdout:
                _status(verbose, line.rstrip())
        finally:
            if sys.exc_info()[0] is not None:
                child.kill()
            status = child.wait()
    if status:
        error = job_folder / "error.txt"
        if error.exists():
            raise ExportError(error.read_text(encoding="utf-8"))
        tail = log_path.read_text(encoding="utf-8", errors="replace")[-2000:]
        raise ExportError(f"The export process ended with status {status}. It said:\n{tail}")


def _refuse_existing(folder):
    if folder.exists():
        raise FileExistsError(f"`version` must be a new one. Received: {folder}")


def _status(verbose, line):
    if verbose:
        print(line, flush=True)
