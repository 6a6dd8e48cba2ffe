"""BERT's speed beside Hugging Face and keras-hub, in turn in one run, and the machine's ceiling.

    python benchmarks/bert.py                          # everything at base size, about 25 minutes
    python benchmarks/bert.py --size tiny --minutes 2  # a look
    python benchmarks/bert.py --cells inference ragged --precisions float32 --backends torch
    python benchmarks/bert.py --curves --steps 300 --size small   # half precision beside float32

Cells, all with the same numbers for everyone:
    inference    8 x 128 tokens, in: token ids, out: sequence and pooled output as NumPy arrays.
    ragged       32 sequences of 8 to 128 tokens. Hugging Face and keras-hub pad to the longest;
                 ours uses `kctx.models.RaggedEncoder`. Only real tokens are counted.
    training     one step of sentence classification on 8 x 128 tokens: dropout, gradients,
                 clipping by global norm, AdamW.
    pretraining  the same with masked LM (20 predictions a row) and next sentence.

Peers: Hugging Face in torch, with its fused attention, weights in the precision for inference and
autocast for training; keras-hub on each backend, in mixed precision where it is not float32. For
pretraining only Hugging Face has a counterpart.

What is printed for each candidate: tokens/s (median and best of the rounds), its speed against
Hugging Face's in the same rounds, and which part of the matrix-product rate of its own framework
and precision (2048 x 2048 x 2048, measured in the same process) its products made use of. On a
machine with an accelerator that the frameworks see, they use it.
"""

import dataclasses
import gc
import itertools
import json
import statistics
import sys
import time
from pathlib import Path

import runner

SCRIPT = str(Path(__file__).resolve())
CEILING = (2048, 2048, 2048)
LENGTH, MASKED = 128, 20
SIZES = {  # layers, width; heads are 64 wide, feed-forward 4 times the width
    "tiny": (2, 128),
    "mini": (4, 256),
    "small": (4, 512),
    "medium": (8, 512),
    "base": (12, 768),
    "large": (24, 1024),
}
VOCABULARY = 30522


@dataclasses.dataclass(frozen=True)
class Config:
    """See the top of this file for the cells and the peers."""

    # Size of BERT: tiny, mini, small, medium, base or large.
    size: str = "base"
    # Which of inference, ragged, training, pretraining to time.
    cells: tuple[str, ...] = ("inference", "ragged", "training", "pretraining")
    # float32, bfloat16, and on an accelerator float16.
    precisions: tuple[str, ...] = ("float32", "bfloat16")
    # Keras backends for ours and keras-hub.
    backends: tuple[str, ...] = ("tensorflow", "jax", "torch")
    # Which of ours, keras-hub to time beside Hugging Face, which always runs.
    candidates: tuple[str, ...] = ("ours", "keras-hub")
    # Rows of a batch.
    batch: int = 8
    # Greatest number of rounds for each cell.
    rounds: int = 7
    # Time budget, divided over cells. Starting and compiling count as well.
    minutes: float = 25.0
    # Where to write every time that was measured, as JSON.
    json: Path | None = None
    # Compare loss curves of a masked-LM run in each precision instead of speed.
    curves: bool = False
    # Training steps of each curve.
    steps: int = 200
    # Peak learning rate of the curves.
    learning_rate: float = 5e-4


# What everyone gets.


def batch_for(cell, batch):
    """The inputs and labels of a cell as NumPy arrays, the same for every candidate."""
    import numpy as np

    rng = np.random.default_rng(7)
    rows = 4 * batch if cell == "ragged" else batch
    lengths = np.full(rows, LENGTH)
    if cell == "ragged":
        lengths = rng.permutation(np.linspace(8, LENGTH, rows).round().astype(int))
    mask = np.arange(LENGTH) < lengths[:, None]
    ids = np.where(mask, rng.integers(1000, VOCABULARY, (rows, LENGTH)), 0).astype("int32")
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": mask,
        "positions": random_positions(rng, rows),
        "masked_labels": rng.integers(1000, VOCABULARY, (rows, MASKED)).astype("int32"),
        "labels": rng.integers(0, 2, rows).astype("int32"),
    }


