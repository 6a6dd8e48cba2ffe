"""Trains fastText: vectors of words with subwords, or a classifier of texts.

Papers: Bojanowski, Grave, Joulin and Mikolov, 2017, "Enriching Word Vectors with Subword
Information", TACL (vectors: skipgram and cbow); Joulin, Grave, Bojanowski and Mikolov, 2017, "Bag
of Tricks for Efficient Text Classification", EACL (supervised); Joulin et al., 2016, "FastText.zip"
(--quantize). The options have the names and the defaults of the reference, where it has them.

    python recipes/pretrain_fasttext.py --task skipgram --input "texts/*.txt" --output runs/fasttext
    python recipes/pretrain_fasttext.py --task supervised --input train.txt --valid valid.txt \\
        --word-ngrams 2 --learning-rate 0.5 --output runs/topics

Text: words at white space, as they are; lower-case and tokenise it before. Supervised input has a
line for each text with its labels, `__label__sports words of the text`; or it is a TSV or CSV file,
with --text and --label naming its columns.

Departures from the reference, for speed: text is trained in blocks whose centres share their
negatives, lines in steps of many, and steps that would overshoot are damped.

The output folder holds model.bin (read by fastText, by gensim and by
`kctx.convert.FastTextFile.read`), vectors.vec, vectors/ (for `kctx.vectors.Vectors.load`),
checkpoints/, log.csv, learning_curves.png, tensorboard/ and metrics.json; for vectors also
vocab.txt and ids.bin (the text as numbers, for --resume); with --quantize model.ftz; with --valid
predictions.jsonl and confusion.png. `evaluate_vectors.py --vectors runs/fasttext/model.bin` says
more about the vectors.
"""

import dataclasses
import json
from pathlib import Path
from typing import Literal

import numpy as np

from kctx import command_line, convert, data, evaluation, files, models, training
from kctx.vectors import FastTextPredictor, LineFeatures, SubwordRows, Subwords
from kctx.vectors.line_features import line_tokens
from kctx.vectors.product_quantizer import CENTROIDS
from kctx.words import to_bytes

