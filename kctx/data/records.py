"""Pretraining sequences in sharded TFRecord files: tokenise once, mask anew each time.

A folder holds `sequences-00000.tfrecord`, ... and `records.json`, which is written last: a folder
without it is incomplete. Each record is a `tf.train.Example` with the int64 features `token_ids`
(unmasked, special tokens in place, no padding), `first_length` (tokens up to the first [SEP]) and
`random_next`.
"""

import os

import numpy as np
import tensorflow as tf
from rich.progress import Progress

from kctx.data.block import Block
from kctx.data.corpus_blocks import CorpusBlocks
from kctx.data.stream import PretrainingStream
from kctx.data.tokenizer_checks import tokenizer_digest
from kctx.files import flush, read_json, write_json

_FORMAT = 1
_FEATURES = {
    "token_ids": tf.io.RaggedFeature(tf.int64),
    "first_length": tf.io.FixedLenFeature((), tf.int64),
    "random_next": tf.io.FixedLenFeature((), tf.int64),
}


def write_records(
    corpus,
    tokenizer,
    folder,
    *,
    sequence_length=128,
    short_sequence_probability=0.1,
    next_sentence=True,
    passes=1,
    sequences_per_shard=8192,
    seed=0,
    progress=True,
):
    """Write the unmasked sequences of a corpus.

    Args:
        corpus: `Corpus`.
        tokenizer: WordPiece tokenizer.
        folder: made if need be; may not hold a finished set of records.
        sequence_length, short_sequence_probability, next_sentence, seed: as in
            `bert_pretraining_stream`.
        passes: passes over the corpus, each with new pairs.
        sequences_per_shard: a shard is shuffled in memory when read.
        progress: show a progress bar.

    Returns:
        Number of sequences written.

    Raises:
        FileExistsError: the folder holds records already.
    """
    for name, value in (("passes", passes), ("sequences_per_shard", sequences_per_shard)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    description = os.path.join(folder, "records.json")
    if has_records(folder):
        raise FileExistsError(f"{folder} holds records already: delete it or choose another.")
    os.makedirs(folder, exist_ok=True)
    blocks = CorpusBlocks(
        corpus,
        tokenizer,
        sequence_length=sequence_length,
        short_sequence_probability=short_sequence_probability,
        next_sentence=next_sentence,
        seed=seed,
    )
    shards, pending = [], []

    def write_shard(block):
        shards.append({"name": f"sequences-{len(shards):05d}.tfrecord", "sequences": len(block)})
        shards[-1]["bytes"] = _write_shard(os.path.join(folder, shards[-1]["name"]), block)

    total = sum(blocks.num_blocks(number) for number in range(passes))
    with Progress(disable=not progress) as bar:
        task = bar.add_task("Writing records", total=total)
        for number in range(passes):
            for position in range(blocks.num_blocks(number)):
                pending.append(blocks.block(number, position))
                while sum(map(len, pending)) >= sequences_per_shard:
                    block = Block.concatenate(pending)
                    write_shard(block.rows(0, sequences_per_shard))
                    pending = [block.rows(sequences_per_shard, len(block))]
                bar.advance(task)
    if sum(map(len, pending)):
        write_shard(Block.concatenate(pending))
    if not shards:
        raise ValueError("No document of the corpus gives a single sequence.")
    content = {
        "format": _FORMAT,
        "shards": shards,
        "tokenizer_sha256": tokenizer_digest(tokenizer),
        "passes": passes,
    } | blocks.fingerprint()
    write_json(description, content)
    return sum(shard["sequences"] for shard in shards)


class RecordBlocks:
    """Blocks of sequences from the shards of a folder, a shard each, shuffled in every epoch.

    Args:
        folder: what `write_records` wrote.
        seed: int.

    Raises:
        FileNotFoundError: no `records.json`, or a shard is missing.
        ValueError: another format, or a shard of another size than was written.
    """

    def __init__(self, folder, seed=0):
        description = os.path.join(folder, "records.json")
        if not has_records(folder):
            raise FileNotFoundError(
                f"{folder} holds no records.json: no records, or writing them was interrupted."
            )
        self.content = read_json(description)
        if self.content.get("format") != _FORMAT:
            raise ValueError(
                f"{description} has the format {self.content.get('format')!r}; this version reads "
                f"{_FORMAT}."
            )
        self.folder, self.seed = folder, seed
        self.shards = self.content["shards"]
        for shard in self.shards:
            path = os.path.join(folder, shard["name"])
            if not os.path.exists(path):
                raise FileNotFoundError(f"{path} is missing, though records.json names it.")
            if os.path.getsize(path) != shard["bytes"]:
                raise ValueError(
                    f"{path} has {os.path.getsize(path)} bytes, {shard['bytes']} were written."
                )
        self.sequence_length = self.content["sequence_length"]
        self.next_sentence = self.content["next_sentence"]

    def num_blocks(self, epoch):
        """Number of shards, the same in each epoch."""
        return len(self.shards)

    def block(self, epoch, position):
        """Read the `position`-th shard of an epoch's order and shuffle it. Returns a `Block`."""
        order = np.random.default_rng([self.seed, 1, epoch]).permutation(len(self.shards))
        number = int(order[position])
        shard = self.shards[number]
        path = os.path.join(self.folder, shard["name"])
        records = tf.data.TFRecordDataset(path).batch(shard["sequences"]).get_single_element()
        parsed = tf.io.parse_example(records, _FEATURES)
        keys = np.zeros((shard["sequences"], 3), np.int32)
        keys[:, 1], keys[:, 2] = number, np.arange(len(keys))
        block = Block(
            parsed["token_ids"].values.numpy().astype(np.int32),
            parsed["token_ids"].row_lengths().numpy().astype(np.int32),
            parsed["first_length"].numpy().astype(np.int32),
            parsed["random_next"].numpy().astype(np.int32),
            keys,
        )
        return block.permuted(
            np.random.default_rng([self.seed, 2, epoch, number]).permutation(len(block))
        )

    def fingerprint(self):
        """What the content of the blocks depends on."""
        names = sorted(self.content.keys() - {"tokenizer_sha256"})
        return {f"records_{name}": self.content[name] for name in names} | {"seed": self.seed}


def has_records(folder):
    """Whether `write_records` finished in this folder."""
    return os.path.exists(os.path.join(folder, "records.json"))


def records_stream(folder, tokenizer, seed=0, expected=None, **options):
    """`PretrainingStream` over written records; `options` are those of that class.

    Args:
        expected: dict of what the records must have been made with, such as `sequence_length`,
            `passes` or the entries of a `Corpus.fingerprint()`. Default: anything.

    Raises:
        ValueError: the records were written with another vocabulary, other tokenizer settings, or
            another thing that `expected` names.
    """
    blocks = RecordBlocks(folder, seed)
    for name, value in (expected or {}).items():
        if blocks.content.get(name) != value:
            raise ValueError(
                f"The records in {folder} were written with {name}={blocks.content.get(name)!r}: "
                f"write them again, elsewhere. Received: {name}={value!r}"
            )
    if blocks.content["tokenizer_sha256"] != tokenizer_digest(tokenizer):
        raise ValueError(
            f"The records in {folder} were written with another vocabulary or other tokenizer "
            "settings: write them again."
        )
    return PretrainingStream(blocks, tokenizer, seed=seed, **options)


def _write_shard(path, block):
    temporary = f"{path}.writing"
    with tf.io.TFRecordWriter(temporary) as writer:
        for i in range(len(block)):
            features = {
                "token_ids": block.rows(i, i + 1).tokens.tolist(),
                "first_length": [int(block.first_lengths[i])],
                "random_next": [int(block.random_next[i])],
            }
            example = tf.train.Example(
                features=tf.train.Features(
                    feature={
                        name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
                        for name, value in features.items()
                    }
                )
            )
            writer.write(example.SerializeToString())
    flush(temporary)
    os.replace(temporary, path)
    return os.path.getsize(path)
