"""Activations of the lineage under names that say which variant is meant."""

import keras
from keras import ops


def gelu_erf(x):
    """Gaussian error linear unit, exact: x·Φ(x) (Hendrycks & Gimpel, 2016, section 2)."""
    return ops.gelu(x, approximate=False)


def gelu_tanh(x):
    """Gaussian error linear unit, the tanh approximation (Hendrycks & Gimpel, 2016, section 2).

    Differs from `gelu_erf` by at most 4.7e-4, at |x| near 2.7.
    """
    return ops.gelu(x, approximate=True)


ACTIVATIONS = {
    "gelu_erf": gelu_erf,
    "gelu_tanh": gelu_tanh,
    "relu": ops.relu,
    "tanh": ops.tanh,
    "linear": lambda x: x,
}


def get_activation(name):
    """The activation called `name`, one of `ACTIVATIONS`, or `name` itself if it is callable.

    The plain name "gelu" is refused, since it means erf in some libraries and tanh in others.
    """
    if callable(name):
        return name
    if name not in ACTIVATIONS:
        raise ValueError(f"`activation` must be one of {sorted(ACTIVATIONS)}. Received: {name!r}")
    return ACTIVATIONS[name]


def truncated_normal(stddev=0.02):
    """The initialiser of BERT and its kin: normal, cut at two standard deviations."""
    return keras.initializers.TruncatedNormal(stddev=stddev)
