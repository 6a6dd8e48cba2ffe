"""Fine-tunes an encoder so that the cosine of two sentence vectors says how alike they are.

Paper: Reimers and Gurevych, 2019, sections 3 and 4.2: mean pooling, batch 16, rate 2e-5, 4 epochs.
Each text is encoded by itself, so vectors can be stored and searched; a cross-encoder, which reads
both at once and is more exact, is `finetune_classification.py --task regression`.

    python recipes/finetune_similarity.py --encoder runs/bert/preset --train train.tsv \\
        --dev dev.tsv --text 0 --pair 1 --label 2 --output runs/similarity

Files are TSV, CSV or JSONL with two texts and a number each; numbers from --low to --high become
cosines from 0 to 1.

The output folder holds preset/ (the best epoch on the dev set, by Spearman's correlation),
metrics.json, predictions.jsonl, scores.png and log.csv; with --seeds, one such folder for each
seed. The baseline is the share of words that both texts have.
"""

import dataclasses
from pathlib import Path
from typing import Literal

from kctx import command_line, data, evaluation, finetuning, heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(finetuning.TableOptions, finetuning.Options):
    """Options of fine-tuning for similarity."""

    pair: str = "1"
    """column of the second text"""
    label: str = "2"
    """column of the number that says how alike they are"""
    low: float | None = None
    """number that stands for a cosine of 0; default: the least of the training file"""
    high: float | None = None
    """number that stands for a cosine of 1; default: the greatest of the training file"""
    pooling: Literal["pooled", "cls", "mean", "max"] = "mean"
    """how a text becomes one vector"""
    dropout: float = 0.0
    """on the vectors of texts; the paper has none"""
    batch_size: int = 16
    """pairs of a step"""
    epochs: int = 4
    """passes over the training file"""
    output: Path = Path("runs/similarity")
    """folder of the run; checkpoints/ in it is for --resume alone"""


class Similarity(finetuning.FineTuning):
    task = "similarity"

    def __init__(self, config):
        self.config = config
        self.train, self.dev = finetuning.read_tables(config, regression=True)

    def describe(self):
        labels = self.train.labels
        return (
            f"{len(self.train):,} training and {len(self.dev):,} dev pairs, labels from "
            f"{min(labels):g} to {max(labels):g}"
        )

    def model(self, encoder):
        return heads.attach_pair(encoder, heads.BiEncoder(self.config.pooling, self.config.dropout))

    def stream(self, preprocessor, seed):
        config = self.config
        return data.SimilarityStream(
            self.train, preprocessor, config.low, config.high, config.batch_size, seed
        )

    def answers(self, text_model):
        return text_model.predict(self.dev.texts, self.dev.pairs)

    def metrics(self, answers):
        return self.score([answer["score"] for answer in answers])

    def score(self, scores):
        report = evaluation.regression_report(self.dev.labels, scores)
        return {"spearman": report["spearman"], "pearson": report["pearson"]}

    def baseline(self):
        return "shared words", self.score(evaluation.word_overlap(self.dev.texts, self.dev.pairs))

    def rows(self, answers):
        columns = (self.dev.texts, self.dev.pairs, self.dev.labels, answers)
        for text, pair, gold, answer in zip(*columns, strict=True):
            yield {"text": text, "text_b": pair, "gold": gold, **answer}

    def plot(self, answers, folder):
        scores = [answer["score"] for answer in answers]
        evaluation.draw(evaluation.scatter, self.dev.labels, scores, folder / "scores.png")


def main(config):
    finetuning.run(config, Similarity)


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
