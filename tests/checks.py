"""What is true of every entry of the catalogue, as functions of an entry."""

import copy

import keras
import numpy as np
from keras import tree

from tests.catalogue import batch

TOLERANCE = {"mixed_bfloat16": 6e-2, "mixed_float16": 1e-2}


def outputs(model, inputs, training=False):
    """Outputs as a flat list of float32 arrays."""
    made = tree.flatten(model(inputs, training=training))
    return [np.asarray(keras.ops.convert_to_numpy(keras.ops.cast(x, "float32"))) for x in made]


def real(array, lengths):
    """What stands for real tokens in an output: rows cut to their lengths if it is (B, T, ...)."""
    if array.ndim >= 3 and array.shape[1] >= max(lengths):
        return [row[:length] for row, length in zip(array, lengths, strict=True)]
    return list(array)


def assert_same(got, expected, lengths, atol=2e-6):
    for one, other in zip(got, expected, strict=True):
        for row, wanted in zip(real(one, lengths), real(other, lengths), strict=True):
            np.testing.assert_allclose(row, wanted, atol=atol, rtol=1e-5)


def check_config_round_trip(entry):
    """A model rebuilt from its configuration has the same one, names included."""
    config = keras.saving.serialize_keras_object(entry.build())
    rebuilt = keras.saving.deserialize_keras_object(copy.deepcopy(config))  # it empties its input
    assert keras.saving.serialize_keras_object(rebuilt)["config"] == config["config"]


def check_alone_as_in_a_batch(entry):
    model = entry.build()
    lengths = (6, 4, 1)
    together = outputs(model, batch(model.input, lengths))
    inputs = batch(model.input, lengths)
    for row, length in enumerate(lengths):
        alone = outputs(model, {name: value[row : row + 1] for name, value in inputs.items()})
        assert_same(alone, [x[row : row + 1] for x in together], (length,))


def check_more_padding_changes_nothing(entry):
    model = entry.build()
    if not {"padding_mask", "attention_mask"} & set(model.input):
        return
    lengths = (6, 4, 1)
    short = outputs(model, batch(model.input, lengths, length=6))
    long = outputs(model, batch(model.input, lengths, length=9))
    assert_same(long, short, lengths)


def check_padding_does_not_matter(entry):
    """Whatever stands in the padding of one row changes neither it nor another row."""
    model = entry.build()
    masks = {"padding_mask", "attention_mask"} & set(model.input)
    if not masks:
        return
    lengths = (6, 4, 1)
    inputs = batch(model.input, lengths)
    padding = np.arange(6)[None] >= np.array(lengths)[:, None]  # (B, T)
    changed = dict(inputs)
    for name, value in inputs.items():
        if name.removesuffix("_b") in ("token_ids", "segment_ids", "subword_ids", "x"):
            mask = inputs.get("padding_mask")
            value = value.copy()
            # The mask may have an axis of choices.
            value[padding if mask is None else ~mask] = 1 if value.dtype == "int32" else 7.0
            changed[name] = value
    assert_same(outputs(model, changed), outputs(model, inputs), lengths)


def check_row_of_padding_is_finite(entry):
    """In values and, through a training step, in gradients."""
    model = entry.build()
    inputs = batch(model.input, (6, 0, 1))
    assert all(np.isfinite(x).all() for x in outputs(model, inputs))
    train_once(model, inputs)
    for weight in model.weights:
        assert np.isfinite(keras.ops.convert_to_numpy(weight)).all(), weight.path


def check_empty_batch(entry):
    model = entry.build()
    made = outputs(model, batch(model.input, ()))
    wanted = outputs(model, batch(model.input))
    assert [x.shape[1:] for x in made] == [x.shape[1:] for x in wanted]
    assert all(len(x) == 0 for x in made)


def check_one_token(entry):
    model = entry.build()
    inputs = batch(model.input, (1, 1), length=1)
    assert all(np.isfinite(x).all() for x in outputs(model, inputs))


def check_mixed_precision(entry, policy):
    """Close to float32 with the same weights; weights stay in float32, logits too."""
    reference = entry.build()
    keras.config.set_dtype_policy(policy)
    model = entry.build()
    model.set_weights(reference.get_weights())
    assert all(weight.dtype in ("float32", "uint32") for weight in model.weights)
    inputs = batch(model.input)
    expected = outputs(reference, inputs)
    for made, wanted in zip(outputs(model, inputs), expected, strict=True):
        spread = max(1, wanted[wanted > -1e8].std())  # the others stand for "impossible"
        np.testing.assert_allclose(made, wanted, atol=TOLERANCE[policy] * spread)
    dtypes = {keras.backend.standardize_dtype(x.dtype) for x in tree.flatten(model(inputs))}
    if entry.float32_outputs:
        assert dtypes == {"float32"}
    elif not entry.build().inputs[0].dtype.startswith("int"):
        assert dtypes == {policy.removeprefix("mixed_")}


def check_gradient_reaches_every_weight(entry):
    model = entry.build()
    before = {weight.path: keras.ops.convert_to_numpy(weight) for weight in model.trainable_weights}
    train_once(model, batch(model.input, (6, 4, 3)))
    unmoved = {
        weight.path
        for weight in model.trainable_weights
        if np.array_equal(before[weight.path], keras.ops.convert_to_numpy(weight))
    }
    expected = {path for path in before if any(part in path for part in entry.without_gradient)}
    assert unmoved <= expected, f"no gradient: {sorted(unmoved - expected)}"


def check_seeded(entry):
    """Dropout is repeatable by seed, and absent outside training."""

    def run(training):
        keras.utils.set_random_seed(3)
        model = entry.build()
        return outputs(model, batch(model.input), training=training)

    for training in (True, False):
        for one, other in zip(run(training), run(training), strict=True):
            np.testing.assert_array_equal(one, other)
    model = entry.build()
    inputs = batch(model.input)
    for one, other in zip(outputs(model, inputs), outputs(model, inputs), strict=True):
        np.testing.assert_array_equal(one, other)


def train_once(model, inputs):
    """One step of gradient descent towards targets far away, whatever the outputs are."""
    if not model.trainable_weights:
        return
    # A plain list of outputs, so that no dictionary of losses is needed.
    flat = keras.Model(model.inputs, tree.flatten(model.output))
    flat.compile(keras.optimizers.SGD(1.0), loss=["mse"] * len(flat.outputs), run_eagerly=True)
    rng = np.random.default_rng(5)
    targets = [rng.normal(size=x.shape).astype("float32") for x in outputs(model, inputs)]
    flat.train_on_batch([inputs[x.name] for x in model.inputs], targets)
