"""Weights that any program can make from a tensor's name alone, for golden values."""

import zlib

import numpy as np


def filler(name, shape):
    """Values for a tensor called `name` in Hugging Face's spelling and layout.

    With a = crc32(name) mod 1000 and u_j = frac(sin(12.9898·(j+1) + 78.233·a)·43758.5453) in C
    order, values are 0.4·(u_j - 0.5), plus 1 for the gain of a norm (1-D, name ends in "weight").

    Returns:
        float64 array of `shape`
    """
    seed = zlib.crc32(name.encode("utf-8")) % 1000
    j = np.arange(np.prod(shape, dtype=int), dtype="float64")
    u = np.sin(12.9898 * (j + 1) + 78.233 * seed) * 43758.5453
    values = 0.4 * (u - np.floor(u) - 0.5)
    gain = len(shape) == 1 and name.endswith("weight")
    return values.reshape(shape) + gain
