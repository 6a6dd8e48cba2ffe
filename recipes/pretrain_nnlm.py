"""Trains the neural probabilistic language model, and a trigram model to compare and mix it with.

Paper: Bengio, Ducharme, Vincent and Jauvin, 2003, "A Neural Probabilistic Language Model", JMLR 3.

    python recipes/pretrain_nnlm.py --corpus "texts/*.txt" --output runs/nnlm

Text: words at white space. As in the paper, it is one stream, line ends do not count, words that
occur three times or less share a symbol, and the first 68 % are trained on, the next 17 % choose
the best epoch and the weights of the trigram, the last 15 % are the test. The trigram sees the same
words of the same stream, so that all perplexities can be compared.

Departures from the paper, for speed: Adam with batches of words instead of plain gradient steps
word by word, a rate that falls linearly to zero, dropout, and a stronger weight decay. `--optimizer
sgd --batch-size 1 --dropout 0 --epochs 20` is the paper's own schedule, rate 1e-3 / (1 + 1e-8 t).

The output folder holds preset/ (the best epoch), vectors/ (the words' vectors, for
`kctx.vectors.Vectors.load`), encoder/ (a preset of these, for `finetune_classification.py`),
checkpoints/, log.csv, learning_curves.png, results.md and metrics.json. What was measured with
this recipe stands in the README.
"""

import dataclasses
import math
from pathlib import Path
from typing import Literal

import keras
import numpy as np

from kctx import (
    command_line,
    data,
    evaluation,
    files,
    models,
    ngrams,
    presets,
    training,
    vectors,
)


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of training a neural language model."""

    corpus: tuple[str, ...]
    """text files or globs, one stream in this order"""
    output: Path = Path("runs/nnlm")
    """folder of the run"""
    min_count: int = 4
    """words that occur less often share one symbol"""
    train_share: float = 0.677
    """share of the stream to train on, its beginning"""
    valid_share: float = 0.169
    """share after that to choose the best epoch on; what is left is the test"""
    size: Literal["mlp1", "mlp3", "mlp5", "mlp7", "mlp9", "ap_mlp10", "ap_no_direct"] = "mlp9"
    """row of the paper's tables"""
    context_length: int | None = None
    """n - 1 words; replaces that of the size, as do the next three"""
    embedding_dim: int | None = None
    """m"""
    hidden_dim: int | None = None
    """h; 0: no hidden layer"""
    direct_connections: bool | None = None
    """from the words' vectors to the output"""
    dropout: float = 0.4
    """on the words' vectors and the hidden layer; the paper has none"""
    optimizer: Literal["adam", "sgd"] = "adam"
    """sgd: the paper's, with its schedule"""
    batch_size: int = 512
    """words predicted in a step"""
    epochs: int = 3
    """passes over the training part, at most"""
    patience: int = 2
    """epochs without a better validation after which training ends"""
    learning_rate: float | None = None
    """default: 3e-3 for adam, falling to 0; 1e-3 for sgd, falling as 1 / (1 + 1e-8 t)"""
    weight_decay: float | None = None
    """of H, U, W and C, not of the biases, times the rate; default: 0.05 for adam, the paper's 1e-4
    for sgd"""
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """mixed_bfloat16 is the faster on most devices; logits stay in float32"""
    seed: int = 0
    """fixes everything on one backend"""
    resume: bool = False
    """go on with a broken run, exactly where it was saved"""


SHAPE = ("context_length", "embedding_dim", "hidden_dim", "direct_connections")
TRIGRAM = 3


def parts_of(config, stream):
    """Where training, validation and test begin, and the end of the text."""
    shares = (config.train_share, config.valid_share)
    if not (shares[0] > 0 and shares[1] > 0 and sum(shares) < 1):  # nor NaN
        raise ValueError(
            "--train-share and --valid-share must be above 0 and leave something to test on. "
            f"Received: {shares[0]} and {shares[1]}"
        )
    size = len(stream.ids)
    bounds = [0, round(size * shares[0]), round(size * sum(shares)), size]
    names = ("train", "valid", "test")
    return {name: bounds[i : i + 2] for i, name in enumerate(names)}


def make_model(config, stream):
    """The network, new, of a size of the paper."""
    overrides = {name: getattr(config, name) for name in SHAPE if getattr(config, name) is not None}
    return models.NNLM.from_size(
        config.size, vocabulary_size=len(stream.words), dropout=config.dropout, **overrides
    )


def make_optimizer(config, steps):
    """Adam, or the paper's gradient descent; both decay all weights but the biases."""
    rate = config.learning_rate
    if rate is None:
        rate = 3e-3 if config.optimizer == "adam" else 1e-3
    if not 0 < rate < math.inf:
        raise ValueError(f"--learning-rate must be above 0. Received: {rate}")
    if config.optimizer == "adam":
        return training.AdamW(
            training.WarmupLinearDecay(rate, 0, steps),
            weight_decay=0.05 if config.weight_decay is None else config.weight_decay,
            bias_correction=True,
            epsilon=1e-8,
            clip_norm=None,
            exclude=("bias",),
        )
    # t counts words in the paper, steps here.
    schedule = keras.optimizers.schedules.InverseTimeDecay(
        rate, decay_steps=1, decay_rate=1e-8 * config.batch_size
    )
    decay = 1e-4 if config.weight_decay is None else config.weight_decay
    optimizer = keras.optimizers.SGD(schedule, weight_decay=decay or None)
    optimizer.exclude_from_weight_decay(var_names=["bias"])
    return optimizer


