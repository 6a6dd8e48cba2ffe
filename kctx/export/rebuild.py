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
from kctx.export import answers
from kctx.export.arguments import all_layers
from kctx.export.documents import DEFAULT, write_documents
from kctx.export.graph import TextGraph
from kctx.export.stored_weights import StoredWeights
from kctx.files import read_json
from kctx.presets.task import input_limits


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
    if job["task"] == "masked_lm":
        # [MASK] in a text is the mask token here.
        tokenizer = preprocessor.tokenizer.with_options(special_tokens_in_text=True)
        preprocessor = preprocessor.with_options(tokenizer=tokenizer)

    status("tracing the graphs")
    weights = StoredWeights(model, job["weights_dtype"])
    graph = TextGraph(
        model,
        preprocessor,
        make_answer(job, preprocessor),
        weights,
        input_limits(model),
    )
    signatures = graph.signatures()

    status("writing the SavedModel")
    tf.saved_model.save(graph, str(folder), signatures=signatures)

    status("running the examples")
    facts = {
        "name": job["name"],
        "version": job["version"],
        "task": job["task"],
        "labels": job["labels"],
        "sequence_length": preprocessor.sequence_length,
        "weights_dtype": job["weights_dtype"] or "as trained",
        "kctx": kctx.__version__,
        "tensorflow": tf.version.VERSION,
        "text_ops": text_ops(folder),
    }
    requests = examples(preprocessor, job["examples"])
    write_documents(extra, signatures, requests, facts, preprocessor.inputs)


def make_answer(job, preprocessor):
    """The answer of a task, see `kctx.export.answers`."""
    if job["task"] == "classification":
        return answers.Classification(job["labels"])
    if job["task"] == "regression":
        return answers.Regression()
    if job["task"] == "embedding":
        return answers.Embedding(job["pooling"])
    tokenizer = preprocessor.tokenizer
    return answers.MaskedLM(tokenizer.vocabulary, tokenizer.mask_id, job["top_k"])


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
        difference = np.abs(np.asarray(mine, "float32") - theirs).max(initial=0)
        if not difference <= tolerance * max(1.0, np.abs(theirs).max(initial=0)):
            raise ValueError(
                f"The rebuilt model answers otherwise than `model`: output {index} differs by "
                f"{difference:.3g}. Does each of its layers have a complete `get_config`?"
            )


def examples(preprocessor, texts):
    """Signature -> list of inputs: one text, and all of them in one batch."""
    batches = [texts[:1], texts]
    requests = {DEFAULT: [{"text": tf.constant(batch)} for batch in batches]}
    if preprocessor.takes_pairs:
        requests["pair"] = [
            {"text": tf.constant(batch), "text_pair": tf.constant(batch[::-1])} for batch in batches
        ]
    return {**requests, "token_ids": [preprocessor(tf.constant(batch)) for batch in batches]}


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
