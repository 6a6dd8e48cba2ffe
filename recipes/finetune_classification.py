"""Fine-tunes an encoder to classify sentences or pairs of them, or to score them.

Paper: Devlin et al., 2018, section 4.1 and appendix A.3: batch 16 or 32, rate 5e-5, 3e-5 or 2e-5,
2 to 4 epochs, warm-up over the first tenth of the steps.

    python recipes/finetune_classification.py --encoder runs/bert/preset \\
        --train train.tsv --dev dev.tsv --text text --label label --output runs/reviews

The encoder is a preset folder of ours, or a published checkpoint: a Hugging Face folder or an
original TF1 one. `kctx.presets.from_vectors` makes a preset of word vectors, which want a rate of
about 1e-2. Files are TSV, CSV or JSONL; columns are named or numbered from 0.

The output folder holds preset/ (the best epoch on the dev set: encoder, head, tokenizer and labels,
loaded by `kctx.presets.load`), metrics.json, predictions.jsonl, confusion.png and log.csv. What was
measured with this recipe stands in the README.
"""

import dataclasses
import json
from pathlib import Path
from typing import Literal

from kctx import command_line, convert, data, evaluation, files, heads, presets, training


@dataclasses.dataclass(frozen=True)
class Config:
    """Options of fine-tuning for classification or regression."""

    encoder: Path
    """preset folder, Hugging Face folder or TF1 checkpoint to start from"""
    train: Path
    """labelled TSV, CSV or JSONL file"""
    dev: Path | None = None
    """labelled file to choose the best epoch on; default: every tenth row of the training file"""
    text: str = "0"
    """column of the text, by name or number from 0"""
    pair: str | None = None
    """column of the second text, if there are pairs"""
    label: str = "1"
    """column of the label"""
    encoding: str = "utf-8"
    """encoding of the files"""
    format: Literal["auto", "tsv", "csv", "jsonl"] = "auto"
    """of the files; auto: by the ends of their names"""
    header: Literal["auto", "yes", "no"] = "auto"
    """whether the first row names the columns"""
    quoting: Literal["auto", "yes", "no"] = "auto"
    """whether fields are quoted as in CSV; auto: in .csv files"""
    extra_columns: bool = False
    """allow rows with more columns than the first"""
    task: Literal["classification", "regression"] = "classification"
    """regression: labels are numbers, and so is the answer"""
    random_weights: bool = False
    """start from random weights instead of the encoder's, to see what pretraining gains"""
    pooling: Literal["pooled", "cls", "mean", "max"] | None = None
    """what the head looks at; default: the pooled output where there is one, else the mean"""
    output: Path = Path("runs/classification")
    """folder of the run"""
    sequence_length: int = 128
    """longest input in tokens; longer texts are truncated"""
    batch_size: int = 32
    """texts, or pairs, of a step"""
    epochs: int = 3
    """passes over the training file"""
    learning_rate: float = 5e-5
    """peak; 1e-4 to 3e-4 suit the small sizes"""
    warmup: float = 0.1
    """share of the steps in which the rate rises"""
    weight_decay: float = 0.01
    bias_correction: bool = True
    """of Adam's moments; the original has none, which makes fine-tuning on few rows unstable"""
    dropout: float = 0.1
    """on what the head looks at"""
    dtype: Literal["float32", "mixed_bfloat16", "mixed_float16"] = "float32"
    """mixed_bfloat16 is the faster on most devices, mixed_float16 for older GPUs"""
    seed: int = 0
    """fixes everything on one backend"""
    resume: bool = False
    """go on with a broken run"""


CHOICES = {"auto": "auto", "yes": True, "no": False}


def read(config, path, header, label_names=None):
    """Examples of a file, with the columns and the reading options of the run."""

    def column(name):
        return int(name) if name is not None and name.isdigit() else name

    return data.read_examples(
        path,
        column(config.text),
        column(config.pair),
        column(config.label),
        format=config.format,
        header=header,
        quoting=CHOICES[config.quoting],
        encoding=config.encoding,
        label_names=label_names,
        regression=config.task == "regression",
        extra_columns=config.extra_columns,
    )


def make_datasets(config):
    """Training and dev examples; the dev file is laid out as the training file is."""
    train = read(config, config.train, CHOICES[config.header])
    if config.dev is None:
        return train.split(every=10)
    return train, read(config, config.dev, train.has_header, train.label_names)


