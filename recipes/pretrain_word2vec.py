"""Trains Word2Vec vectors: skip-gram or bag of words, negative sampling or hierarchical softmax.

Papers: Mikolov, Chen, Corrado and Dean, 2013, "Efficient Estimation of Word Representations in
Vector Space", arXiv:1301.3781; Mikolov, Sutskever, Chen, Corrado and Dean, 2013, "Distributed
Representations of Words and Phrases and their Compositionality", NIPS. Published vectors: 100
billion words of news, 3 million words and phrases, 300 numbers each.

    python recipes/pretrain_word2vec.py --corpus "texts/*.txt" --output runs/word2vec

Text: words at white space, as they are; lower-case and tokenise it before. Windows never cross the
end of a line. `--phrase-thresholds 200 100` joins phrases such as new_york first, in two passes.

Departures from the original tool, for speed: the text is trained in blocks whose centres share
their negatives (Ji et al., 2016), and the summed step of a row that a step of training holds often
is divided by the square root of how often, which needs the higher rate that is the default.

The output folder holds vocab.txt (words and counts as the original writes them, but without its
first line, of the ends of lines, </s>, which is no word here), vectors/ (for
`kctx.vectors.Vectors.load`), vectors.bin (the original's binary format), checkpoints/, ids.bin (the
text as numbers, for --resume), log.csv, learning_curves.png, tensorboard/ and metrics.json, with
scores on --word-pairs and --analogies if there are some. `evaluate_vectors.py --vectors
runs/word2vec/vectors.bin` says more about the vectors.
"""

import dataclasses
import os
from pathlib import Path
from typing import Literal

