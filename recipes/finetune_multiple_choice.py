"""Fine-tunes an encoder to choose which of several answers or endings goes with a text.

Paper: Devlin et al., 2018, section 4.4 (SWAG): batch 16, rate 2e-5, 3 epochs; Radford et al., 2018,
section 3.3.

    python recipes/finetune_multiple_choice.py --encoder runs/bert/preset --train train.jsonl \\
        --dev dev.jsonl --output runs/choices

Files are JSONL with `context`, `choices`, `label` (place from 0, or the text of the right one) and
perhaps `question`, or have the published form of DREAM, C3, COPA, HellaSwag or MCTest (--format).
A step encodes all choices of its questions, so batches are smaller here than elsewhere.

The output folder holds preset/ (the best epoch on the dev set, by accuracy), metrics.json,
predictions.jsonl, reliability.png and log.csv; with --seeds, one such folder for each seed. The
baseline chooses the answer that shares most words with the text; "chance" is what guessing gives.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import numpy as np

from kctx import command_line, data, evaluation, finetuning, heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(finetuning.Options):
    """Options of fine-tuning for multiple choice."""

    format: Literal["jsonl", "dream", "c3", "copa", "hellaswag", "mctest"] = "jsonl"
    """of the files"""
    pooling: Literal["pooled", "cls", "mean", "max"] | None = None
    """what the head looks at; default: the pooled output where there is one, else the mean"""
    batch_size: int = 8
    """questions of a step, each with all its choices"""
    output: Path = Path("runs/multiple-choice")
    """folder of the run; checkpoints/ in it is for --resume alone"""


class Choices(finetuning.FineTuning):
    task = "multiple_choice"
    needs_pairs = True

    def __init__(self, config):
        self.config = config
        self.train, self.dev = read(config)
        self.counts = [len(choices) for choices in self.dev.choices]

    def describe(self):
        counts = sorted(set(self.counts))
        return (
            f"{len(self.train):,} training and {len(self.dev):,} dev questions, choices: "
            f"{', '.join(map(str, counts))}"
        )

    def model(self, encoder):
        head = heads.ChoiceScorer(self.config.dropout, self.config.pooling)
        return heads.attach_choices(encoder, head)

    def stream(self, preprocessor, seed):
        return data.ChoiceStream(self.train, preprocessor, self.config.batch_size, seed)

    def answers(self, text_model):
        return text_model.predict(self.dev.contexts, self.dev.choices)

    def metrics(self, answers):
        chosen = [answer["index"] for answer in answers]
        return evaluation.choice_report(self.dev.labels, chosen, self.counts)

    def baseline(self):
        chosen = [
            int(np.argmax(evaluation.word_overlap([context] * len(choices), choices)))
            for context, choices in zip(self.dev.contexts, self.dev.answers, strict=True)
        ]
        report = evaluation.choice_report(self.dev.labels, chosen, self.counts)
        return "shared words", report

    def rows(self, answers):
        dev = self.dev
        columns = (dev.contexts, dev.choices, dev.labels, answers)
        for context, choices, gold, answer in zip(*columns, strict=True):
            yield {"context": context, "choices": choices, "gold": gold, **answer}

    def plot(self, answers, folder):
        scores = [max(answer["scores"]) for answer in answers]
        pairs = zip(self.dev.labels, answers, strict=True)
        right = [gold == answer["index"] for gold, answer in pairs]
        evaluation.draw(evaluation.reliability, scores, right, folder / "reliability.png")


def read(config):
    """(training questions, dev questions)"""
    train = data.read_choices(config.train, config.format, encoding=config.encoding)
    if config.dev is None:
        return finetuning.split(train)
    return train, data.read_choices(config.dev, config.format, encoding=config.encoding)


def main(config):
    finetuning.run(config, Choices)


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
