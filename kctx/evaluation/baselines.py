"""What can be answered without a model of language, to set beside what one answers."""

import collections
import re

import numpy as np

from kctx.arguments import check_count
from kctx.evaluation.metrics import integers

_WORDS = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]|[^\\W\u3400-\u4dbf\u4e00-\u9fff]+")
_SENTENCES = re.compile(r"[^.!?。！？\n]+[.!?。！？]*")


def words_of(text):
    """The different words of a text in lower case; each Chinese character is one."""
    return set(_WORDS.findall(text.lower()))


def word_overlap(texts, others):
    """Share of the words of both texts that both have (Jaccard), 0 where neither has one.

    Args:
        texts, others: lists of N str.

    Returns:
        float (N,), in [0, 1]

    Raises:
        ValueError: they are not equal in number.
    """
    if len(texts) != len(others):
        raise ValueError(
            "`texts` and `others` must be equal in number. "
            f"Received: {len(texts)} and {len(others)}"
        )
    shares = []
    for text, other in zip(texts, others, strict=True):
        one, two = words_of(text), words_of(other)
        shares.append(len(one & two) / max(len(one | two), 1))
    return np.array(shares)


def closest_sentence(question, context):
    """The sentence of a context that holds most words of a question, the first of several: str."""
    asked = words_of(question)
    sentences = [found.strip() for found in _SENTENCES.findall(context)] or [context.strip()]
    return max(sentences, key=lambda sentence: len(asked & words_of(sentence)))


def most_frequent_tags(words, tags, asked):
    """Each word's most frequent tag; for unknown words the most frequent of all.

    Args:
        words: list of lists of str, of the training text.
        tags: list of lists of str, of the same lengths.
        asked: list of lists of str, the words to be tagged.

    Returns:
        list of lists of str, of the lengths of `asked`. Of two tags that are as frequent, the one
        met first.

    Raises:
        ValueError: there is no tag, or sentences have not one for each word.
    """
    lengths, expected = ([len(sentence) for sentence in column] for column in (tags, words))
    if lengths != expected or not any(lengths):
        raise ValueError(
            "`tags` must hold a tag for each of the `words`, one at least. Received: "
            f"{sum(lengths)} tags in {len(tags)} sentences, {sum(expected)} words in {len(words)}"
        )
    counts = collections.defaultdict(collections.Counter)
    total = collections.Counter()
    for sentence, sentence_tags in zip(words, tags, strict=True):
        total.update(sentence_tags)
        for word, tag in zip(sentence, sentence_tags, strict=True):
            counts[word][tag] += 1
    [(common, _)] = total.most_common(1)
    best = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    return [[best.get(word, common) for word in sentence] for sentence in asked]


def balanced_weights(labels, num_classes):
    """Weights that make every class count alike: n / (classes that occur * rows of the class).

    Args:
        labels: int (n,), n at least 1.
        num_classes: int.

    Returns:
        list of float, one for each class, of mean 1 over the rows; 0 for classes without a row.

    Raises:
        ValueError: there are no rows, or labels that are no integers in [0, num_classes).
    """
    check_count("num_classes", num_classes)
    labels = integers("labels", labels)
    if labels.ndim != 1 or not labels.size or labels.max() >= num_classes:
        greatest = f", the greatest {labels.max()}" if labels.size else ""
        raise ValueError(
            f"`labels` must have shape (n,), n at least 1, and lie in [0, {num_classes}). "
            f"Received: shape {labels.shape}{greatest}"
        )
    counts = np.bincount(labels, minlength=num_classes)
    share = counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1))
    return np.where(counts > 0, share, 0.0).tolist()