from kctx import command_line, convert, data, evaluation, models, training


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of training Word2Vec."""

    corpus: tuple[str, ...]
    """text files or globs"""
    output: Path = Path("runs/word2vec")
    """folder of the run"""
    architecture: Literal["skip_gram", "cbow"] = "skip_gram"
    """skip_gram: each word of a window predicts the centre; cbow: all together, faster"""
    objective: Literal["negative_sampling", "hierarchical_softmax"] = "negative_sampling"
    """what is predicted: the word against negatives, or its way through a Huffman tree"""
    dim: int = 100
    """numbers of a vector"""
    window: int = 5
    """words on each side of the centre at most; the reach is drawn anew for each"""
    sample: float = 1e-3
    """words of a larger share of the text are left out at times; 0: never; 1e-5 for billions"""
    min_count: int = 5
    """rarer words are left out"""
    max_size: int | None = None
    """how many words to keep at most"""
    negatives: int = 5
    """negatives for each word, 5 to 20 for small corpora, 2 to 5 for large ones"""
    shared_negatives: int = 16
    """drawn for a block of text; together they weigh as --negatives draws for each word"""
    cbow_average: bool = True
    """average the window, as the tool does; --no-cbow-average: sum it, as the paper does"""
    cbow_corrected: bool = False
    """divide the step of an average by the number of words, which the original forgets"""
    epochs: int = 5
    """passes over the text; 10 to 20 for small corpora"""
    learning_rate: float | None = None
    """of the first step; falls in a line to 1e-4 of it; default: 0.05, 0.1 for cbow"""
    phrase_thresholds: tuple[float, ...] = ()
    """join phrases first, a pass for each number: pairs of words with a higher score are joined"""
    block_words: int = 16
    """words of a block of text, which share their negatives"""
    step_blocks: int | None = None
    """blocks of a step; default: 128, fewer for a small corpus, so that it has enough steps"""
    save_every: int = 1
    """epochs between checkpoints"""
    word_pairs: Path | None = None
    """file of word pairs and scores to evaluate on; default: WordSim-353 in KCTX_DATA, if set"""
    analogies: Path | None = None
    """file of analogies to evaluate on; default: questions-words.txt in KCTX_DATA, if set"""
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """of the products; the tables are float32"""
    seed: int = 0
    """fixes everything on one backend"""
    resume: bool = False
    """go on with a broken run, exactly where it was saved"""


def make_corpus(config, texts):
    """Vocabulary and ids of the text; those of an earlier try if it will be gone on with."""
    vocabulary_file, ids_file = config.output / "vocab.txt", config.output / "ids.bin"
    resumed = config.resume and training.has_checkpoint(config.output / "checkpoints")
    if resumed and vocabulary_file.is_file() and ids_file.is_file():
        return data.WordVocabulary.load(vocabulary_file), data.IdCorpus.open(ids_file)
    if config.phrase_thresholds:
        joined = config.output / "phrases.txt"
        for phrases in data.join_phrases(texts, joined, config.phrase_thresholds, config.min_count):
            some = ", ".join("_".join(pair) for pair in phrases.words[:5])
            print(f"{len(phrases):,} phrases, {some}, ...")
        texts = [joined]
    vocabulary = data.WordVocabulary.train(
        texts, min_count=config.min_count, max_size=config.max_size
    )
    corpus = data.IdCorpus.build(vocabulary, texts, path=ids_file)
    vocabulary.save(vocabulary_file)  # last: the sign that the ids are whole
    return vocabulary, corpus


def fingerprint(config, texts):
    """What vocabulary and ids depend on, which a resumed run does not make anew."""
    return {
        "corpus": [[Path(text).name, Path(text).stat().st_size] for text in texts],
        "min_count": config.min_count,
        "max_size": config.max_size,
        "phrase_thresholds": list(config.phrase_thresholds),
    }


def step_blocks(config, vocabulary):
    """So many that an epoch has 200 steps, from 4 to 128."""
    if config.step_blocks is not None:
        return config.step_blocks
    return max(4, min(128, int(vocabulary.counts.sum()) // max(200 * config.block_words, 1)))


def make_stream(config, vocabulary, corpus):
    """Batches of blocks of the text."""
    if config.objective == "negative_sampling":
        targets = data.NegativeSampling(vocabulary.counts, config.shared_negatives)
    else:
        targets = data.HierarchicalSoftmax(vocabulary.counts)
    rate = config.learning_rate
    if rate is None:
        rate = 0.1 if config.architecture == "cbow" else 0.05
    return data.WindowStream(
        corpus,
        vocabulary.counts,
        targets,
        sample=config.sample,
        epochs=config.epochs,
        window=config.window,
        learning_rate=rate,
        block_words=config.block_words,
        step_blocks=step_blocks(config, vocabulary),
        seed=config.seed,
    )


def evaluate(config, vectors):
    """Scores on word pairs and analogies, where there are files of them."""
    pairs, questions = config.word_pairs, config.analogies
    if folder := os.environ.get("KCTX_DATA"):
        folder = Path(folder) / "embeddings"
        pairs = pairs or folder / "wordsim353.tsv"
        questions = questions or folder / "questions-words.txt"
    metrics = {}
    if pairs and (pairs.is_file() or config.word_pairs):
        found = evaluation.word_similarity(vectors, pairs)
        metrics["word_pairs_spearman"] = found["spearman"]
        metrics["word_pairs_used"] = found["used"]
    if questions and (questions.exists() or config.analogies):
        found = evaluation.analogies(vectors, questions)
        for kind in ("total", "semantic", "syntactic"):
            metrics[f"analogies_{kind}"] = found[kind]["accuracy"]
        metrics["analogies_used"] = found["total"]["used"]
    return metrics


def main(config):
    settings = training.setup(config.seed, config.dtype)
    print(settings.describe())
    if not config.resume:
        training.refuse_used(config.output / "checkpoints")
    for path in (config.word_pairs, config.analogies):
        if path and not path.exists():
            raise FileNotFoundError(f"No such file to evaluate on: {path}")
    texts = data.matching_files(config.corpus)
    vocabulary, corpus = make_corpus(config, texts)
    model = models.Word2Vec(
        len(vocabulary),
        config.dim,
        config.architecture,
        config.objective,
        config.negatives,
        config.cbow_average,
        config.cbow_corrected,
        seed=config.seed,
    )
    stream = make_stream(config, vocabulary, corpus)
    print(
        f"{len(vocabulary):,} words, {vocabulary.counts.sum():,} of text, "
        f"{model.count_params():,} parameters, {stream.steps_per_epoch:,} batches an epoch"
    )
    trained = training.fit_stream(
        model,
        stream,
        config.output,
        stream.total_steps,
        stream.words_per_batch,
        save_every=config.save_every,
        fingerprint=fingerprint(config, texts),
        resume=config.resume,
    )
    vectors = model.vectors(vocabulary)
    convert.save_vectors(vectors, config.output / "vectors", format="native")
    convert.save_vectors(vectors, config.output / "vectors.bin", format="word2vec")
    metrics = {
        "vocabulary": len(vocabulary),
        "words": int(vocabulary.counts.sum()),
        "parameters": model.count_params(),
    }
    metrics |= {**trained, **evaluate(config, vectors)}
    evaluation.write_run_report(config.output, metrics)
    print(f"Saved {config.output / 'vectors'} and {config.output / 'vectors.bin'}")


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
