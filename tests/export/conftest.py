"""One exported classifier for all tests of this folder."""

import types

import pytest

from tests.export.films import LABELS, make_encoder, make_preprocessor, with_lively_weights


@pytest.fixture(scope="session")
def exported(tmp_path_factory):
    """A classifier and version 1 of its export."""
    from kctx import export, heads

    preprocessor = make_preprocessor()
    model = with_lively_weights(heads.attach(make_encoder(), heads.Classifier(len(LABELS))))
    path = tmp_path_factory.mktemp("served") / "films"
    folder = export.saved_model(model, preprocessor, path, labels=LABELS)
    return types.SimpleNamespace(
        path=path, folder=folder, model=model, preprocessor=preprocessor, labels=LABELS
    )


@pytest.fixture(scope="session")
def served(exported):
    """The signatures of that export, loaded by TensorFlow."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(exported.folder))
    signatures = loaded.signatures
    return types.SimpleNamespace(loaded=loaded, signatures=signatures)
