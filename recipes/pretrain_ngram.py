"""Trains n-gram language models of all orders up to one, and compares them on held-out text.

Papers: Chen and Goodman, 1998, "An Empirical Study of Smoothing Techniques for Language Modeling";
Heafield, Pouzyrevsky, Clark and Koehn, 2013, "Scalable Modified Kneser-Ney Language Model
Estimation", whose program `lmplz` modified Kneser-Ney follows to the digit.

    python recipes/pretrain_ngram.py --train texts/train.txt --held-out texts/test.txt \\
        --output runs/ngram

Text: a sentence a line, words set apart by spaces, in any language; `.gz` as well. Text larger than
memory is counted in pieces of --memory-limit bytes. Jelinek-Mercer smoothing estimates its weights
on --dev. Perplexities of models with different vocabularies cannot be compared: --min-count clips
the vocabulary, and with it what counts as OOV.

The output folder holds model.arpa, which KenLM and SRILM read, model/ for
`kctx.ngrams.NGramLM.load`, metrics.json, perplexity.png and samples.txt. What was measured with
this recipe stands in the README.
"""

import dataclasses
from pathlib import Path
from typing import Literal

from kctx import command_line, data, evaluation, files, ngrams
from kctx.arguments import check_count
from kctx.evaluation.plots import new_figure, save
from kctx.words import to_bytes


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of training an n-gram model."""

    train: tuple[Path, ...]
    """text files or globs to count, a sentence a line"""
    held_out: tuple[Path, ...]
    """text files or globs to measure perplexity on"""
    dev: tuple[Path, ...] = ()
    """text files or globs to estimate the weights of jelinek_mercer on"""
    output: Path = Path("runs/ngram")
    """folder of the run"""
    order: int = 5
    """longest n-gram, 1 to 6"""
    smoothing: Literal["kneser_ney", "katz", "jelinek_mercer", "add_k", "mle"] = "kneser_ney"
    """how probabilities are estimated"""
    prune: tuple[int, ...] = (0,)
    """n-grams of orders 1, 2, .. that occur at most so often are left out; the last for the rest"""
    min_count: int = 1
    """words that occur less often become <unk>"""
    k: float = 0.1
    """of add_k"""
    katz_limit: int = 5
    """of katz: counts above are not discounted"""
    buckets: Literal["nested", "joint"] = "nested"
    """of jelinek_mercer; joint: as in Bengio et al. 2003, without an ARPA file"""
    special_words: Literal["error", "skip", "unknown"] = "error"
    """what <s>, </s>, <unk> in the text mean; unknown: words out of the vocabulary"""
    empty_lines: bool = True
    """whether a line without words is a sentence, as KenLM takes it"""
    memory_limit: int = 2 << 30
    """bytes of text in memory before counts are written to the temporary folder"""
    temporary_folder: Path | None = None
    """where to write them; default: the system's"""
    arpa: bool = True
    """whether to write model.arpa"""
    samples: int = 10
    """sentences to draw from the model"""
    seed: int = 0
    """of the samples"""


def vocabulary_of(config):
    """The words frequent enough, or None for all."""
    if config.min_count <= 1:
        return None
    counts = ngrams.count_words(config.train, special_words=config.special_words)
    words = [word for word, count in counts.items() if count >= config.min_count]
    if not words:
        raise ValueError(
            f"No word occurs --min-count times. Received: --min-count {config.min_count}"
        )
    print(f"{len(words):,} of {len(counts):,} words occur at least {config.min_count} times")
    return words


def options_of(config, order):
    """What the smoothing takes, for a model of an order."""
    options = {"prune": list(config.prune[:order]), "special_words": config.special_words}
    if config.smoothing == "add_k":
        options["k"] = config.k
    if config.smoothing == "katz":
        options["katz_limit"] = config.katz_limit
    if config.smoothing == "jelinek_mercer":
        if not config.dev:
            raise ValueError("--smoothing jelinek_mercer needs --dev, text to estimate weights on")
        options |= {"held_out_files": config.dev, "buckets": config.buckets}
    return options


