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
import itertools
import json
import statistics
import sys
import time
from pathlib import Path

import runner
import tyro
from bert_work import CEILING, SIZES, batch_for, products_of

SCRIPT = str(Path(__file__).resolve().with_name("bert_candidates.py"))


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
    main(tyro.cli(Config, description=__doc__))
