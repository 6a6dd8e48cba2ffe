"""Where the time of a step of BERT goes, operator by operator, ours beside Hugging Face, in torch.

    python benchmarks/bert_profile.py --cell training --precision bfloat16

Prints the share of each kind of operator in the CPU time of the step, and its seconds.
"""

import argparse
import collections
import os

os.environ["KERAS_BACKEND"] = "torch"

import bert_candidates
import runner
from bert_work import batch_for

KINDS = {  # the first that stands in the name of an operator
    "matrix products": ("addmm", "linear", "matmul", "::mm", "bmm", "mkldnn"),
    "attention": ("scaled_dot_product", "softmax"),
    "GELU and tanh": ("gelu", "tanh"),
    "norms": ("layer_norm",),
    "dropout and random numbers": ("dropout", "random_", "bernoulli", "where"),
    "optimizer": ("adam", "foreach", "addcdiv", "addcmul", "lerp", "sqrt"),
    "copies and casts": ("copy_", "contiguous", "clone", "_to_copy", "fill_", "zero_"),
}


def kind_of(name):
    return next((kind for kind, parts in KINDS.items() if any(x in name for x in parts)), "other")


def profile(candidate, cell, steps=3):
    """Seconds a step by kind of operator, the operator's own time alone."""
    import torch

    step = getattr(candidate, cell)(batch_for(cell, candidate.batch))
    step()
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as trace:
        for _ in range(steps):
            step()
    seconds = collections.Counter()
    for event in trace.key_averages():
        seconds[kind_of(event.key)] += event.self_cpu_time_total / 1e6 / steps
    return seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cell", default="training", choices=("inference", "training"))
    parser.add_argument("--precision", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--size", default="base")
    options = parser.parse_args()
    rows = []
    for library in ("ours", "Hugging Face"):
        candidate = bert_candidates.make(
            {
                "library": library,
                "backend": "torch",
                "precision": options.precision,
                "size": options.size,
                "batch": 8,
            }
        )
        seconds = profile(candidate, options.cell)
        del candidate
        for kind, value in seconds.most_common():
            rows.append([library, kind, value, value / seconds.total()])
    print(runner.markdown_table(["library", "operators", "seconds", "share"], rows))


if __name__ == "__main__":
    main()
