"""Pretraining sequences of a corpus, a block of documents at a time."""

import random
import re
import threading

import numpy as np

from kctx.data.block import Block
from kctx.data.pairs import (
    choose_document,
    count_sentences,
    plan_pairs,
    plan_single_segments,
    plan_truncation,
)

_CHARACTERS_A_CALL = 1 << 18
_IDEOGRAPH = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0002ceaf]")


class CorpusBlocks:
    """Turns documents into shuffled blocks of sequences, any block of any epoch on its own.

    Each epoch takes the documents in a new order and cuts the order into blocks of about
    `block_bytes` of text. A block is read, tokenised in large parts, paired and shuffled with
    generators seeded by (seed, epoch, block): its content does not depend on what was made before.

    Args:
        corpus: `Corpus`.
        tokenizer: maps a list of str to a RaggedTensor of ids; has `start_id`, `separator_id`.
        sequence_length: T.
        short_sequence_probability: see `plan_pairs`.
        next_sentence: pairs of segments (default) or single segments of whole sentences.
        duplicates: `None` (default) draws new pairs in every epoch; a number repeats the pairs
            of that many passes over the corpus, the static data of the original.
        seed: int.
        block_bytes: text in a block, the size of the shuffle buffer. Default 4 MiB.
    """

    def __init__(
        self,
        corpus,
        tokenizer,
        sequence_length=128,
        short_sequence_probability=0.1,
        next_sentence=True,
        duplicates=None,
        seed=0,
        block_bytes=4 << 20,
    ):
        if sequence_length < 5:
            raise ValueError(
                "`sequence_length` must be at least 5: three special tokens and one of each "
                f"segment. Received: sequence_length={sequence_length}"
            )
        if not 0 <= short_sequence_probability <= 1:
            raise ValueError(
                "`short_sequence_probability` must be in [0, 1]. "
                f"Received: short_sequence_probability={short_sequence_probability}"
            )
        if block_bytes < 1024:
            raise ValueError(f"`block_bytes` must be at least 1024. Received: {block_bytes}")
        if next_sentence and corpus.num_documents < 2:
            raise ValueError(
                "The corpus has one document, so no random second segment can be drawn. Separate "
                "documents by blank lines, add files, or give next_sentence=False. "
                f"Received: files={corpus.files[:3]}"
            )
        self.corpus, self.tokenizer = corpus, tokenizer
        self.sequence_length = sequence_length
        self.short_sequence_probability = short_sequence_probability
        self.next_sentence = next_sentence
        self.duplicates = duplicates
        self.seed = seed
        self.block_bytes = block_bytes
        self._plans, self._lock = {}, threading.Lock()

    def num_blocks(self, epoch):
        """Number of blocks of an epoch (int from 0)."""
        return len(self._plan(epoch)[1]) - 1

    def block(self, epoch, position):
        """Make the `position`-th block of an epoch. Returns a `Block`."""
        duplicate = epoch if self.duplicates is None else epoch % self.duplicates
        order, bounds = self._plan(duplicate)
        number = position
        if self.duplicates is not None:
            # The same blocks in another order each epoch.
            shuffle = np.random.default_rng([self.seed, 1, epoch])
            number = int(shuffle.permutation(len(bounds) - 1)[position])
        documents = order[bounds[number] : bounds[number + 1]].tolist()
        block = self._build(documents, duplicate, number)
        return block.permuted(
            np.random.default_rng([self.seed, 2, epoch, number]).permutation(len(block))
        )

    def fingerprint(self):
        """What the content of the blocks depends on, besides the tokenizer."""
        return self.corpus.fingerprint() | {
            "sequence_length": self.sequence_length,
            "short_sequence_probability": self.short_sequence_probability,
            "next_sentence": self.next_sentence,
            "duplicates": self.duplicates or 0,
            "seed": self.seed,
            "block_bytes": self.block_bytes,
        }

    def _plan(self, epoch):
        """Order of the documents and where its blocks begin and end."""
        if self.duplicates is not None:
            epoch %= self.duplicates
        with self._lock:
            if epoch not in self._plans:
                order = np.random.default_rng([self.seed, 0, epoch]).permutation(
                    self.corpus.num_documents
                )
                # A document counts for 1/1024 of a block at least.
                sizes = np.maximum(self.corpus.document_bytes[order], self.block_bytes >> 10)
                number = (np.cumsum(sizes) - sizes) // self.block_bytes
                begins = np.flatnonzero(np.diff(number, prepend=-1))
                while len(self._plans) >= 2:  # this epoch and the one ahead of it
                    del self._plans[next(iter(self._plans))]
                self._plans[epoch] = order.astype(np.int32), np.append(begins, len(order))
            return self._plans[epoch]

    def _build(self, documents, duplicate, number):
        rng = random.Random(f"{self.seed}/{duplicate}/{number}")
        sentences = [self.corpus.sentences(document) for document in documents]
        counts = [len(each) for each in sentences]
        tokens, lengths = self._tokenize([each for document in sentences for each in document])
        del sentences
        make = self._pairs if self.next_sentence else self._single_segments
        firsts, seconds, random_next = make(documents, counts, tokens, lengths, rng)
        keys = np.full((len(firsts), 3), (duplicate, number, 0), np.int32)
        keys[:, 2] = np.arange(len(firsts))
        return Block.from_segments(
            firsts,
            seconds,
            random_next,
            keys,
            self.tokenizer.start_id,
            self.tokenizer.separator_id,
        )

    def _single_segments(self, documents, counts, tokens, lengths, rng):
        firsts, sentence, begin = [], 0, 0
        for count in counts:
            document = lengths[sentence : sentence + count]
            for start, end in plan_single_segments(document, self.sequence_length - 2):
                firsts.append(tokens[begin + start : begin + end])
            sentence, begin = sentence + count, begin + sum(document)
        return firsts, None, [0] * len(firsts)

    def _pairs(self, documents, counts, tokens, lengths, rng):
        # First all draws; then the random segments that were drawn are tokenised together.
        plans, sentence, begin = [], 0, 0
        wanted_texts, wanted_counts = [], []
        for document, count in zip(documents, counts, strict=True):
            document_lengths = [n for n in lengths[sentence : sentence + count] if n]
            ends = [begin]
            for length in document_lengths:
                ends.append(ends[-1] + length)
            for plan in plan_pairs(
                document_lengths,
                lambda rng, document=document: self._other_sentences(document, rng),
                self.sequence_length - 3,
                self.short_sequence_probability,
                rng,
            ):
                first = ends[plan.first[0]], ends[plan.first[1]]
                second = plan.second and (ends[plan.second[0]], ends[plan.second[1]])
                plans.append((first, second, plan.other_length))
                if second is None:
                    texts = _enough(plan.other, plan.other_length)
                    wanted_texts += texts
                    wanted_counts.append(len(texts))
            sentence, begin = sentence + count, ends[-1]
        other_tokens, other_lengths = self._tokenize(wanted_texts)
        wanted = iter(wanted_counts)
        firsts, seconds, random_next = [], [], []
        sentence = other_begin = 0
        for first, second, other_length in plans:
            source = tokens
            if second is None:
                source, count = other_tokens, next(wanted)
                drawn = other_lengths[sentence : sentence + count]
                taken = sum(drawn[: count_sentences(drawn, other_length)])
                segment = other_begin, other_begin + taken
                sentence, other_begin = sentence + count, other_begin + sum(drawn)
            else:
                segment = second
            if segment[0] == segment[1]:
                continue  # the drawn text holds nothing that makes a token
            front_a, length_a, front_b, length_b = plan_truncation(
                first[1] - first[0], segment[1] - segment[0], self.sequence_length - 3, rng
            )
            begin_a, begin_b = first[0] + front_a, segment[0] + front_b
            firsts.append(tokens[begin_a : begin_a + length_a])
            seconds.append(source[begin_b : begin_b + length_b])
            random_next.append(int(second is None))
        return firsts, seconds, random_next

    def _other_sentences(self, document, rng):
        return self.corpus.sentences_from(
            choose_document(self.corpus.num_documents, document, rng), rng
        )

    def _tokenize(self, texts):
        """Returns the ids of all texts, int32, and the list of their lengths."""
        # A part at a time: the tokenizer's own tensors take many times the memory of the text.
        ids, lengths = [np.zeros(0, np.int32)], []
        begin = characters = 0
        for end, text in enumerate(texts, 1):
            characters += len(text)
            if characters >= _CHARACTERS_A_CALL or end == len(texts):
                ragged = self.tokenizer(texts[begin:end])
                ids.append(ragged.values.numpy())
                lengths += ragged.row_lengths().numpy().tolist()
                begin, characters = end, 0
        return np.concatenate(ids), lengths


def _enough(sentences, tokens):
    """As many sentences as surely hold `tokens` tokens: words and ideographs are one or more."""
    count = least = 0
    for sentence in sentences:
        count += 1
        least += len(sentence.split())
        if not sentence.isascii():
            least += len(_IDEOGRAPH.findall(sentence))
        if least >= tokens:
            break
    return sentences[:count]