def draw_perplexities(rows, path):
    """Perplexity by order, with and without unknown words."""
    figure = new_figure(5, 3.5)
    axes = figure.add_subplot()
    orders = [row["order"] for row in rows]
    for name, label in (("including_oov", "with OOV"), ("excluding_oov", "without OOV")):
        axes.plot(orders, [row[name] for row in rows], marker="o", label=label)
    axes.set_xticks(orders)
    axes.set_xlabel("order")
    axes.set_ylabel("perplexity of held-out text")
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, path)


def check(config):
    """Raises what would be found out else behind the counting, which may take hours."""
    ngrams.Options(config.smoothing, **options_of(config, config.order)).for_order(config.order)
    check_count("seed", config.seed, least=0)
    if config.output.exists() and not config.output.is_dir():
        raise FileExistsError(f"--output must be a folder. Received: {config.output}")
    if (config.output / "metrics.json").exists():
        raise FileExistsError(
            f"--output already holds a model: choose another folder. Received: {config.output}"
        )


def with_files(config):
    """The options with the files that match in place of globs."""
    given = {name: getattr(config, name) for name in ("train", "held_out", "dev")}
    found = {name: data.matching_files(paths) for name, paths in given.items() if paths}
    return dataclasses.replace(
        config, **{name: tuple(map(Path, paths)) for name, paths in found.items()}
    )


def main(config):
    check(config)
    config = with_files(config)
    vocabulary = vocabulary_of(config)
    counts = ngrams.count_ngrams(
        config.train,
        order=config.order,
        vocabulary=vocabulary,
        special_words=config.special_words,
        empty_lines=config.empty_lines,
        memory_limit=config.memory_limit,
        temporary_folder=config.temporary_folder,
    )
    sizes = ", ".join(f"{size:,}" for size in counts.sizes)
    print(f"{counts.tokens:,} tokens; n-grams of orders 1 to {counts.order}: {sizes}")
    rows = []
    print("order   n-grams  perplexity  without OOV     OOV")
    for order in range(1, config.order + 1):
        model = ngrams.NGramLM.from_counts(
            counts.up_to(order), config.smoothing, **options_of(config, order)
        )
        found = model.perplexity(config.held_out)
        if not found.tokens:
            names = ", ".join(map(str, config.held_out))
            raise ValueError(f"--held-out must hold a line. Received: empty files, {names}")
        rows.append(
            {
                "order": order,
                "ngrams": sum(model.sizes),
                "including_oov": found.including_oov,
                "excluding_oov": found.excluding_oov,
                "srilm_ppl": found.srilm_ppl,
                "srilm_ppl1": found.srilm_ppl1,
                "oov": found.oov,
                "tokens": found.tokens,
            }
        )
        print(
            f"{order:>5} {sum(model.sizes):>9,} {found.including_oov:>11.2f} "
            f"{found.excluding_oov:>12.2f} {found.oov:>7,}"
        )
    config.output.mkdir(parents=True, exist_ok=True)
    model.save(config.output / "model")
    if config.arpa and not (config.smoothing == "jelinek_mercer" and config.buckets == "joint"):
        model.write_arpa(config.output / "model.arpa")
    metrics = {"smoothing": config.smoothing, "details": model.details, "orders": rows}
    files.write_json(config.output / "metrics.json", metrics)
    evaluation.draw(draw_perplexities, rows, config.output / "perplexity.png")
    if config.samples > 0:
        sentences = model.sample(config.samples, config.seed)
        text = "".join(f"{sentence}\n" for sentence in sentences)
        with files.whole_file(config.output / "samples.txt") as file:
            file.write(to_bytes(text))
        for sentence in sentences[:3]:
            print(f"sample: {to_bytes(sentence).decode('utf-8', 'replace')}")
    print(f"Saved {config.output / 'model'}")


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
