"""The CRF: a training step and decoding, against pytorch-crf.

    python benchmarks/crf.py [--batch 32] [--words 64] [--tags 9] [--width 256] [--seconds 60]

The model of a training step is a dense layer from random word vectors to emissions, the CRF's
log-likelihood, gradients of both and a step of Adam; lengths are random, from half of `--words` on.
Decoding starts from emissions and ends with tags in NumPy arrays (for the peer: in lists, which is
what it gives). Each way is a process of its own, and they are timed in turn. Ours is compiled as
`model.fit` does it: by XLA under JAX, as a graph under TensorFlow (and, as a way of its own, by
XLA), not at all under torch.

Before that, both are given the same weights, and must find the same likelihoods and the same tags.
A ratio above 1 means that ours is faster. Needs pytorch-crf (pip install --no-deps pytorch-crf).
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import runner

# Way -> backend.
WAYS = {
    "tensorflow": "tensorflow",
    "tensorflow, XLA": "tensorflow",
    "jax": "jax",
    "torch": "torch",
    "pytorch-crf": "torch",
}
TASKS = ("training", "decoding")


def make_batch(batch, words, tags, width):
    """Vectors (B, W, D), emissions (B, W, C), tags and mask (B, W), and weights of a CRF."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(words // 2, words + 1, batch)
    lengths[0] = words
    mask = np.arange(words) < lengths[:, None]
    return {
        "vectors": rng.normal(size=(batch, words, width)).astype("float32"),
        "emissions": rng.normal(size=(batch, words, tags)).astype("float32"),
        "tags": np.where(mask, rng.integers(0, tags, (batch, words)), 0).astype("int32"),
        "mask": mask,
        "transitions": rng.normal(size=(tags, tags)).astype("float32"),
        "start": rng.normal(size=tags).astype("float32"),
        "end": rng.normal(size=tags).astype("float32"),
    }


class Ours:
    """A model of word vectors and a `CRFTagger`, as users train it."""

    def __init__(self, way, batch, words, tags, width):
        import keras

        from kctx import heads

        self.keras, self.way = keras, way
        self.batch = make_batch(batch, words, tags, width)
        x = keras.Input((None, width), name="vectors")
        plain = keras.Model({"vectors": x}, {"sequence_output": keras.layers.Identity()(x)})
        head = heads.CRFTagger(tags, dropout=0.0)
        self.model = heads.attach(plain, head)
        self.model.compile(
            keras.optimizers.Adam(1e-3),
            head.output_loss(),
            jit_compile={"tensorflow": False, "torch": False}.get(way, True),
        )
        self.crf = head.crf
        self.crf.set_weights([self.batch[name] for name in ("transitions", "start", "end")])
        mask = self.batch["mask"]
        places = np.where(mask, np.arange(words), 0).astype("int32")
        self.inputs = {"vectors": self.batch["vectors"], "word_positions": places}
        self.inputs["word_mask"] = mask
        self.labels = np.where(mask, self.batch["tags"], -1).astype("int32")
        self.decode = self._compiled_decode(way)

    def _compiled_decode(self, way):
        if way.startswith("tensorflow"):
            import tensorflow as tf

            return tf.function(lambda x, m: self.crf.decode(x, m)[0], jit_compile="XLA" in way)
        if way == "jax":
            import jax

            return jax.jit(lambda x, m: self.crf.decode(x, m)[0])
        import torch

        def decode(x, mask):
            with torch.inference_mode():
                return self.crf.decode(x, mask)[0]

        return decode

    def likelihoods(self):
        found = self.crf.log_likelihood(*(self.batch[x] for x in ("emissions", "tags", "mask")))
        return self.keras.ops.convert_to_numpy(found).tolist()

    def decoding(self):
        tags = self.decode(*map(self.keras.ops.convert_to_tensor, self._emissions()))
        return self.keras.ops.convert_to_numpy(tags)

    def _emissions(self):
        return self.batch["emissions"], self.batch["mask"]

    def training(self):
        return self.model.train_on_batch(self.inputs, self.labels)


