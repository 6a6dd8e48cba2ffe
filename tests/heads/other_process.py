"""What the tests of heads do in a process of its own.

python -m tests.heads.other_process [--export FOLDER] PRESET ...

Loads each preset and compares its output with what is stored beside it, in PRESET.npz. With
--export, the graphs of all go into one SavedModel, FOLDER/model, whose signatures are called
"<name of the preset's folder>.<signature>".
"""

import sys
from pathlib import Path

import numpy as np
from keras import ops

from kctx import presets


def compare(folder):
    """Raises unless a preset computes what it computed before; returns it."""
    text_model = presets.load(folder)
    with np.load(f"{folder}.npz") as stored:
        made = text_model.model({name: stored[name] for name in text_model.model.input})
        made = ops.convert_to_numpy(made)
        np.testing.assert_allclose(made, stored["output"], atol=1e-5, err_msg=folder)
    return text_model


def export(text_models, folder):
    """Saves the graphs of a dict of text models."""
    import tensorflow as tf

    from kctx.export.graph import TextGraph
    from kctx.export.stored_weights import StoredWeights
    from kctx.presets.task import input_limits

    together, signatures = tf.Module(), {}
    together.graphs = []
    for name, text_model in text_models.items():
        weights = StoredWeights(text_model.model)
        graph = TextGraph(text_model.asked(), weights, input_limits(text_model.model))
        together.graphs.append(graph)
        signatures |= {f"{name}.{key}": value for key, value in graph.signatures().items()}
    tf.saved_model.save(together, str(folder), signatures=signatures)


def main(arguments):
    target = None
    if arguments[0] == "--export":
        target, arguments = Path(arguments[1]) / "model", arguments[2:]
    found = {Path(folder).name: compare(folder) for folder in arguments}
    if target is not None:
        export(found, target)


if __name__ == "__main__":
    main(sys.argv[1:])
