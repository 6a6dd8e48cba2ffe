"""Names and shapes of all parameters, as models have them and as weight files hold them.

A weight file written today must load tomorrow, so the layout is frozen in `layout.json`. If it is
to change, write it anew, say so in the change log, and say there how old files are to be read:

    python -m tests.models.layout
"""

import json
import tempfile
from pathlib import Path

import h5py

from kctx.heads import Classifier, attach
from kctx.models import BERT
from kctx.objectives import Joint, MaskedLM, NextSentence

FILE = Path(__file__).with_name("layout.json")


def models():
    """BERT tiny, of a small vocabulary, by itself and in each kind of model."""

    def encoder():
        return BERT.from_size("tiny", vocabulary_size=30, max_sequence_length=16, name="bert")

    shared = encoder()
    return {
        "BERT": encoder(),
        "MaskedLM": MaskedLM(encoder()),
        "Joint": Joint([MaskedLM(shared), NextSentence(shared)]),
        "Classifier": attach(encoder(), Classifier(3, name="classifier")),
    }


def layout(model):
    """Parameters of a model, in order, and of its weight file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.weights.h5"
        model.save_weights(path)
        stored = {}

        def note(name, item):
            # Random states are no parameters.
            if isinstance(item, h5py.Dataset) and "seed_generator" not in name:
                stored[name] = list(item.shape)

        with h5py.File(path) as file:
            file.visititems(note)
    weights = model.trainable_weights
    return {"weights": [[x.path, list(x.shape)] for x in weights], "file": stored}


def layouts():
    return {name: layout(model) for name, model in models().items()}


def lines(made):
    """JSON with one parameter a line, so that a change shows as one in a comparison."""
    parts = []
    for name, kinds in made.items():
        weights = ",\n".join(f"   {json.dumps(entry)}" for entry in kinds["weights"])
        stored = ",\n".join(
            f"   {json.dumps(path)}: {json.dumps(kinds['file'][path])}"
            for path in sorted(kinds["file"])
        )
        parts.append(
            f' {json.dumps(name)}: {{\n  "weights": [\n{weights}\n  ],\n'
            f'  "file": {{\n{stored}\n  }}\n }}'
        )
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    FILE.write_text(lines(layouts()), encoding="utf-8")
    print(f"written: {FILE}")
