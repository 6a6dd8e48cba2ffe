"""Trains GloVe vectors: words, counts of neighbours, vectors.

Paper: Pennington, Socher and Manning, 2014, "GloVe: Global Vectors for Word Representation",
EMNLP. There: 6 billion words of Wikipedia and news, 400,000 words, window 10, x_max 100,
alpha 3/4, rate 0.05, 50 epochs below 300 dimensions, else 100; 85 minutes of counting on one core
and 14 minutes an epoch on 32 cores.

    python recipes/pretrain_glove.py --corpus "texts/*.txt" --output runs/glove

Text: words at white space, as they are; lower-case and tokenise it before. Windows never cross the
end of a line, and words rarer than --min-count do not take a place in them. Counts that do not fit
into --memory are kept sorted on the disk and merged; training reads them from the disk.

The output folder holds vocab.txt, cooccurrence.bin and cooccurrence.shuf.bin (all as the C tools
write them), checkpoints/, vectors/ (for `kctx.vectors.Vectors.load`), vectors.txt, vectors.bin (all
trained numbers, as the C tool's -binary 1), log.csv, learning_curves.png, tensorboard/ and
metrics.json, whose loss is the mean over the last epoch, or over its last steps, 100 at most.
`evaluate_vectors.py --vectors runs/glove/vectors.txt` evaluates them.
"""

import dataclasses
from pathlib import Path
from typing import Literal

from kctx import command_line, convert, data, evaluation, models, training
from kctx.arguments import check_number


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of training GloVe; defaults are the paper's, where it has them."""

    corpus: tuple[str, ...]
    """text files or globs"""
    output: Path = Path("runs/glove")
    """folder of the run"""
    min_count: int = 5
    """rarer words are left out"""
    max_size: int | None = None
    """how many words to keep at most"""
    window: int = 10
    """words on each side that count as neighbours; the C tool has 15"""
    symmetric: bool = True
    """--no-symmetric: only words to the left are contexts"""
    distance_weighting: bool = True
    """neighbours d words apart count 1/d; --no-distance-weighting: 1"""
    dim: int = 100
    """numbers of a vector"""
    x_max: float = 100.0
    """counts beyond it weigh 1; a tenth suits small corpora"""
    alpha: float = 0.75
    """counts x below weigh (x / x_max) ** alpha"""
    learning_rate: float = 0.05
    """of the vectors"""
    bias_rate: float = 1.0
    """of the biases; the C tool had the rate of the vectors until 2019"""
    epochs: int = 50
    """passes over the counts"""
    batch_size: int | None = None
    """records of a step; default: 65,536, or a 64th of the records if that is less"""
    part: Literal[models.GLOVE_PARTS] = "sum"
    """what is exported of a word's two vectors: their sum, the first alone, or both in a row"""
    unknown: bool = False
    """append <unk>, the mean of the 100 rarest words, as the C tool does"""
    memory: float = 1.0
    """gigabytes for the counts"""
    save_every: int = 5
    """epochs between checkpoints"""
    seed: int = 0
    """fixes everything on one backend"""
    resume: bool = False
    """go on with a broken run, exactly where it was saved"""


def make_records(config, texts):
    """Vocabulary and shuffled counts of the corpus, from an earlier try if there is one."""
    vocabulary_file = config.output / "vocab.txt"
    counts, shuffled = (config.output / f"cooccurrence{x}.bin" for x in ("", ".shuf"))
    resumed = config.resume and training.has_checkpoint(config.output / "checkpoints")
    if resumed and vocabulary_file.is_file() and shuffled.is_file():
        vocabulary = data.WordVocabulary.load(vocabulary_file)
        return vocabulary, data.open_cooccurrences(shuffled, words=vocabulary.words)
    check_number("memory", config.memory, above=0)
    memory = round(config.memory * (1 << 30))
    vocabulary = data.WordVocabulary.train(
        texts, min_count=config.min_count, max_size=config.max_size, order="bytes"
    )
    if config.unknown and "<unk>" in vocabulary:
        raise ValueError("The corpus holds the word <unk>, which --unknown would add once more")
    corpus = data.IdCorpus.build(vocabulary, texts)
    records = data.count_cooccurrences(
        corpus,
        len(vocabulary),
        counts,
        window=config.window,
        symmetric=config.symmetric,
        distance_weighting=config.distance_weighting,
        memory_limit=memory,
    )
    data.shuffle_cooccurrences(records, shuffled, config.seed, memory)
    vocabulary.save(vocabulary_file)  # last: the sign that the counts are whole
    return vocabulary, data.open_cooccurrences(shuffled, words=vocabulary.words)


def main(config):
    settings = training.setup(config.seed)
    print(settings.describe())
    if not config.resume:
        training.refuse_used(config.output / "checkpoints")
    texts = data.matching_files(config.corpus)
    vocabulary, records = make_records(config, texts)
    model = models.GloVe(
        len(vocabulary),
        config.dim,
        x_max=config.x_max,
        alpha=config.alpha,
        learning_rate=config.learning_rate,
        bias_rate=config.bias_rate,
        words=vocabulary.words,
        seed=config.seed,
    )
    stream = data.CooccurrenceStream(
        records,
        len(vocabulary),
        config.batch_size,
        config.seed,
        static_shapes=not model.on_cpu,
    )
    parameters = sum(variable.shape[0] * variable.shape[1] for variable in model.trainable_weights)
    print(
        f"{len(vocabulary):,} words, {len(records):,} pairs of them near each other, "
        f"{parameters:,} parameters, {stream.steps_per_epoch:,} steps an epoch"
    )
    every = stream.steps_per_epoch
    counted = ("window", "symmetric", "distance_weighting", "min_count", "max_size")
    trained = training.fit_stream(
        model,
        stream,
        config.output,
        every * config.epochs,
        len(records) / every,
        what="records",
        save_every=config.save_every,
        log_every=min(100, every),
        fingerprint={
            "corpus": [[Path(text).name, Path(text).stat().st_size] for text in texts],
            **{name: getattr(config, name) for name in counted},
        },
        resume=config.resume,
    )
    vectors = model.vectors(vocabulary, config.part, config.unknown)
    convert.save_vectors(vectors, config.output / "vectors", format="native")
    convert.save_vectors(vectors, config.output / "vectors.txt", format="glove")
    convert.save_glove_parameters(model, config.output / "vectors.bin")
    metrics = {
        "words": len(vocabulary),
        "records": len(records),
        "parameters": parameters,
        "epochs": config.epochs,
        **trained,
    }
    evaluation.write_run_report(config.output, metrics)
    print(f"Saved {config.output / 'vectors'} and {config.output / 'vectors.txt'}")


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