OBJECTIVES = {
    "ns": "negative_sampling",
    "hs": "hierarchical_softmax",
    "softmax": "softmax",
    "ova": "one_vs_all",
}
LINE_END = "</s>"
_MOST_LABELS_DRAWN = 40
# Options that the kept text and its features depend on: a resumed run must have the same.
_OF_THE_DATA = ("input", "min_count", "min_count_label", "min_n", "max_n", "word_ngrams")


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of training fastText."""

    input: tuple[str, ...]
    """text files or globs; for the classifier labelled ones"""
    task: Literal["skipgram", "cbow", "supervised"] = "skipgram"
    """vectors of words by one of two architectures, or a classifier"""
    output: Path = Path("runs/fasttext")
    """folder of the run"""
    valid: Path | None = None
    """labelled file to evaluate the classifier on"""
    text: str | None = None
    """column of the text in TSV or CSV files, by name or number from 0"""
    label: str | None = None
    """column of the label"""
    label_prefix: str = "__label__"
    """what labels begin with, and nothing else"""
    dim: int = 100
    """numbers of a vector"""
    window: int = 5
    """words on each side of the centre at most; the reach is drawn anew for each"""
    epochs: int = 5
    """passes over the text"""
    min_count: int | None = None
    """rarer words are left out; default 5, for the classifier 1"""
    min_count_label: int = 0
    """rarer labels are left out"""
    word_ngrams: int = 1
    """longest n-gram of words, for the classifier"""
    min_n: int | None = None
    """shortest n-gram of characters; default 3, for the classifier 0"""
    max_n: int | None = None
    """longest n-gram of characters, 0: none; default 6, for the classifier 0"""
    buckets: int = 2_000_000
    """rows for n-grams; none if there are no n-grams"""
    loss: Literal["ns", "hs", "softmax", "ova"] | None = None
    """negative sampling (default), hierarchical softmax; for the classifier also softmax (default)
    and ova, a decision for each label"""
    negatives: int = 5
    """negatives for each word or line"""
    shared_negatives: int = 32
    """how many are drawn for a block of text; together they weigh as --negatives draws for each
    word"""
    sample: float = 1e-4
    """words of a larger share of the text are left out at times; 0: never"""
    learning_rate: float | None = None
    """of the first step; default 0.05 for skipgram, else 0.1"""
    block_words: int = 32
    """words of a block of text, which share their negatives"""
    step_size: int | None = None
    """blocks, or lines, of a step; default for blocks: 8, fewer for a small corpus. Larger steps
    are faster where Numba is not installed, and learn less of what words share"""
    quantize: bool = False
    """write the classifier quantised as well, to model.ftz"""
    cutoff: int = 0
    """rows that the quantised classifier keeps; 0: all"""
    quantize_norms: bool = False
    """quantise the lengths of rows apart"""
    top: int = 1
    """how many labels to predict for each text of --valid"""
    save_every: int = 1
    """epochs between checkpoints"""
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """of the products; the tables are float32"""
    seed: int = 0
    """fixes everything on one backend"""
    resume: bool = False
    """go on with a broken run, exactly where it was saved"""


def with_defaults(config):
    """The configuration with what depends on the task filled in and checked."""
    supervised = config.task == "supervised"
    defaults = {
        "min_count": 1 if supervised else 5,
        "min_n": 0 if supervised else 3,
        "max_n": 0 if supervised else 6,
        "loss": "softmax" if supervised else "ns",
        # As the reference, but for cbow, which learns little at 0.05, here and there.
        "learning_rate": 0.05 if config.task == "skipgram" else 0.1,
    }
    missing = {name: x for name, x in defaults.items() if getattr(config, name) is None}
    config = dataclasses.replace(config, **missing)
    if not config.max_n:
        config = dataclasses.replace(config, min_n=0)
        if config.word_ngrams == 1:
            config = dataclasses.replace(config, buckets=0)
    if not supervised:
        if config.loss not in ("ns", "hs"):
            raise ValueError(f"--loss {config.loss} is for --task supervised only")
        for name in ("valid", "text", "label", "quantize"):
            if getattr(config, name):
                raise ValueError(f"--{name} is for --task supervised only")
        if config.word_ngrams != 1:
            raise ValueError("--word-ngrams is for --task supervised only")
    if (config.text is None) != (config.label is None):
        raise ValueError("--text and --label name two columns of a table: give both or none")
    # Else they would be refused at the end of a long training.
    if config.top < 1 and config.top != -1:
        raise ValueError(f"--top must be above 0, or -1 for all. Received: --top {config.top}")
    if config.cutoff < 0:
        raise ValueError(f"--cutoff must not be below 0. Received: --cutoff {config.cutoff}")
    if config.valid and not config.valid.is_file():
        raise FileNotFoundError(f"No such file to evaluate on: {config.valid}")
    return config


def make_vectors(config, texts):
    """Vocabulary, model and stream of word vectors; the text's ids are kept for a resume."""
    vocabulary_file, ids_file = config.output / "vocab.txt", config.output / "ids.bin"
    split = {"white_space": data.ALL_WHITE_SPACE}
    resumed = config.resume and training.has_checkpoint(config.output / "checkpoints")
    if resumed and vocabulary_file.is_file() and ids_file.is_file():
        vocabulary, corpus = data.WordVocabulary.load(vocabulary_file), data.IdCorpus.open(ids_file)
    else:
        vocabulary = data.WordVocabulary.train(
            texts, min_count=config.min_count, line_end=LINE_END, **split
        )
        corpus = data.IdCorpus.build(vocabulary, texts, path=ids_file, **split)
        vocabulary.save(vocabulary_file)  # last: the sign that the ids are whole
    # All tokens and line ends, rare words included, stand in the ids.
    vocabulary.num_tokens = len(corpus)
    subwords = Subwords(config.min_n, config.max_n, config.buckets)
    if config.loss == "ns":
        targets = data.NegativeSampling(vocabulary.counts, config.shared_negatives, exponent=0.5)
    else:
        targets = data.HierarchicalSoftmax(vocabulary.counts, positive_bit=1)
    words = vocabulary.words
    rows = SubwordRows(words, subwords).of_words(words, np.arange(len(words)))
    step_blocks = config.step_size
    if step_blocks is None:
        step_blocks = max(1, min(8, len(corpus) // max(200 * config.block_words, 1)))
    # A batch, after which a run can be saved, is of many steps, but no more than a part of a text.
    steps = len(corpus) // max(50 * step_blocks * config.block_words, 1)
    stream = data.WindowStream(
        corpus,
        vocabulary.counts,
        targets,
        data.WordFeatures(*rows),
        sample=config.sample,
        num_tokens=vocabulary.num_tokens,
        epochs=config.epochs,
        window=config.window,
        learning_rate=config.learning_rate,
        block_words=config.block_words,
        step_blocks=step_blocks,
        steps=max(1, min(32, steps)),
        predicted="centres" if config.task == "cbow" else "context",
        line_end_id=words.index(LINE_END) if LINE_END in vocabulary else None,
        seed=config.seed,
    )
    model = models.FastText(
        len(words),
        config.buckets,
        config.dim,
        "cbow" if config.task == "cbow" else "skip_gram",
        OBJECTIVES[config.loss],
        config.negatives,
        seed=config.seed,
    )
    print(f"{len(words):,} words, {len(corpus):,} of text with line ends")
    return vocabulary, subwords, model, stream


def read_lines(config, paths, like=None):
    """(labels, words) of each line, and the examples they came from if the file is a table."""
    if config.label is None:
        return data.read_labelled_lines(paths, config.label_prefix), None
    columns = [int(x) if x.isdecimal() else x for x in (config.text, config.label)]
    lines, examples = [], like
    for path in paths:
        examples = data.read_examples(
            path,
            text=columns[0],
            label=columns[1],
            header=examples.has_header if examples else "auto",
            label_names=like.label_names if like else None,
        )
        for text, label in zip(examples.texts, examples.labels, strict=True):
            lines.append(([config.label_prefix + examples.label_names[label]], line_tokens(text)))
    return lines, examples


def make_classifier(config, lines):
    """Vocabulary, model and stream of a classifier."""
    vocabulary = data.count_labelled_lines(lines, config.min_count, config.min_count_label)
    subwords = Subwords(config.min_n, config.max_n, config.buckets)
    features = LineFeatures(vocabulary.words, subwords, config.word_ngrams)
    labelled = data.LabelledLines(lines, vocabulary.labels, features)
    stream = data.LabelledStream(
        labelled,
        vocabulary.label_counts,
        OBJECTIVES[config.loss],
        config.epochs,
        config.learning_rate,
        config.negatives,
        config.step_size,
        seed=config.seed,
    )
    model = models.FastTextClassifier(
        len(vocabulary.words),
        len(vocabulary.labels),
        config.buckets,
        config.dim,
        OBJECTIVES[config.loss],
        seed=config.seed,
    )
    print(
        f"{len(labelled):,} lines ({labelled.num_skipped:,} without a label or a known word left "
        f"out), {len(vocabulary.labels):,} labels, {len(vocabulary.words):,} words"
    )
    return vocabulary, subwords, model, stream


def evaluate(config, file, lines, write=True):
    """Scores on held-out lines as fastText's `test` has them; writes what was predicted, if asked.

    Precision is the share of right answers among the answers, recall the share of the labels that
    are among the answers; accuracy counts lines whose first answer is right.
    """
    lines = [(labels, " ".join(words)) for labels, words in lines if labels]
    if not lines:
        raise ValueError(f"No line of {config.valid} has a label")
    answers = FastTextPredictor(file, config.label_prefix).predict(
        [text for _, text in lines], config.top
    )
    hits = first = 0
    for (labels, _), answer in zip(lines, answers, strict=True):
        hits += len({label for label, _ in answer} & set(labels))
        first += bool(answer) and answer[0][0] in labels
    if write:
        write_predictions(config, file.labels, lines, answers)
    return {
        "lines": len(lines),
        "accuracy": first / len(lines),
        f"precision_at_{config.top}": hits / max(sum(map(len, answers)), 1),
        f"recall_at_{config.top}": hits / sum(len(set(labels)) for labels, _ in lines),
    }


def write_predictions(config, names, lines, answers):
    """predictions.jsonl, and where each line has one label and they are few, confusion.png."""
    rows = [
        json.dumps({"text": text, "gold": labels, "labels": dict(answer)}, ensure_ascii=False)
        for (labels, text), answer in zip(lines, answers, strict=True)
    ]
    # Bytes that are not UTF-8 cannot stand in JSON.
    text = to_bytes("".join(f"{row}\n" for row in rows))
    files.write_text(config.output / "predictions.jsonl", text.decode("utf-8", "replace"))
    pairs = [
        (names.index(labels[0]), names.index(answer[0][0]))
        for (labels, _), answer in zip(lines, answers, strict=True)
        if answer and len(labels) == 1 and labels[0] in names
    ]
    if len(names) <= _MOST_LABELS_DRAWN and len(pairs) == len(lines):
        gold, predicted = zip(*pairs, strict=True)
        shown = [name.removeprefix(config.label_prefix) for name in names]
        path = config.output / "confusion.png"
        evaluation.draw(evaluation.confusion_matrix, gold, predicted, shown, path)


def main(config):
    config = with_defaults(config)
    settings = training.setup(config.seed, config.dtype)
    print(settings.describe())
    if not config.resume:
        training.refuse_used(config.output / "checkpoints")
    paths = data.matching_files(config.input)
    held_out = None
    if config.task == "supervised":
        lines, examples = read_lines(config, paths)
        if config.valid:
            held_out, _ = read_lines(config, [config.valid], examples)
        vocabulary, subwords, model, stream = make_classifier(config, lines)
        rows = model.vocabulary_size + model.buckets
        if config.quantize and min(rows, config.cutoff or rows) < CENTROIDS:
            raise ValueError(
                f"--quantize needs at least {CENTROIDS} rows, of words and buckets. "
                f"Received: {rows}, --cutoff {config.cutoff}"
            )
    else:
        vocabulary, subwords, model, stream = make_vectors(config, paths)
    print(f"{model.count_params():,} parameters, {stream.steps_per_epoch:,} batches an epoch")
    metrics = {"vocabulary": len(vocabulary.words), "parameters": model.count_params()}
    metrics |= training.fit_stream(
        model,
        stream,
        config.output,
        stream.total_steps,
        stream.words_per_batch,
        save_every=config.save_every,
        fingerprint={name: getattr(config, name) for name in _OF_THE_DATA},
        resume=config.resume,
    )
    file = convert.to_fasttext_file(
        model,
        vocabulary,
        subwords,
        config.word_ngrams,
        num_negatives=config.negatives,
        window=config.window,
        epochs=config.epochs,
        min_count=config.min_count,
        threshold=config.sample,
    )
    file.write(config.output / "model.bin")
    vectors, _ = convert.load_vectors(config.output / "model.bin", format="fasttext")
    convert.save_vectors(vectors, config.output / "vectors", format="native")
    convert.save_vectors(vectors, config.output / "vectors.vec", format="vec")
    if held_out:
        metrics.update(evaluate(config, file, held_out))
    if config.quantize:
        small = file.quantize(config.cutoff, norms=config.quantize_norms)
        small.write(config.output / "model.ftz")
        if held_out:
            found = evaluate(config, small, held_out, write=False)
            metrics["accuracy_quantized"] = found["accuracy"]
    evaluation.write_run_report(config.output, metrics)
    print(f"Saved {config.output / 'model.bin'}")


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