def random_positions(rng, rows):
    """MASKED different positions for each row, in order: int32 (rows, MASKED)."""
    import numpy as np

    positions = np.tile(np.arange(LENGTH, dtype="int32"), (rows, 1))
    return np.sort(rng.permuted(positions, axis=1)[:, :MASKED], axis=1)


def products_of(cell, size, batch):
    """Floating point operations in matrix products: what a cell's real tokens need."""
    layers, width = SIZES[size]
    lengths = [int(row.sum()) for row in batch_for(cell, batch)["padding_mask"]]
    rows, tokens = len(lengths), sum(lengths)
    dense = layers * 12 * width * width * tokens + rows * width * width
    attention = layers * 2 * width * sum(length * length for length in lengths)
    if cell == "pretraining":
        dense += rows * MASKED * width * (VOCABULARY + width)
    return 2 * (dense + attention) * (3 if cell in ("training", "pretraining") else 1)


class Candidate:
    """What the parent calls by name, see `runner.Worker`."""

    def __init__(self, candidate):
        for key, value in candidate.items():
            setattr(self, key, value)
        self.framework = self.backend
        self.step = None

    def ceiling(self):
        _, width = SIZES[self.size]
        rows = self.batch * LENGTH
        shapes = [CEILING, (rows, width, width), (rows, width, 4 * width), (rows, 4 * width, width)]
        return runner.matrix_product_rate(self.framework, self.precision, shapes)

    def prepare(self, cell):
        self.step = None
        gc.collect()
        began = time.perf_counter()
        self.step = getattr(self, cell)(batch_for(cell, self.batch))
        self.step()
        self.step()
        return time.perf_counter() - began

    def time(self, repeats):
        seconds = []
        for _ in range(repeats):
            began = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - began)
        return seconds

    def release(self):
        self.step = None
        gc.collect()


class Ours(Candidate):
    """kctx on one Keras backend."""

    def __init__(self, candidate):
        super().__init__(candidate)
        import kctx.models
        from kctx.training.memory import keep_freed_memory

        if self.backend == "jax":
            keep_freed_memory()
        # For inference the weights themselves are in the precision, for training float32.
        self.make = kctx.models.BERT.from_size
        self.encoder, self.trained = None, None

    def encoder_for(self, training):
        if self.trained is not training:
            self.encoder, self.trained = None, training
            gc.collect()
            mixed = training and self.precision != "float32"
            self.dtype = f"mixed_{self.precision}" if mixed else self.precision
            self.encoder = self.make(self.size, dtype=self.dtype)
        return self.encoder

    def vectors(self, rows):
        import keras

        encoder = self.encoder_for(training=False)
        outputs = {key: encoder.output[key] for key in ("sequence_output", "pooled_output")}
        model = keras.Model(encoder.input, outputs)
        model.compile(jit_compile=jit(self.backend))
        return model, {key: rows[key] for key in encoder.input}

    def inference(self, rows):
        model, inputs = self.vectors(rows)
        return lambda: model.predict_on_batch(inputs)

    def ragged(self, rows):
        from kctx.models import RaggedEncoder

        encoder = self.encoder_for(training=False)
        ids = [row[mask] for row, mask in zip(rows["token_ids"], rows["padding_mask"], strict=True)]
        ragged = RaggedEncoder(encoder, jit_compile=jit(self.backend))
        return lambda: ragged(ids)

    def training(self, rows):
        import keras

        from kctx.heads import Classifier, attach

        encoder = self.encoder_for(training=True)
        model = attach(encoder, Classifier(2, dtype=self.dtype))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(self.optimizer(), loss=loss, jit_compile=jit(self.backend))
        inputs = {key: rows[key] for key in encoder.input}
        return lambda: model.train_on_batch(inputs, rows["labels"])

    def pretraining(self, rows):
        model = self.objective()
        x, y, weights = pretraining_batch(model, rows)
        return lambda: model.train_on_batch(x, y, weights)

    def objective(self, **optimizer):
        from kctx.objectives import Joint, MaskedLM, NextSentence

        encoder = self.encoder_for(training=True)
        model = Joint([MaskedLM(encoder), NextSentence(encoder)])
        model.compile_for(self.optimizer(**optimizer), jit_compile=jit(self.backend))
        return model

    def optimizer(self, learning_rate=2e-5):
        from kctx.training import AdamW, LossScale

        optimizer = AdamW(learning_rate)
        return LossScale(optimizer) if self.dtype == "mixed_float16" else optimizer

    def curve(self, steps, learning_rate):
        """Losses of a masked-LM run on the text that every CPython carries."""
        import keras

        keras.utils.set_random_seed(0)
        batches = masked_text(self.batch, steps)
        rows = batch_for("pretraining", self.batch)
        schedule = keras.optimizers.schedules.PolynomialDecay(learning_rate, steps)
        model = self.objective(learning_rate=schedule)
        losses = []
        for batch in batches:
            x, y, weights = pretraining_batch(model, {**rows, **batch})
            losses.append(float(model.train_on_batch(x, y, weights, return_dict=True)["loss"]))
            model.reset_metrics()
        return losses


