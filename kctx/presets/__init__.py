"""A model, its preprocessor and its labels as one plain folder, written and read by one call.

    config.json         the model's configuration, as Keras serialises it
    model.weights.h5    its weights, in Keras' format
    metadata.json       versions of this layout and the libraries, number of parameters, files
    preprocessor.json, and the tokenizer's files beside it (tokenizer.json and vocabulary.txt)
                        from raw text to the model's inputs, optional
    task.json           {"task": a name of `kctx.tasks`, "labels": [...], "options": {...}},
                        optional

Nothing in it is code. An encoder's folder can also be read with
`keras_nlp.models.Backbone.from_preset`, once kctx is imported.
"""

from kctx.presets.from_vectors import from_vectors
from kctx.presets.reading import load
from kctx.presets.text_model import TextModel
from kctx.presets.writing import save

__all__ = ["TextModel", "from_vectors", "load", "save"]
