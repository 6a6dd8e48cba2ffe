"""The texts whose values under KenLM and by hand are known."""

import collections

import numpy as np

FIVE_LINES = ["b", "a e", "e", "a", "a"]
CATS = [
    "the cat sat on the mat",
    "the cat ate the rat",
    "the dog sat on the log",
    "a dog ate a cat",
    "the rat sat",
]


def plain_counts(lines, order):
    """n-gram -> occurrences of all orders, counted one by one."""
    found = [collections.Counter() for _ in range(order)]
    for line in lines:
        words = ["<s>", *line.split(), "</s>"]
        for k in range(1, order + 1):
            for start in range(len(words) - k + 1):
                if words[start : start + k] != ["<s>"]:
                    found[k - 1][tuple(words[start : start + k])] += 1
    return found


def random_lines(seed, sentences, words=12, length=8):
    """Sentences of few words with a long tail."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"w{min(int(rng.exponential(words / 3)), words)}" for _ in range(n))
        for n in rng.integers(0, length + 1, sentences)
    ]