class KerasHub(Ours):
    """keras-hub's BERT on one Keras backend."""

    def __init__(self, candidate):
        Candidate.__init__(self, candidate)
        self.encoder, self.trained = None, None

    def make(self, size, dtype):
        import keras_nlp

        layers, width = SIZES[size]
        return keras_nlp.models.BertBackbone(
            VOCABULARY, layers, width // 64, width, 4 * width, dtype=dtype
        )

    def training(self, rows):
        import keras
        import keras_nlp

        encoder = self.encoder_for(training=True)
        model = keras_nlp.models.BertTextClassifier(encoder, 2, preprocessor=None)
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(keras_adamw(2e-5), loss=loss, jit_compile=jit(self.backend))
        inputs = {key: rows[key] for key in encoder.input}
        return lambda: model.train_on_batch(inputs, rows["labels"])

    def ragged(self, rows):
        return self.inference(rows)


class HuggingFace(Candidate):
    """transformers in torch."""

    def __init__(self, candidate):
        super().__init__(candidate)
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        self.framework = "torch"
        self.torch, self.library = torch, transformers
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        layers, width = SIZES[self.size]
        self.settings = transformers.BertConfig(
            vocab_size=VOCABULARY,
            num_hidden_layers=layers,
            hidden_size=width,
            num_attention_heads=width // 64,
            intermediate_size=4 * width,
            num_labels=2,
            attn_implementation="sdpa",
        )

    def inputs(self, rows):
        names = {
            "input_ids": rows["token_ids"],
            "token_type_ids": rows["segment_ids"],
            "attention_mask": rows["padding_mask"],
        }
        return {key: self.tensor(value) for key, value in names.items()}

    def tensor(self, array):
        return self.torch.tensor(array.astype("int64"), device=self.device)

    def inference(self, rows):
        model = self.library.BertModel(self.settings).eval()
        model = model.to(self.device, getattr(self.torch, self.precision))

        def step():
            with self.torch.inference_mode():
                outputs = model(**self.inputs(rows))
                found = outputs.last_hidden_state, outputs.pooler_output
                return [part.float().cpu().numpy() for part in found]

        return step

    ragged = inference

    def training(self, rows):
        model = self.library.BertForSequenceClassification(self.settings)
        return self.trainer(model, rows, {"labels": rows["labels"]})

    def pretraining(self, rows):
        import numpy as np

        labels = np.full_like(rows["token_ids"], -100)  # positions that are not predicted
        np.put_along_axis(labels, rows["positions"], rows["masked_labels"], axis=1)
        model = self.library.BertForPreTraining(self.settings)
        return self.trainer(model, rows, {"labels": labels, "next_sentence_label": rows["labels"]})

    def trainer(self, model, rows, labels):
        torch = self.torch
        model = model.to(self.device).train()
        optimizer = torch.optim.AdamW(
            model.parameters(), 2e-5, eps=1e-6, weight_decay=0.01, fused=True
        )
        half = self.precision != "float32"
        dtype = getattr(torch, self.precision) if half else torch.bfloat16

        def step():
            inputs = {**self.inputs(rows), **{k: self.tensor(v) for k, v in labels.items()}}
            with torch.autocast(self.device, dtype=dtype, enabled=half):
                loss = model(**inputs).loss
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            return loss.item()

        return step


