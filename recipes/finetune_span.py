"""Fine-tunes an encoder to answer questions with a stretch of a text.

Paper: Devlin et al., 2018, sections 4.2 and 4.3: batch 32, rate 5e-5, 3 epochs (SQuAD 1.1), or
batch 48, 2 epochs (SQuAD 2.0, where a context may hold no answer).

    python recipes/finetune_span.py --encoder runs/bert/preset --train train.json --dev dev.json \\
        --output runs/answers

Files have SQuAD's form. Contexts that are too long are read in windows. Questions whose answer does
not stand at its offset are skipped in training and reported with their ids.

The output folder holds preset/ (the best epoch on the dev set, by F1), metrics.json (F1 and exact
match as SQuAD's own scripts define them), predictions.jsonl, reliability.png and log.csv; with
--seeds, one such folder for each seed. The baseline answers nothing in version 2, and in version 1
the sentence that shares most words with the question.
"""

import dataclasses
from pathlib import Path
from typing import Literal

from kctx import command_line, data, evaluation, finetuning, heads


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(finetuning.Options):
    """Options of fine-tuning for answers in texts."""

    version: Literal[1, 2] = 2
    """of SQuAD's task; 1: every question has an answer, others are left out"""
    realign: bool = False
    """take an answer that is not at its offset from where its text stands, if just once"""
    stride: int = 128
    """most tokens from the start of one window of a context to that of the next; windows overlap by
    a quarter at least"""
    question_length: int = 64
    """most tokens of a question"""
    max_answer_length: int = 30
    """most tokens of an answer"""
    split_cjk: bool = False
    """score each Chinese character as a word"""
    sequence_length: int = 384
    """longest input in tokens"""
    batch_size: int = 16
    """windows of a step"""
    dropout: float = 0.0
    """on what the head looks at"""
    output: Path = Path("runs/span")
    """folder of the run; checkpoints/ in it is for --resume alone"""


class Answers(finetuning.FineTuning):
    task = "span"
    needs_pairs = True

    def __init__(self, config):
        self.config = config
        self.train, self.dev = read(config)
        if not any(self.train.answers):
            raise ValueError(
                f"{config.train} must hold a question with an answer, else there is nothing to "
                f"learn. Received: {len(self.train)} questions without one"
            )
        names = ("stride", "question_length", "max_answer_length")
        self.task_options = {name: getattr(config, name) for name in names}
        if config.version == 1:
            self.task_options["no_answer_threshold"] = None

    def describe(self):
        return (
            f"Training file: {self.train.describe()}\nDev file: {self.dev.describe()}\n"
            f"Used: {len(self.train):,} training and {len(self.dev):,} dev questions"
        )

    def model(self, encoder):
        return heads.attach(encoder, heads.Span(self.config.dropout))

    def fingerprint(self):
        own = {"version": self.config.version, "split_cjk": self.config.split_cjk}
        return {**super().fingerprint(), **own}

    def stream(self, preprocessor, seed):
        lengths = {"stride": self.config.stride, "question_length": self.config.question_length}
        made = data.SpanStream(
            self.train, preprocessor, **lengths, batch_size=self.config.batch_size, seed=seed
        )
        if made.unseen_answers:
            print(
                f"Left out, for answers that no window of {preprocessor.sequence_length} tokens "
                f"holds: {len(made.unseen_answers):,} ({', '.join(made.unseen_answers[:5])})"
            )
        return made

    def answers(self, text_model):
        return text_model.predict(self.dev.questions, self.dev.contexts)

    def score(self, texts, no_answer=None):
        version, split_cjk = self.config.version, self.config.split_cjk
        return evaluation.answer_report(
            self.dev.gold_texts, texts, no_answer, version=version, split_cjk=split_cjk
        )

    def metrics(self, answers):
        sure = [answer["no_answer_probability"] for answer in answers]
        return self.score([answer["answer"] for answer in answers], sure)

    def baseline(self):
        if self.config.version == 2:
            return "no answer", self.score([""] * len(self.dev))
        asked = zip(self.dev.questions, self.dev.contexts, strict=True)
        return "sentence", self.score([evaluation.closest_sentence(*pair) for pair in asked])

    def rows(self, answers):
        dev = self.dev
        columns = (dev.ids, dev.questions, dev.contexts, dev.gold_texts, answers)
        for identity, question, context, gold, answer in zip(*columns, strict=True):
            yield {"id": identity, "question": question, "context": context, "gold": gold, **answer}

    def plot(self, answers, folder):
        texts = [answer["answer"] for answer in answers]
        settings = {"version": self.config.version, "split_cjk": self.config.split_cjk}
        exact = evaluation.answer_scores(self.dev.gold_texts, texts, **settings)[0]
        scores = [answer["score"] for answer in answers]
        evaluation.draw(evaluation.reliability, scores, exact > 0, folder / "reliability.png")

    def remark(self, answers):
        if any(answer["answer"] for answer in answers):
            return None
        return (
            "No question was answered: nothing was learnt. A higher --learning-rate or more "
            "--epochs may help."
        )


def read(config):
    """(training questions, dev questions)"""

    def questions(path, unlocated):
        found = data.read_squad(
            path, realign=config.realign, unlocated=unlocated, encoding=config.encoding
        )
        if config.version == 2:
            return found
        found = found.take([index for index, texts in enumerate(found.gold_texts) if texts])
        if not len(found):
            raise ValueError(f"{path} holds no question with an answer, as version=1 needs.")
        return found

    train = questions(config.train, "skip")
    if config.dev is None:
        return finetuning.split(train)
    return train, questions(config.dev, "keep")


def main(config):
    finetuning.run(config, Answers)


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