def make_model(config, label_names):
    """The encoder with a new head, that head, and the preprocessor that belongs to it."""
    loaded, report = convert.load_preset(config.encoder)
    print(report)
    encoder = loaded.encoder
    if config.sequence_length > loaded.preprocessor.sequence_length:
        print(f"Texts are cut at {loaded.preprocessor.sequence_length} tokens, all the model takes")
    if config.random_weights:
        encoder = type(encoder).from_config(encoder.get_config())
    preprocessor = loaded.preprocessor.with_options(
        sequence_length=min(config.sequence_length, loaded.preprocessor.sequence_length)
    )
    if config.task == "regression":
        head = heads.Regressor(config.dropout, config.pooling)
    else:
        head = heads.Classifier(len(label_names), config.dropout, config.pooling)
    return heads.attach(encoder, head), head, preprocessor


def evaluate(text_model, examples):
    """Metrics and predictions on labelled examples."""
    predictions = text_model.predict(examples.texts, examples.pairs)
    if text_model.task == "regression":
        scores = [prediction["score"] for prediction in predictions]
        return evaluation.regression_report(examples.labels, scores), predictions
    ids = [text_model.labels.index(prediction["label"]) for prediction in predictions]
    return evaluation.classification_report(examples.labels, ids), predictions


def write_report(config, text_model, dev):
    """Metrics, predictions and, for classes, the confusion matrix of the best epoch."""
    metrics, predictions = evaluate(text_model, dev)
    names = dev.label_names
    with open(config.output / "predictions.jsonl", "w", encoding="utf-8") as file:
        for index, prediction in enumerate(predictions):
            gold = dev.labels[index] if names is None else names[dev.labels[index]]
            row = {"text": dev.texts[index], "gold": gold, **prediction}
            if dev.pairs:
                row["pair"] = dev.pairs[index]
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    files.write_json(config.output / "metrics.json", metrics)
    if names is not None:
        if len({prediction["label"] for prediction in predictions}) == 1 and len(dev) > 1:
            print(
                f"All answers are {predictions[0]['label']!r}: nothing was learnt. A higher "
                "--learning-rate or more --epochs may help."
            )
        ids = [names.index(prediction["label"]) for prediction in predictions]
        path = config.output / "confusion.png"
        evaluation.draw(evaluation.confusion_matrix, dev.labels, ids, names, path)
    for name, value in metrics.items():
        print(f"{name:<12} {value:.4f}")


def main(config):
    settings = training.setup(config.seed, config.dtype)
    print(settings.describe())
    if not config.resume:
        training.refuse_used(config.output / "checkpoints")
    train, dev = make_datasets(config)
    model, head, preprocessor = make_model(config, train.label_names)
    print(f"{len(train):,} training and {len(dev):,} dev examples, labels: {train.label_names}")
    # Lengths in steps of 16, so that few shapes are compiled.
    padded = preprocessor.with_options(pad_to_multiple=16)
    batches = data.ExampleStream(train, padded, config.batch_size, seed=config.seed)
    steps = batches.steps_per_epoch * config.epochs
    schedule = training.WarmupLinearDecay(config.learning_rate, round(config.warmup * steps), steps)
    optimizer = training.AdamW(
        schedule, weight_decay=config.weight_decay, bias_correction=config.bias_correction
    )
    model.compile(
        settings.scaled(optimizer),
        loss=head.output_loss(),
        metrics=head.output_metrics(),
        jit_compile=settings.jit_compile,
    )
    text_model = presets.TextModel(model, preprocessor, config.task, train.label_names)
    best = training.KeepBest(
        config.output / "best.json",
        evaluate=lambda: evaluate(text_model, dev)[0],
        save=lambda: text_model.save(config.output / "preset"),
    )
    training.fit_steps(
        model,
        batches.dataset,
        total_steps=steps,
        every=batches.steps_per_epoch,
        checkpoints=training.Checkpoints(
            config.output / "checkpoints", every=batches.steps_per_epoch, keep=1, stream=batches
        ),
        resume=config.resume,
        callbacks=[best, *training.reports(config.output)],
    )
    write_report(config, presets.load(config.output / "preset"), dev)
    print(f"Saved {config.output / 'preset'}, the best epoch")


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
