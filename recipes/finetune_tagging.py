"""Fine-tunes an encoder to tag words: entities, parts of speech, chunks, semantic roles.

Papers: Devlin et al., 2018, section 5.3 (a softmax on each word's first piece); Lample et al., 2016
(a conditional random field on top, --crf).

    python recipes/finetune_tagging.py --encoder runs/bert/preset --train train.txt --dev dev.txt \\
        --scheme BIO --output runs/entities

    python recipes/finetune_tagging.py --encoder runs/bert/preset --train props.conll \\
        --predicate-column 1 --output runs/roles

Semantic roles (Shi and Lin, 2019) are tags of the words towards one predicate, which is given: a
sentence is trained on once for each of its predicates, see `kctx.data.read_predicates`.

Files hold a word and its tag a line in columns (CoNLL), a blank line between sentences. Sentences
that are too long are read in windows; each word gets its tag from the window where it has most
context. A CRF learns its transitions at the rate of the head: --head-rate 10 or more helps it.

The output folder holds preset/ (the best epoch on the dev set, by the F1 of whole entities, or by
accuracy without a scheme), metrics.json, predictions.jsonl, reliability.png and log.csv; with
--seeds, one such folder for each seed. The baseline gives each word its most frequent tag.
"""

import dataclasses
import itertools
from pathlib import Path
from typing import Literal

from kctx import command_line, data, evaluation, finetuning, heads, layers


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(finetuning.Options):
    """Options of fine-tuning for tagging."""

    word_column: int = 0
    """column of the words, from 0; negative numbers count from the end"""
    tag_column: int = -1
    """column of the tags"""
    predicate_column: int | None = None
    """column that marks predicates, "-" elsewhere, for semantic roles in BIO or brackets: the roles
    of each follow in a column each, from the next one or --tag-column on"""
    separator: Literal["auto", "tab", "space"] = "auto"
    """between columns; auto: tab where every line has one"""
    scheme: Literal["BIO1", "BIO", "BIOES", "BMES", "BILOU", "none"] = "BIO"
    """how the tags of the files mark entities; none: they do not, as parts of speech"""
    convert_to: Literal["BIO", "BIOES", "BMES", "BILOU"] | None = None
    """scheme that is learnt and answered; default: that of the files"""
    unknown_tags: Literal["refuse", "count"] = "refuse"
    """dev tags that training does not have; count: they are counted as missed"""
    split: Literal["words", "characters"] = "words"
    """what a word is where raw text is tagged; characters for Chinese"""
    crf: bool = False
    """a conditional random field in place of the softmax"""
    constrain: bool = True
    """never answer a tag that the scheme forbids behind the one before"""
    class_weights: Literal["none", "balanced"] = "none"
    """balanced: rare tags count as much as frequent ones; not with --crf"""
    output: Path = Path("runs/tagging")
    """folder of the run; checkpoints/ in it is for --resume alone"""


class Tagging(finetuning.FineTuning):
    task = "tagging"

    def __init__(self, config):
        self.config = config
        other = config.crf or config.convert_to or config.scheme != "BIO"
        if config.predicate_column is not None and other:
            raise ValueError(
                "`predicate_column` goes with the softmax on BIO tags. Received: "
                f"crf={config.crf}, scheme={config.scheme}, convert_to={config.convert_to}"
            )
        self.train, self.dev = read(config)
        self.labels = self.train.tag_names
        if config.split != "words":
            self.task_options = {"split": config.split}
        if config.class_weights == "balanced":
            if config.crf:
                raise ValueError("`class_weights` weigh single tags. Received: crf=True")
            tags = list(itertools.chain.from_iterable(self.train.tag_ids))
            self.class_weights = evaluation.balanced_weights(tags, len(self.labels))

    def describe(self):
        kind = "sentences" if self.train.predicates is None else "predicates"
        counts = f"{len(self.train):,} training and {len(self.dev):,} dev {kind}"
        unknown = self.dev.report.get("unknown_tags")
        more = f"; counted as missed: {unknown}" if unknown else ""
        return f"{counts}, tags: {self.labels}{more}"

    def model(self, encoder):
        allowed = None
        if self.config.constrain and self.train.scheme is not None:
            allowed = layers.tag_transitions(self.labels, self.train.scheme)
        head = heads.CRFTagger if self.config.crf else heads.Tagger
        if self.train.predicates is not None:
            head = heads.RoleTagger
        head = head(len(self.labels), dropout=self.config.dropout, allowed=allowed)
        return heads.attach(encoder, head)

    def stream(self, preprocessor, seed):
        return data.TaggingStream(self.train, preprocessor, self.config.batch_size, seed)

    def answers(self, text_model):
        predicates = self.dev.predicates
        given = {} if predicates is None else {"predicates": predicates}
        return text_model.predict(self.dev.words, **given)

    def metrics(self, answers):
        return self.score([answer["tags"] for answer in answers])

    def score(self, tags):
        if self.train.scheme is not None:
            return evaluation.entity_report(self.dev.tags, tags)
        flat = (list(itertools.chain.from_iterable(rows)) for rows in (self.dev.tags, tags))
        return evaluation.classification_report(*flat)

    def baseline(self):
        found = evaluation.most_frequent_tags(self.train.words, self.train.tags, self.dev.words)
        return "most frequent", self.score(found)

    def rows(self, answers):
        predicates = self.dev.predicates or [None] * len(answers)
        for gold, predicate, answer in zip(self.dev.tags, predicates, answers, strict=True):
            asked = {} if predicate is None else {"predicate": predicate}
            yield {"words": answer["words"], **asked, "gold": gold, **answer}

    def plot(self, answers, folder):
        scores = [score for answer in answers for score in answer["scores"]]
        right = [
            tag == wanted
            for gold, answer in zip(self.dev.tags, answers, strict=True)
            for wanted, tag in zip(gold, answer["tags"], strict=True)
        ]
        evaluation.draw(evaluation.reliability, scores, right, folder / "reliability.png")

    def remark(self, answers):
        found = {tag for answer in answers for tag in answer["tags"]}
        if len(found) == 1:
            return (
                f"All tags are {found.pop()!r}: nothing was learnt. A higher --learning-rate or "
                "more --epochs may help."
            )
        return None


def read(config):
    """(training sentences, dev sentences)"""

    def sentences(path, **known):
        if config.predicate_column is not None:
            return data.read_predicates(
                path,
                config.predicate_column,
                config.word_column,
                None if config.tag_column == -1 else config.tag_column,
                separator=config.separator,
                encoding=config.encoding,
                **known,
            )
        return data.read_conll(
            path,
            config.word_column,
            config.tag_column,
            None if config.scheme == "none" else config.scheme,
            convert_to=config.convert_to,
            separator=config.separator,
            encoding=config.encoding,
            **known,
        )

    train = sentences(config.train)
    if config.dev is None:
        return finetuning.split(train)
    known = {"tag_names": train.tag_names, "unknown_tags": config.unknown_tags}
    return train, sentences(config.dev, **known)


def main(config):
    finetuning.run(config, Tagging)


if __name__ == "__main__":
    command_line.run(main, Config, __doc__)