class NGrams:
    """n-gram models of the same stream, without sentence ends, asked by the network's ids."""

    def __init__(self, stream, parts):
        # The ids themselves as words, so that no word of the text can be a special one.
        self.ids = stream.ids
        words = [str(i) for i in range(1, len(stream.words))]
        self.options = {"vocabulary": words, "special_words": "unknown", "progress": False}
        texts = np.array(["<unk>", *words])
        self.train, self.valid = (
            " ".join(texts[stream.ids[slice(*parts[name])]]) for name in ("train", "valid")
        )

    def interpolated(self, order=TRIGRAM):
        """Deleted interpolation with weights by the context's count (section 3.1)."""
        return ngrams.NGramLM.train(
            lines=[self.train],
            order=order,
            smoothing="jelinek_mercer",
            buckets="joint",
            held_out=[self.valid],
            **self.options,
        )

    def kneser_ney(self, order):
        """Modified Kneser-Ney."""
        return ngrams.NGramLM.train(lines=[self.train], order=order, **self.options)

    def log_probabilities(self, model, places):
        """Natural logarithms of the probabilities of the words at some places of the stream."""
        ids = np.where(self.ids > 0, self.ids + 2, 0)  # <s> and </s> stand between
        contexts = ids[places[:, None] + np.arange(1 - model.order, 0)]
        return model.log_probabilities(contexts, ids[places]) * math.log(10)


def network_logs(model, windows):
    """Natural logarithms of the probabilities of all words of a part."""
    return model.log_probabilities(*windows.at(windows.targets))


def results(model, windows, baselines):
    """Rows (name, {part: perplexity}) of the table, and the tuned weight of the mixture."""
    logs = {"NNLM": {name: network_logs(model, part) for name, part in windows.items()}}
    models_ = {
        "interpolated trigram": baselines.interpolated(),
        "Kneser-Ney trigram": baselines.kneser_ney(3),
        "Kneser-Ney 5-gram": baselines.kneser_ney(5),
    }
    for name, ngram in models_.items():
        logs[name] = {
            part: baselines.log_probabilities(ngram, window.targets)
            for part, window in windows.items()
        }
    first, second = logs["NNLM"], logs["interpolated trigram"]
    tuned = evaluation.best_mixture_weight(first["valid"], second["valid"])
    for name, weight in (("mixture, half and half", 0.5), (f"mixture, {tuned:.2f} NNLM", tuned)):
        logs[name] = {
            part: evaluation.mixed(first[part], second[part], weight) for part in ("valid", "test")
        }
    rows = [
        (name, {part: evaluation.perplexity(values) for part, values in by_part.items()})
        for name, by_part in logs.items()
    ]
    return rows, tuned


def table(rows):
    """Rows of `results` as a Markdown table."""
    lines = ["| perplexity | train | valid | test |", "|---|---:|---:|---:|"]
    for name, by_part in rows:
        cells = [f"{by_part[x]:.1f}" if x in by_part else "" for x in ("train", "valid", "test")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(config):
    settings = training.setup(config.seed, config.dtype)
    print(settings.describe())
    if not config.resume:
        training.refuse_used(config.output / "checkpoints")
    stream = data.word_stream(data.matching_files(config.corpus), min_count=config.min_count)
    parts = parts_of(config, stream)
    model = make_model(config, stream)
    # At least the trigram's context, so that all models are asked for the same words.
    reach = max(model.context_length, 4)
    options = {"batch_size": config.batch_size, "seed": config.seed}
    windows = {
        name: data.WordWindows(stream.ids, model.context_length, max(start, reach), stop, **options)
        for name, (start, stop) in parts.items()
    }
    batches = windows["train"]
    print(
        f"{len(stream.ids):,} words, {len(stream.words):,} different ones, rare ones as one; "
        f"{', '.join(f'{len(part.targets):,} {name}' for name, part in windows.items())}; "
        f"{model.count_params():,} parameters"
    )
    steps, every = batches.steps_per_epoch * config.epochs, batches.steps_per_epoch
    model.compile(
        settings.scaled(make_optimizer(config, steps)),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=settings.jit_compile,
    )

    def evaluate():
        logs = network_logs(model, windows["valid"])
        return {"log_probability": logs.mean(), "perplexity": evaluation.perplexity(logs)}

    best = training.KeepBest(
        config.output / "best.json",
        evaluate,
        save=lambda: presets.save(config.output / "preset", model),
        patience=config.patience * every,
    )
    training.fit_steps(
        model,
        batches.dataset,
        total_steps=steps,
        every=every,
        checkpoints=training.Checkpoints(
            config.output / "checkpoints", every=every, keep=1, stream=batches
        ),
        resume=config.resume,
        callbacks=[best, *training.reports(config.output, batches.batch_size, every=50)],
    )
    model = presets.load(config.output / "preset").model
    rows, tuned = results(model, windows, NGrams(stream, parts))
    print(f"Perplexity of the best epoch:\n{table(rows)}")
    files.write_text(config.output / "results.md", table(rows))
    files.write_json(
        config.output / "metrics.json", {"perplexity": dict(rows), "mixture_weight": tuned}
    )
    evaluation.draw(
        evaluation.learning_curves, config.output / "log.csv", config.output / "learning_curves.png"
    )
    embeddings = keras.ops.convert_to_numpy(model.token_embedding.embeddings)
    found = vectors.Vectors(stream.words, embeddings)
    found.save(config.output / "vectors")
    presets.from_vectors(config.output / "encoder", found)
    print(f"Saved {config.output / 'preset'}, {config.output / 'vectors'} and an encoder of these")


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