CANDIDATES = {"ours": Ours, "keras-hub": KerasHub, "Hugging Face": HuggingFace}


def make(candidate):
    return CANDIDATES[candidate["library"]](candidate)


def jit(backend):
    """Whether to compile with XLA: on TensorFlow only where there is an accelerator."""
    if backend == "tensorflow":
        import tensorflow as tf

        return bool(tf.config.list_physical_devices("GPU"))
    return backend == "jax"


def keras_adamw(learning_rate):
    import keras

    return keras.optimizers.AdamW(
        learning_rate, weight_decay=0.01, epsilon=1e-6, global_clipnorm=1.0
    )


def pretraining_batch(model, rows):
    import numpy as np

    rows = {**rows, "mask_positions": rows["positions"]}
    inputs = {key: rows[key] for key in model.input}
    labels = {"masked_lm": rows["masked_labels"], "next_sentence": rows["labels"]}
    weights = {key: np.ones(value.shape, "float32") for key, value in labels.items()}
    return inputs, labels, weights


def masked_text(batch, steps):
    """Batches of masked English words: ids by frequency, 15% masked, none of it random text."""
    import collections
    import re
    from pydoc_data import topics

    import numpy as np

    words = re.findall(r"\w+|[^\w\s]", " ".join(topics.topics.values()).lower())
    ranks = [word for word, _ in collections.Counter(words).most_common(VOCABULARY - 1000)]
    number = {word: 1000 + rank for rank, word in enumerate(ranks)}
    text = np.array([number[word] for word in words], dtype="int32")
    rng = np.random.default_rng(3)
    for _ in range(steps):
        starts = rng.integers(0, len(text) - 2 * LENGTH, batch)
        follows = rng.integers(0, 2, batch).astype("int32")  # 1: the second half is from elsewhere
        half = LENGTH // 2
        seconds = np.where(follows, rng.integers(0, len(text) - half, batch), starts + half)
        ids = text[
            np.concatenate(
                [starts[:, None] + np.arange(half), seconds[:, None] + np.arange(half)], axis=1
            )
        ]
        positions = random_positions(rng, batch)
        labels = np.take_along_axis(ids, positions, axis=1)
        np.put_along_axis(ids, positions, 103, axis=1)
        yield {
            "token_ids": ids,
            "segment_ids": np.broadcast_to((np.arange(LENGTH) >= half), ids.shape).astype("int32"),
            "positions": positions,
            "masked_labels": labels,
            "labels": follows,
        }


# The parent's side.


def start(config, library, backend, precision):
    candidate = {
        "library": library,
        "backend": backend,
        "precision": precision,
        "size": config.size,
        "batch": config.batch,
    }
    return runner.Worker(SCRIPT, candidate, {"KERAS_BACKEND": backend})


def measure(config, progress=print):
    """Times all cells; returns a list of dicts, one for each candidate and cell."""
    groups = len(config.precisions) * len(config.backends) * len(config.cells)
    deadline = time.monotonic() + 60 * config.minutes
    results, done = [], 0
    for precision in config.precisions:
        peer = start(config, "Hugging Face", "torch", precision)
        for backend in config.backends:
            # Only a few processes live at once: a training BERT-base takes over 3 GB.
            workers = {"Hugging Face torch": peer}
            for library in config.candidates:
                workers[f"{library} {backend}"] = start(config, library, backend, precision)
            ceilings = {}
            for cell in config.cells:
                taking_part = {}
                for name, worker in workers.items():
                    if cell == "pretraining" and name.startswith("keras-hub"):
                        continue
                    try:
                        progress(f"{precision} {cell}: preparing {name}")
                        worker.ask("prepare", cell=cell)
                        taking_part[name] = worker
                        if name not in ceilings:
                            ceilings[name] = worker.ask("ceiling")
                    except RuntimeError as error:
                        progress(f"left out: {error}")
                # The longer steps get more: a training step takes 3 times an inference.
                seconds = max(0.0, deadline - time.monotonic()) / (groups - done) * 0.6
                times = runner.in_turn(taking_part, config.rounds, seconds)
                done += 1
                for name, own in times.items():
                    results.append(
                        summary(config, cell, precision, backend, name, times, ceilings[name])
                    )
                    progress(
                        f"{precision} {cell}: {name}: {results[-1]['tokens/s median']:.0f} "
                        f"tokens/s, {len(own)} rounds"
                    )
                for worker in taking_part.values():
                    worker.ask("release")
            for worker in workers.values():
                if worker is not peer:
                    worker.close()
        peer.close()
    return results


