"""Pretrains BERT on raw text with masked LM and next sentence prediction.

Paper: Devlin et al., 2018, "BERT: Pre-training of Deep Bidirectional Transformers for Language
Understanding", arXiv:1810.04805. There: BooksCorpus and English Wikipedia, 3.3 billion words, batch
256, a million steps, four days on 16 TPU chips (base).

    python recipes/pretrain_bert.py --corpus "texts/*.txt" --size tiny --steps 20000

Text: one or several sentences a line, a blank line between documents. It is streamed, masked anew
in each epoch, and never held in memory as a whole. `--size tiny --steps 5` runs on any laptop. The
paper's second phase, the last tenth of the steps at full length, is a run of its own:
`--init-from runs/bert --sequence-length 512 --max-predictions 77 --output runs/bert-512`.

The output folder holds preset/ (encoder and tokenizer, for fine-tuning), pretraining/ (the same
with the masked-LM and next-sentence layers), checkpoints/, log.csv, learning_curves.png,
tensorboard/ and metrics.json. What was measured with this recipe stands in the README.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np

from kctx import (
    command_line,
    data,
    evaluation,
    models,
    objectives,
    preprocessors,
    presets,
    tokenizers,
    training,
)


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of BERT's pretraining; defaults are the paper's, where it has them."""

    corpus: tuple[str, ...]
    """text files or globs to train on"""
    held_out: tuple[str, ...] = ()
    """text files or globs to evaluate on at the end, against the unigram entropy"""
    output: Path = Path("runs/bert")
    """folder of the run"""
    encoding: str = "utf-8"
    """encoding of the text files"""
    split_sentences: Literal["auto", "yes", "no"] = "auto"
    """whether lines hold several sentences, which are then split"""
    max_document_bytes: int = 1 << 20
    """longer documents are cut at line ends; about 4096 for text without blank lines between"""
    vocabulary: Path | None = None
    """vocab.txt to use; default: one is trained on the corpus"""
    vocabulary_size: int = 30522
    """entries of a vocabulary that is trained"""
    lowercase: bool = True
    """lower-case and strip accents, if the vocabulary is trained or given; --no-lowercase for a
    cased model"""
    size: str | None = None
    """tiny, mini, small, medium, base, large, or L2_H128 ... L12_H768 (layers, width); default:
    base, or what --init-from brings"""
    num_layers: int | None = None
    """replaces that of the size, as do the next three"""
    hidden_dim: int | None = None
    num_heads: int | None = None
    intermediate_dim: int | None = None
    dropout: float = 0.1
    """rate of every dropout, unless --init-from brings its own"""
    next_sentence: bool = True
    """whether pairs are made and the next sentence is predicted; --no-next-sentence also suits a
    corpus that is one document"""
    sequence_length: int = 128
    """tokens of a training sequence, special ones included"""
    max_predictions: int = 20
    """most masked tokens of a sequence; about 0.15 of its length"""
    whole_word: bool = False
    """mask all pieces of a word together"""
    static_masking: int = 0
    """0: mask anew in each epoch; n: make n fixed maskings and repeat them (paper: 10)"""
    records: Path | None = None
    """folder of tokenized records: written on the first run, read again on later ones, which must
    have the same corpus, tokenizer and sequence length"""
    batch_size: int = 256
    """sequences of a step"""
    steps: int = 1_000_000
    """training steps, warm-up included"""
    learning_rate: float = 1e-4
    """peak, after warm-up; it then falls linearly to zero"""
    warmup: float = 0.01
    """share of the steps in which the rate rises"""
    weight_decay: float = 0.01
    bias_correction: bool = False
    """of Adam's moments; the original has none, which makes the first thousands of steps up to
    three times larger: switch it on for short runs"""
    save_every: int = 1000
    """steps between checkpoints, which are also the lines of the progress bar"""
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """mixed_bfloat16 is the faster on most devices, mixed_float16 for older GPUs"""
    seed: int = 0
    """fixes everything on one backend"""
    resume: bool = False
    """go on with a broken run, exactly where it was saved: same schedule, same data order"""
    init_from: Path | None = None
    """start a new run, with a new schedule, from the model and tokenizer in another run's folder"""


def make_tokenizer(config):
    """The tokenizer of this run or of the one to go on from, or a new one."""
    if config.vocabulary:
        return tokenizers.WordPieceTokenizer(config.vocabulary, lowercase=config.lowercase)
    if config.init_from:
        return tokenizers.WordPieceTokenizer.from_folder(config.init_from / "preset")
    if config.resume and (config.output / "tokenizer.json").is_file():
        return tokenizers.WordPieceTokenizer.from_folder(config.output)
    return tokenizers.train_wordpiece(
        data.Corpus(config.corpus, encoding=config.encoding).files,
        config.vocabulary_size,
        config.lowercase,
        encoding=config.encoding,
    )


def make_corpus(config, texts):
    """The documents of text files."""
    split = {"auto": "auto", "yes": True, "no": False}[config.split_sentences]
    corpus = data.Corpus(texts, config.encoding, split, config.max_document_bytes)
    lines = "lines hold several sentences" if corpus.splits_lines else "a line is a sentence"
    size = f"{corpus.num_documents:,} documents, {corpus.num_bytes:,} bytes"
    print(f"{' '.join(texts)}: {size}, {lines}")
    return corpus


def make_stream(config, tokenizer, texts, **options):
    """Masked batches of pairs, streamed from text."""
    return data.bert_pretraining_stream(
        make_corpus(config, texts),
        tokenizer,
        sequence_length=config.sequence_length,
        next_sentence=config.next_sentence,
        dupe_factor=max(config.static_masking, 1),
        seed=config.seed,
        **{**masking(config), **options},
    )


