"""The half of an export that runs under the TensorFlow backend, in a process of its own.

python -m kctx.export.rebuild JOB_FOLDER

The folder holds `job.json` and `expected.npz`. The folder that the job names holds the preset and
becomes the SavedModel. An error is left in `error.txt` for the caller.
"""

import importlib
import os
import sys
import traceback
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

import kctx
from kctx import presets
from kctx.export.arguments import all_layers, default_examples
from kctx.export.documents import DEFAULT, write_documents
from kctx.export.graph import TextGraph
from kctx.export.stored_weights import StoredWeights
from kctx.files import read_json
from kctx.preprocessors.text_words import text_words
from kctx.presets.task import input_limits
from kctx.tasks import make_task


def main(job_folder):
    """Runs the job; returns the exit status."""
    job_folder = Path(job_folder)
    try:
        rebuild(job_folder, read_json(job_folder / "job.json"))
    except Exception as error:
        traceback.print_exc()
        (job_folder / "error.txt").write_text(f"{error}", encoding="utf-8")
        return 1
    return 0


def rebuild(job_folder, job):
    """Loads the preset, checks it against the caller's outputs and writes the SavedModel."""
    for module in job["modules"]:
        importlib.import_module(module)
    status("rebuilding the model under TensorFlow")
    folder = Path(job["folder"])
    extra = folder / "assets.extra"
    loaded = presets.load(extra / "preset", dtype=job["dtype"])
    model, preprocessor = loaded.model, loaded.preprocessor
    if job["dtype"] is None:
        check_outputs(model, job_folder / "expected.npz")
    task = make_task(job["task"], model, preprocessor, job["labels"], job["options"])
    embedding = None
    if job["embed"] is not None:
        embedding = make_task("embedding", model, preprocessor, None, {"pooling": job["embed"]})

    status("tracing the graphs")
    weights = StoredWeights(model, job["weights_dtype"])
    graph = TextGraph(task, weights, input_limits(model), embedding)
    signatures = graph.signatures()

    status("writing the SavedModel")
    tf.saved_model.save(graph, str(folder), signatures=signatures)

    status("running the examples")
    facts = {
        "name": job["name"],
        "version": job["version"],
        "task": job["task"],
        "labels": job["labels"],
        "options": {key: getattr(task, key) for key in task.defaults},
        "sequence_length": preprocessor.sequence_length,
        "weights_dtype": job["weights_dtype"] or "as trained",
        "kctx": kctx.__version__,
        "tensorflow": tf.version.VERSION,
        "text_ops": text_ops(folder),
    }
    asked = [tuple(x) if isinstance(x, list) else x for x in job["examples"]]  # as before JSON
    requests = examples(task, asked)
    if embedding is not None:
        requests["embed"] = examples(embedding, default_examples(embedding))[DEFAULT]
    write_documents(extra, signatures, requests, facts, task)


def check_outputs(model, path):
    """Compares the rebuilt model with what the caller's backend computed.

    Raises:
        ValueError: they differ by more than rounding, so the configuration does not hold all that
            the model does.
    """
    with np.load(path) as stored:
        inputs = {key[3:]: stored[key] for key in stored if key.startswith("in_")}
        expected = [stored[f"out_{index}"] for index in range(len(stored) - len(inputs))]
    found = keras.tree.flatten(model.predict_on_batch(inputs))
    float32 = all(layer.compute_dtype == "float32" for layer in all_layers(model))
    tolerance = 0.01 if float32 else 0.1
    for index, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        # What is impossible has the logit -1e9, which is no measure of what is.
        mine, theirs = (np.maximum(np.asarray(x, "float32"), -1e4) for x in (mine, theirs))
        size = np.abs(theirs[theirs > -1e4]).max(initial=1.0)
        difference = np.abs(mine - theirs).max(initial=0)
        if not difference <= tolerance * size:
            raise ValueError(
                f"The rebuilt model answers otherwise than `model`: output {index} differs by "
                f"{difference:.3g}. Does each of its layers have a complete `get_config`?"
            )


def examples(task, requests):
    """Signature -> list of inputs: one request, and all of them in one batch.

    Args:
        task: `kctx.tasks.Task`.
        requests: list of requests as `TextModel.predict_stream` takes them; raw texts, not words.
    """
    parts = [task.parts(request, number) for number, request in enumerate(requests)]
    found = {}
    for batch in (parts[:1], parts):
        columns = [list(column) for column in zip(*batch, strict=True)]
        task.check(columns)
        for name, fields in task.signatures().items():
            tensors = task.tensors(columns)
            if name == "pair" and len(columns) == 1:
                tensors = task.tensors([*columns, columns[0][::-1]])
            elif name == "words":
                tensors[0] = text_words(tensors[0], task.split).words.to_tensor("")
            inputs = dict(zip(fields, tensors, strict=False))  # not all take a second text
            found.setdefault(name, []).append(inputs)
        inputs, _ = task.prepare(DEFAULT, *found[DEFAULT][-1].values())
        found.setdefault("token_ids", []).append({key: inputs[key] for key in task.id_inputs})
    return found


def text_ops(folder):
    """Names of ops in a SavedModel that TensorFlow alone does not have.

    Raises:
        ValueError: an op is neither TensorFlow's nor TensorFlow Text's; no stock server has it.
    """
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    names = set()
    for graph in [meta_graph.graph_def for meta_graph in saved.meta_graphs]:
        for part in [graph.node, *[function.node_def for function in graph.library.function]]:
            names.update(node.op for node in part)
    foreign = {name for name in names if not hasattr(tf.raw_ops, name) and name[0] != "_"}
    known = set()
    for library in sorted(Path(tensorflow_text.__file__).parent.glob("python/ops/*.so")):
        known.update(dir(tf.load_op_library(str(library))))
    unknown = {name for name in foreign if name.replace(">", "_") not in known}
    if unknown:
        raise ValueError(
            "`preprocessor` and `model` must use ops of TensorFlow and TensorFlow Text only, which "
            f"a stock server has. Received: {', '.join(sorted(unknown))}"
        )
    return sorted(foreign)


def status(message):
    print(f"  {message}", flush=True)


if __name__ == "__main__":
    status_code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status_code)  # the exit handlers of the loaded libraries take seconds
