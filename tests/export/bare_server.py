"""Answers requests from a SavedModel with nothing but TensorFlow and TensorFlow Text.

python bare_server.py MODEL_FOLDER REQUESTS.json ANSWERS.npz

Requests: a list of {"signature", "inputs": {name: nested list}}, strings as hexadecimal bytes.
"""

import json
import sys

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  registers its ops

signatures = tf.saved_model.load(sys.argv[1]).signatures
with open(sys.argv[2], encoding="utf-8") as file:
    requests = json.load(file)
answers = {}
for index, request in enumerate(requests):
    function = signatures[request["signature"]]
    inputs = {}
    for name, spec in function.structured_input_signature[1].items():
        value = request["inputs"][name]
        if spec.dtype == tf.string:
            value = [bytes.fromhex(text) for text in value]
        inputs[name] = tf.constant(value, spec.dtype)
    for name, value in function(**inputs).items():
        value = value.numpy()
        answers[f"{index}/{name}"] = value.astype("S") if value.dtype == object else value
strangers = {"keras", "kctx", "keras_hub", "keras_nlp"} & set(sys.modules)
assert not strangers, strangers
np.savez(sys.argv[3], **answers)