def summary(config, cell, precision, backend, name, times, ceiling):
    tokens = int(batch_for(cell, config.batch)["padding_mask"].sum())
    own = times[name]
    peers = {key: value for key, value in times.items() if key == "Hugging Face torch"}
    hub = {key: value for key, value in times.items() if key.startswith("keras-hub")}
    against = {
        label: runner.ratio(own, next(iter(found.values()))) if found else None
        for label, found in (("x Hugging Face", peers), ("x keras-hub", hub))
    }
    rate = products_of(cell, config.size, config.batch) / statistics.median(own)
    return {
        "cell": cell,
        "precision": precision,
        "group": backend,
        "candidate": name,
        "tokens/s median": tokens / statistics.median(own),
        "tokens/s best": tokens / min(own),
        **against,
        "of ceiling": rate / ceiling["x".join(map(str, CEILING))],
        "rounds": len(own),
        "seconds": own,
        "matrix products FLOP/s": ceiling,
    }


def report(results):
    header = [
        "cell",
        "precision",
        "group",
        "candidate",
        "tokens/s median",
        "tokens/s best",
        "x Hugging Face",
        "x keras-hub",
        "of ceiling",
        "ceiling GFLOP/s",
        "rounds",
    ]
    rows = []
    for cell in dict.fromkeys(result["cell"] for result in results):
        for result in results:
            if result["cell"] == cell:
                gigaflops = result["matrix products FLOP/s"]["x".join(map(str, CEILING))] / 1e9
                shown = {**result, "ceiling GFLOP/s": round(gigaflops)}
                row = ["" if shown[key] is None else shown[key] for key in header]
                row[4:6] = [round(value) for value in row[4:6]]
                rows.append(row)
    return runner.markdown_table(header, rows)


def curves(config, progress=print):
    """Masked-LM losses in each precision; returns {"backend precision": list of losses}."""
    losses = {}
    for backend in config.backends:
        for precision in config.precisions:
            worker = start(config, "ours", backend, precision)
            progress(f"{backend} {precision}: {config.steps} steps")
            losses[f"{backend} {precision}"] = worker.ask(
                "curve", steps=config.steps, learning_rate=config.learning_rate
            )
            worker.close()
    return losses


def report_curves(losses):
    """The mean loss of each tenth of the run, under the last step of each."""
    steps = len(next(iter(losses.values())))
    edges = sorted({round(part * steps / 10) for part in range(11)})
    rows = [
        # Four decimals: half precision differs from float32 in the third or fourth.
        [name, *(f"{statistics.fmean(curve[a:b]):.4f}" for a, b in itertools.pairwise(edges))]
        for name, curve in losses.items()
    ]
    return runner.markdown_table(["run", *(f"to {edge}" for edge in edges[1:])], rows)


def main(config):
    for name in config.cells:
        if name not in ("inference", "ragged", "training", "pretraining"):
            raise SystemExit(f"`cells` must be of the four in --help. Received: {name!r}")
    if config.size not in SIZES:
        raise SystemExit(f"`size` must be one of {', '.join(SIZES)}. Received: {config.size!r}")
    began = time.monotonic()

    def progress(text):
        print(f"[{time.monotonic() - began:6.0f} s] {text}", file=sys.stderr, flush=True)

    if config.curves:
        results = curves(config, progress)
        print(report_curves(results))
    else:
        results = measure(config, progress)
        print(report(results))
    if config.json is not None:
        config.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    if "--serve" in sys.argv:
        runner.serve(make)
    else:
        import tyro

        main(tyro.cli(Config, description=__doc__))
