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
import tensorflow as tf

from kctx import presets
from kctx.export.arguments import all_layers, check_arguments, default_examples
from kctx.export.documents import models_config
from kctx.files import replaced_folder, write_json, write_text


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
    pooling="mean",
    top_k=5,
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
        serving_default: `text` string (B,).
        pair: `text` and `text_pair` string (B,), for models taught on pairs; where the
            preprocessor takes them.
        token_ids: what the preprocessor makes; for BERT `token_ids` int32, `segment_ids` int32,
            `padding_mask` bool, (B, T) each.
    Outputs of each of them, by task:
        "classification": `label` string (B,), `score` float32 (B,), `scores` float32 (B, C), the
            probabilities in the order of the labels.
        "regression": `score` float32 (B,).
        "embedding": `embedding` float32 (B, D).
        "masked_lm": `tokens` string (B, M, K) and `scores` float32 (B, M, K), the most probable
            entries for each `[MASK]` in the text; `mask_count` int32 (B,).

    Beside the version lies `models.config`; within it, `assets.extra/` holds warm-up requests,
    request and response examples, `signature.json`, `README.md` and `preset/`. The version appears
    whole or not at all; versions that are there are never touched.

    Args:
        model: keras.Model. Classification and regression: from `kctx.heads.attach`, with logits;
            embedding: an encoder; masked_lm: a `kctx.objectives.MaskedLM` or a `Joint` with one.
        preprocessor: raw text to the inputs of the encoder, see `kctx.preprocessors`.
        path: folder of the model, whose versions are its subfolders.
        labels: list of C str, names of the classes. Default: "0", "1", ...
        task: "classification", "regression", "embedding" or "masked_lm". Default: told by the head,
            or by the names of the outputs.
        weights_dtype: None (as trained) or "bfloat16": half the size, cast to float32 once when
            the server loads them.
        dtype: dtype policy of the arithmetic, for instance "float32" for a model trained in
            "mixed_bfloat16". Default: the model's own.
        name: str, name under which it is served. Default: the last part of `path`.
        version: int of at least 1. Default: one more than the greatest there.
        pooling: "mean", "cls", "max" or "pooled", for embeddings.
        top_k: int, K, entries for each mask.
        examples: list of str, texts for the warm-up and the example requests.
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
    task, labels = check_arguments(
        model, preprocessor, labels, task, weights_dtype, name, version, pooling, top_k
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
            preset_task = task if task in ("classification", "regression") else None
            presets.save(preset, model, preprocessor, task=preset_task, labels=labels)
            examples = [examples] if isinstance(examples, str) else examples
            texts = list(examples or default_examples(preprocessor, task))
            if dtype is None:
                _write_expected(job_folder / "expected.npz", model, preprocessor, texts)
            job = {
                "folder": str(new.resolve()),
                "modules": modules,
                "task": task,
                "labels": labels,
                "weights_dtype": weights_dtype,
                "dtype": dtype,
                "name": name,
                "version": version,
                "pooling": pooling,
                "top_k": top_k,
                "examples": texts,
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


def _write_expected(path, model, preprocessor, texts):
    """What the model answers under the backend of the caller, for the child to compare."""
    inputs = {key: value.numpy() for key, value in preprocessor(tf.constant(texts)).items()}
    for key, tensor in model.input.items():
        if key not in inputs:  # positions to predict: any will do
            inputs[key] = np.zeros((len(texts), 1), tensor.dtype)
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
