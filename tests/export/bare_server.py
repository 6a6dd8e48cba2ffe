"""Answers requests from a SavedModel with nothing but TensorFlow and the ops of TensorFlow Text.

python bare_server.py MODEL_FOLDER REQUESTS.json ANSWERS.npz [OP_LIBRARY ...]

Requests: a list of {"signature", "inputs": {name: nested list}}, strings as hexadecimal bytes,
nested as they may be.
"""

import json
import sys

# TensorFlow imports Keras where it finds it; here nobody finds it.
STRANGERS = ("keras", "kctx", "keras_hub", "keras_nlp", "tensorflow_text")
sys.modules.update(dict.fromkeys(STRANGERS))

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402


def as_bytes(value):
    """Nested lists of hexadecimal strings as bytes."""
    return [as_bytes(x) for x in value] if isinstance(value, list) else bytes.fromhex(value)


# What `import tensorflow_text` does too.
for library in sys.argv[4:]:
    tf.load_op_library(library)

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
            value = as_bytes(value)
        inputs[name] = tf.constant(value, spec.dtype)
    for name, value in function(**inputs).items():
        value = value.numpy()
        answers[f"{index}/{name}"] = value.astype("S") if value.dtype == object else value
assert not any(sys.modules[name] for name in STRANGERS)
np.savez(sys.argv[3], **answers)