class Peer:
    """The same with torch and pytorch-crf."""

    def __init__(self, batch, words, tags, width):
        import torch
        import torchcrf

        self.torch = torch
        self.batch = {
            name: torch.tensor(value)
            for name, value in make_batch(batch, words, tags, width).items()
        }
        self.batch["tags"] = self.batch["tags"].long()
        self.dense = torch.nn.Linear(width, tags)
        self.crf = torchcrf.CRF(tags, batch_first=True)
        with torch.no_grad():
            self.crf.transitions.copy_(self.batch["transitions"])
            self.crf.start_transitions.copy_(self.batch["start"])
            self.crf.end_transitions.copy_(self.batch["end"])
        parameters = [*self.dense.parameters(), *self.crf.parameters()]
        self.optimizer = torch.optim.Adam(parameters, 1e-3)

    def likelihoods(self):
        x, tags, mask = (self.batch[name] for name in ("emissions", "tags", "mask"))
        with self.torch.no_grad():
            return self.crf(x, tags, mask, reduction="none").tolist()

    def decoding(self):
        with self.torch.inference_mode():
            rows = self.crf.decode(self.batch["emissions"], self.batch["mask"])
        return rows

    def training(self):
        self.optimizer.zero_grad()
        emissions = self.dense(self.batch["vectors"])
        loss = -self.crf(emissions, self.batch["tags"], self.batch["mask"], reduction="token_mean")
        loss.backward()
        self.optimizer.step()
        return loss.item()


class Candidate:
    """One way; see the top of the file."""

    def __init__(self, way, sizes):
        self.held = Peer(**sizes) if way == "pytorch-crf" else Ours(way, **sizes)
        self.lengths = make_batch(**sizes)["mask"].sum(1)
        self.task = None

    def answers(self):
        """Likelihoods and tags, to be compared."""
        tags = [list(map(int, row)) for row in self.held.decoding()]
        rows = [row[:length] for row, length in zip(tags, self.lengths, strict=True)]
        return {"likelihoods": self.held.likelihoods(), "tags": rows}

    def choose(self, task):
        """The task that `time` does; it is done twice to warm up."""
        self.task = getattr(self.held, task)
        self.task()
        self.task()

    def time(self, repeats):
        """Seconds of the task, `repeats` times."""
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            self.task()
            seconds.append(time.perf_counter() - began)
        return seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--words", type=int, default=64)
    parser.add_argument("--tags", type=int, default=9)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each task")
    parser.add_argument("--rounds", type=int, default=20, help="at most")
    options = parser.parse_args()
    sizes = {name: getattr(options, name) for name in ("batch", "words", "tags", "width")}
    workers = {
        way: runner.Worker(__file__, {"way": way, "sizes": sizes}, {"KERAS_BACKEND": backend})
        for way, backend in WAYS.items()
    }
    answers = {way: worker.ask("answers") for way, worker in workers.items()}
    wanted = answers["pytorch-crf"]
    for way, found in answers.items():
        np.testing.assert_allclose(found["likelihoods"], wanted["likelihoods"], rtol=1e-5)
        assert found["tags"] == wanted["tags"], way
    print(f"All ways agree on likelihoods and tags: {json.dumps(sizes)}\n")
    rows = []
    for task in TASKS:
        for worker in workers.values():
            worker.ask("choose", task=task)
        times = runner.in_turn(workers, options.rounds, options.seconds)
        for way in WAYS:
            milliseconds = 1000 * statistics.median(times[way])
            faster = runner.ratio(times[way], times["pytorch-crf"])
            rows.append([task, way, milliseconds, faster, len(times[way])])
    header = ["task", "way", "ms", "faster than pytorch-crf by", "rounds"]
    print(runner.markdown_table(header, rows))
    for worker in workers.values():
        worker.close()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        runner.serve(lambda candidate: Candidate(**candidate))
    else:
        main()