def masking(config):
    """Options that streams from text and from records share."""
    return {
        "max_predictions": config.max_predictions,
        "whole_word": config.whole_word,
        "static_masking": config.static_masking > 0,
        "batch_size": config.batch_size,
    }


def make_records_stream(config, tokenizer, **options):
    """The same from tokenized records, which are written first if they are not there."""
    corpus = make_corpus(config, config.corpus)
    made_with = {
        "sequence_length": config.sequence_length,
        "next_sentence": config.next_sentence,
        "passes": max(config.static_masking, 1),
        "seed": config.seed,
    }
    if not data.has_records(config.records):
        data.write_records(corpus, tokenizer, config.records, **made_with)
    del made_with["seed"]  # the same records will do for other orders
    return data.records_stream(
        config.records,
        tokenizer,
        config.seed,
        expected={**made_with, **corpus.fingerprint()},
        **masking(config),
        **options,
    )


SHAPE = ("num_layers", "hidden_dim", "num_heads", "intermediate_dim")


def check(config):
    """Refuses what does not go together before anything is made."""
    if not config.resume:
        training.refuse_used(config.output / "checkpoints")
    if config.size is not None and config.size not in models.BERT.SIZES:
        raise ValueError(f"--size must be as in --help. Received: {config.size}")
    given = [name for name in ("size", *SHAPE) if getattr(config, name) is not None]
    if config.init_from and given:
        raise ValueError(f"--init-from brings its own shape. Received: {', '.join(given)} as well")


def make_model(config, tokenizer):
    """The encoder with its objectives, new or from another run."""
    if config.init_from:
        model = presets.load(config.init_from / "pretraining", dtype=config.dtype).model
        if ("next_sentence" in model.output) != config.next_sentence:
            raise ValueError(
                "--next-sentence must be as in the run of --init-from, which predicts "
                f"{', '.join(model.output)}. Received: {config.next_sentence}"
            )
        return model
    overrides = {name: getattr(config, name) for name in SHAPE if getattr(config, name) is not None}
    encoder = models.BERT.from_size(
        config.size or "base",
        vocabulary_size=tokenizer.vocabulary_size,
        dropout=config.dropout,
        attention_dropout=config.dropout,
        **overrides,
    )
    parts = [objectives.MaskedLM(encoder)]
    if config.next_sentence:
        parts.append(objectives.NextSentence(encoder))
    return objectives.Joint(parts)


def make_held_out(config, tokenizer):
    """Held-out stream, its number of batches, and how often each token occurs in its text.

    Made before the training, so that what is wrong with the text is said then.
    """
    batch_size = min(config.batch_size, 32)  # part batches are dropped: small ones lose less
    stream = make_stream(
        config, tokenizer, config.held_out, static_masking=True, epochs=1, batch_size=batch_size
    )
    corpus = stream.blocks.corpus
    counts = np.zeros(tokenizer.vocabulary_size, "int64")
    for document in range(corpus.num_documents):
        ids = tokenizer(corpus.sentences(document)).flat_values.numpy()
        counts += np.bincount(ids, minlength=len(counts))
    return stream, sum(1 for _ in stream.batches()), counts


def evaluate(model, stream, steps, counts):
    """Losses and accuracies on held-out text, and what knowing only word frequencies would give."""
    metrics = model.evaluate(stream.dataset(), steps=steps, return_dict=True, verbose=0)
    if len(model.output) == 1:  # Keras names the output only where there are several
        metrics = {f"{next(iter(model.output))}_{name}": x for name, x in metrics.items()}
    metrics = {f"held_out_{name}": float(value) for name, value in metrics.items()}
    metrics["held_out_unigram_entropy"] = evaluation.unigram_entropy(counts)
    metrics["held_out_most_frequent_accuracy"] = float(counts.max() / counts.sum())
    return metrics


def main(config):
    settings = training.setup(config.seed, config.dtype)
    print(settings.describe())
    check(config)
    tokenizer = make_tokenizer(config)
    model = make_model(config, tokenizer)
    options = {"vocabulary_size": model.encoder.vocabulary_size}
    if config.records:
        stream = make_records_stream(config, tokenizer, **options)
    else:
        stream = make_stream(config, tokenizer, config.corpus, **options)
    held_out = make_held_out(config, tokenizer) if config.held_out else None
    tokenizer.save_assets(config.output)
    print(f"{model.count_params():,} parameters, {tokenizer.vocabulary_size:,} tokens")
    schedule = training.WarmupLinearDecay(
        config.learning_rate, round(config.warmup * config.steps), config.steps
    )
    optimizer = training.AdamW(
        schedule, weight_decay=config.weight_decay, bias_correction=config.bias_correction
    )
    model.compile_for(settings.scaled(optimizer), jit_compile=settings.jit_compile)
    history = training.fit_steps(
        model,
        stream.dataset,
        total_steps=config.steps,
        every=config.save_every,
        checkpoints=training.Checkpoints(
            config.output / "checkpoints", every=config.save_every, stream=stream
        ),
        resume=config.resume,
        callbacks=training.reports(
            config.output, tokens_per_batch=config.batch_size * stream.sequence_length
        ),
    )
    preprocessor = preprocessors.BERTPreprocessor(tokenizer, model.encoder.max_sequence_length)
    presets.save(config.output / "preset", model.encoder, preprocessor)
    presets.save(config.output / "pretraining", model, preprocessor)
    # The mean over the last steps, as in the last row of log.csv.
    metrics = {f"training_{k}": v[-1] for k, v in history.history.items()} if history else {}
    if held_out:
        metrics.update(evaluate(model, *held_out))
    evaluation.write_run_report(config.output, metrics)
    print(
        f"Saved {config.output / 'preset'}, to be fine-tuned, and {config.output / 'pretraining'}"
    )


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
