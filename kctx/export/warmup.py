"""Warm-up requests, which a server replays before it answers the first client.

The file is a TFRecord of `PredictionLog` messages. Only TensorFlow Serving's own package defines
them, so the few nested fields are encoded here; the tensors inside come from TensorFlow.
"""

import tensorflow as tf

# Field numbers of tensorflow_serving/apis: prediction_log, predict and model.proto.
PREDICT_LOG, REQUEST = 6, 1
MODEL_SPEC, INPUTS = 1, 2
NAME, SIGNATURE_NAME = 1, 3
MAP_KEY, MAP_VALUE = 1, 2


def field(number, payload):
    """One length-delimited protobuf field: key, length, bytes."""
    payload = payload.encode("utf-8") if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def varint(value):
    """A non-negative int in base 128, lowest digits first."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def prediction_log(model_name, signature_name, inputs):
    """The bytes of a `PredictionLog` that holds one `PredictRequest`.

    Args:
        model_name: str.
        signature_name: str.
        inputs: dict of str to tensor or array.
    """
    request = field(
        MODEL_SPEC, field(NAME, model_name) + field(SIGNATURE_NAME, signature_name)
    ) + b"".join(
        field(
            INPUTS,
            field(MAP_KEY, key) + field(MAP_VALUE, tf.make_tensor_proto(value).SerializeToString()),
        )
        for key, value in sorted(inputs.items())
    )
    return field(PREDICT_LOG, field(REQUEST, request))


def write_warmup(path, model_name, requests):
    """Writes requests, a list of (signature name, dict of inputs), as a warm-up file."""
    with tf.io.TFRecordWriter(str(path)) as writer:
        for signature_name, inputs in requests:
            writer.write(prediction_log(model_name, signature_name, inputs))
