"""An export in the hands of programs that know nothing of Keras or kctx."""

import functools
import json
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text
from tensorflow.core.protobuf import saved_model_pb2

from tests.export.films import LABELS, TEXTS, predict, softmax

HERE = Path(__file__).resolve().parent


def signature_definition(folder, name="serving_default"):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    return saved.meta_graphs[0].signature_def[name]


@functools.cache
def op_libraries(folder):
    """Shared objects of TensorFlow Text that an export needs."""
    described = json.loads((folder / "assets.extra" / "signature.json").read_text("utf-8"))
    ops = [op.encode("utf-8") for op in described["text_ops"]]
    libraries = Path(tensorflow_text.__file__).resolve().parent.glob("python/ops/*.so")
    return [library for library in libraries if any(op in library.read_bytes() for op in ops)]


def as_bytes(text):
    return text.encode("utf-8") if isinstance(text, str) else text


def test_bare_tensorflow_process_answers_raw_text(exported, tmp_path):
    inputs = exported.preprocessor(tf.constant(TEXTS))
    batches = [TEXTS, TEXTS[:1], TEXTS[:7], [], ["", ""]]
    requests = [
        {"signature": "serving_default", "inputs": {"text": [as_bytes(x).hex() for x in batch]}}
        for batch in batches
    ]
    ids = {key: value.numpy().tolist() for key, value in inputs.items()}
    requests.append({"signature": "token_ids", "inputs": ids})
    (tmp_path / "requests.json").write_text(json.dumps(requests), encoding="utf-8")
    command = [sys.executable, HERE / "bare_server.py", exported.folder]
    command += [tmp_path / "requests.json", tmp_path / "answers.npz"]
    result = subprocess.run(
        command + op_libraries(exported.folder),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    answers = np.load(tmp_path / "answers.npz")
    for index, batch in enumerate([*batches, TEXTS]):
        scores = answers[f"{index}/scores"]
        assert scores.shape == (len(batch), 3) and scores.dtype == np.float32
        if batch:
            expected = softmax(predict(exported.model, exported.preprocessor, batch))
            np.testing.assert_allclose(scores, expected, atol=1e-5)
            labels = [label.decode("utf-8") for label in answers[f"{index}/label"]]
            assert labels == [LABELS[best] for best in expected.argmax(-1)]


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to build a C program")
def test_c_program_answers_raw_text(exported, tmp_path):
    tensorflow_folder = Path(tf.__file__).resolve().parent
    program = tmp_path / "serve"
    subprocess.run(
        [
            *["gcc", "-Wall", "-Werror", HERE / "serve.c", "-o", program],
            *["-isystem", tensorflow_folder / "include", f"-L{tensorflow_folder}"],
            *["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"],
            *[f"-Wl,-rpath,{tensorflow_folder}", "-Wl,--allow-shlib-undefined"],
        ],
        check=True,
    )
    definition = signature_definition(exported.folder)
    input_operation = definition.inputs["text"].name.split(":")[0]
    output_operation, output_index = definition.outputs["scores"].name.split(":")
    texts = [as_bytes(text) for text in TEXTS]
    framed = struct.pack("<I", len(texts))
    framed += b"".join(struct.pack("<I", len(text)) + text for text in texts)
    command = [program, exported.folder, input_operation, output_operation, output_index]
    command += op_libraries(exported.folder)
    result = subprocess.run(command, input=framed, capture_output=True)
    assert result.returncode == 0, result.stderr.decode("utf-8", "replace")
    rank, rows, columns, *values = map(float, result.stdout.split())
    assert (rank, rows, columns) == (2, len(TEXTS), len(LABELS))
    expected = softmax(predict(exported.model, exported.preprocessor, TEXTS))
    np.testing.assert_allclose(np.reshape(values, expected.shape), expected, atol=1e-5)


def decode_rest(body, folder):
    """Body of a REST request to (signature name, tensors), as TensorFlow Serving decodes it.

    Row form: `instances` is a list of objects by input name, or of bare values where the signature
    has one input. Column form: `inputs` is an object by input name, or one bare value.
    """
    request = json.loads(body)
    name = request.get("signature_name", "serving_default")
    inputs = signature_definition(folder, name).inputs
    assert ("instances" in request) != ("inputs" in request)
    if "instances" in request:
        instances = request["instances"]
        if len(inputs) == 1 and not isinstance(instances[0], dict):
            instances = [{next(iter(inputs)): value} for value in instances]
        assert all(set(instance) == set(inputs) for instance in instances)
        columns = {key: [instance[key] for instance in instances] for key in inputs}
    else:
        columns = request["inputs"]
        if not isinstance(columns, dict):
            columns = {next(iter(inputs)): columns}
        assert set(columns) == set(inputs)
    return name, {
        key: tf.constant(value, tf.dtypes.as_dtype(inputs[key].dtype))
        for key, value in columns.items()
    }


def test_rest_requests(exported, served):
    texts = [text for text in TEXTS if isinstance(text, str)]
    expected = softmax(predict(exported.model, exported.preprocessor, texts))
    bodies = [
        {"instances": texts},
        {"instances": [{"text": text} for text in texts]},
        {"inputs": texts},
        {"inputs": {"text": texts}, "signature_name": "serving_default"},
    ]
    for body in bodies:
        name, inputs = decode_rest(json.dumps(body), exported.folder)
        scores = served.signatures[name](**inputs)["scores"]
        np.testing.assert_allclose(scores, expected, atol=1e-5)


@pytest.mark.parametrize("suffix", ["", "_pair", "_token_ids"])
def test_request_examples_are_valid(exported, served, suffix):
    extra = exported.folder / "assets.extra"
    body = (extra / f"request_example{suffix}.json").read_text(encoding="utf-8")
    name, inputs = decode_rest(body, exported.folder)
    assert name == suffix[1:] or (name, suffix) == ("serving_default", "")
    answers = served.signatures[name](**inputs)
    if name == "serving_default":
        response = json.loads((extra / "response_example.json").read_text(encoding="utf-8"))
        (row,) = response["predictions"]
        assert list(row) == ["label", "score", "scores"]
        assert row["label"] == answers["label"][0].numpy().decode("utf-8")
        np.testing.assert_allclose(row["scores"], answers["scores"][0], atol=1e-6)


def test_predict_request_proto(exported, served):
    predict_pb2 = pytest.importorskip("tensorflow_serving.apis.predict_pb2")
    request = predict_pb2.PredictRequest()
    request.model_spec.name = "films"
    request.model_spec.signature_name = "serving_default"
    request.inputs["text"].CopyFrom(tf.make_tensor_proto([as_bytes(text) for text in TEXTS]))
    received = predict_pb2.PredictRequest.FromString(request.SerializeToString())
    inputs = {key: tf.constant(tf.make_ndarray(proto)) for key, proto in received.inputs.items()}
    answers = served.signatures[received.model_spec.signature_name](**inputs)
    expected = softmax(predict(exported.model, exported.preprocessor, TEXTS))
    np.testing.assert_allclose(answers["scores"], expected, atol=1e-5)


def test_warmup_requests_replay(exported, served):
    pb2 = pytest.importorskip("tensorflow_serving.apis.prediction_log_pb2")
    path = exported.folder / "assets.extra" / "tf_serving_warmup_requests"
    records = [record.numpy() for record in tf.data.TFRecordDataset(str(path))]
    logs = [pb2.PredictionLog.FromString(record) for record in records]
    replayed = []
    for log in logs:
        assert log.WhichOneof("log_type") == "predict_log"
        request = log.predict_log.request
        assert request.model_spec.name == "films"
        name = request.model_spec.signature_name
        definition = signature_definition(exported.folder, name)
        assert {key: proto.dtype for key, proto in request.inputs.items()} == {
            key: info.dtype for key, info in definition.inputs.items()
        }
        inputs = {key: tf.constant(tf.make_ndarray(proto)) for key, proto in request.inputs.items()}
        replayed.append((name, len(served.signatures[name](**inputs)["score"])))
    assert replayed == [
        (name, batch) for name in ("serving_default", "pair", "token_ids") for batch in (1, 2)
    ]
