"""Fine-tunes an encoder to classify sentences or pairs of them, or to score them.

Paper: Devlin et al., 2018, section 4.1 and appendix A.3: batch 16 or 32, rate 5e-5, 3e-5 or 2e-5,
2 to 4 epochs, warm-up over the first tenth of the steps.

    python recipes/finetune_classification.py --encoder runs/bert/preset \\
        --train train.tsv --dev dev.tsv --text text --label label --output runs/reviews

The encoder is a preset folder of ours, or a published checkpoint: a Hugging Face folder or an
original TF1 one. `kctx.presets.from_vectors` makes a preset of word vectors, which want a rate of
about 1e-2. Files are TSV, CSV or JSONL; columns are named or numbered from 0.

The output folder holds preset/ (the best epoch on the dev set: encoder, head, tokenizer and labels,
loaded by `kctx.presets.load`), metrics.json, predictions.jsonl, confusion.png (of a regression
scores.png) and log.csv; with --seeds, one such folder for each seed. What was measured with this
recipe stands in the README.
"""

import collections
import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np

from kctx import command_line, data, evaluation, finetuning, heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(finetuning.TableOptions, finetuning.Options):
    """Options of fine-tuning for classification or regression."""

    task: Literal["classification", "regression"] = "classification"
    """regression: labels are numbers, and so is the answer"""
    pooling: Literal["pooled", "cls", "mean", "max"] | None = None
    """what the head looks at; default: the pooled output where there is one, else the mean"""
    class_weights: Literal["none", "balanced"] = "none"
    """balanced: rare classes count as much as frequent ones"""
    output: Path = Path("runs/classification")
    """folder of the run; checkpoints/ in it is for --resume alone"""


class Sentences(finetuning.FineTuning):
    """What classification and regression share."""

    def __init__(self, config, train, dev):
        self.config, self.train, self.dev = config, train, dev
        self.task = config.task
        self.labels = train.label_names
        self.needs_pairs = train.pairs is not None
        if self.needs_pairs:
            self.task_options = {"pairs": True}

    def describe(self):
        labels = "numbers" if self.labels is None else self.labels
        return f"{len(self.train):,} training and {len(self.dev):,} dev examples, labels: {labels}"

    def stream(self, preprocessor, seed):
        return data.ExampleStream(self.train, preprocessor, self.config.batch_size, seed)

    def answers(self, text_model):
        return text_model.predict(self.dev.texts, self.dev.pairs)

    def rows(self, answers):
        for index, answer in enumerate(answers):
            gold = self.dev.labels[index]
            row = {"text": self.dev.texts[index]}
            if self.dev.pairs is not None:
                row["text_pair"] = self.dev.pairs[index]
            yield {**row, "gold": gold if self.labels is None else self.labels[gold], **answer}


class Classification(Sentences):
    def __init__(self, config, train, dev):
        super().__init__(config, train, dev)
        if config.class_weights == "balanced":
            self.class_weights = evaluation.balanced_weights(train.labels, len(self.labels))

    def model(self, encoder):
        head = heads.Classifier(len(self.labels), self.config.dropout, self.config.pooling)
        return heads.attach(encoder, head)

    def classes(self, answers):
        return [self.labels.index(answer["label"]) for answer in answers]

    def metrics(self, answers):
        return evaluation.classification_report(self.dev.labels, self.classes(answers))

    def baseline(self):
        [(majority, _)] = collections.Counter(self.train.labels).most_common(1)
        predictions = [majority] * len(self.dev)
        return "majority", evaluation.classification_report(self.dev.labels, predictions)

    def plot(self, answers, folder):
        drawn = (self.dev.labels, self.classes(answers), self.labels, folder / "confusion.png")
        evaluation.draw(evaluation.confusion_matrix, *drawn)

    def remark(self, answers):
        if len(set(self.classes(answers))) == 1 and len(answers) > 1:
            return (
                f"All answers are {answers[0]['label']!r}: nothing was learnt. A higher "
                "--learning-rate or more --epochs may help."
            )
        return None


class Regression(Sentences):
    def model(self, encoder):
        return heads.attach(encoder, heads.Regressor(self.config.dropout, self.config.pooling))

    def scores(self, answers):
        return [answer["score"] for answer in answers]

    def metrics(self, answers):
        return evaluation.regression_report(self.dev.labels, self.scores(answers))

    def baseline(self):
        if self.dev.pairs is None:
            name, scores = "length", [len(text) for text in self.dev.texts]
        else:
            name, scores = "shared words", evaluation.word_overlap(self.dev.texts, self.dev.pairs)
        return name, evaluation.regression_report(self.dev.labels, np.asarray(scores, float))

    def plot(self, answers, folder):
        drawn = (self.dev.labels, self.scores(answers), folder / "scores.png")
        evaluation.draw(evaluation.scatter, *drawn)


def read(config):
    regression = config.task == "regression"
    if regression and config.class_weights != "none":
        raise ValueError("`class_weights` belong to classification. Received: task='regression'")
    train, dev = finetuning.read_tables(config, regression)
    return (Regression if regression else Classification)(config, train, dev)


def main(config):
    finetuning.run(config, read)


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
