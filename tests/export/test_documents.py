import json

import pytest
import tensorflow as tf

from kctx.export import documents

pytestmark = pytest.mark.once


def test_rest_request_is_rows_of_plain_json():
    inputs = {
        "text": tf.constant(["中文 \U0001f600", b"bad \xff byte"]),
        "token_ids": tf.constant([[2, 3], [4, 5]]),
        "padding_mask": tf.constant([[True, False], [True, True]]),
    }
    request = documents.rest_request("pair", inputs)
    assert json.loads(json.dumps(request)) == {
        "signature_name": "pair",
        "instances": [
            {"text": "中文 \U0001f600", "token_ids": [2, 3], "padding_mask": [True, False]},
            {"text": "bad \ufffd byte", "token_ids": [4, 5], "padding_mask": [True, True]},
        ],
    }


def test_nested_strings():
    value = tf.constant([[["中", ""], ["é", "x"]]])
    assert documents.as_json(value) == [[["中", ""], ["é", "x"]]]


def test_commands_quote_folders():
    assert documents.docker_line("/a b/films", "films") == (
        'docker run --rm -p 8500:8500 -p 8501:8501 -v "/a b/films:/models/films" '
        "-e MODEL_NAME=films tensorflow/serving"
    )
    assert documents.curl_line("x.json", "films") == (
        'curl -d @"x.json" http://localhost:8501/v1/models/films:predict'
    )
