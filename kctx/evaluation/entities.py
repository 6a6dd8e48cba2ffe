"""Precision, recall and F1 of whole entities, as seqeval counts them."""

import numpy as np
from seqeval.metrics.sequence_labeling import (
    accuracy_score,
    get_entities,
    precision_recall_fscore_support,
)


def entity_report(tags, predictions):
    """Scores of predicted entities: right are those with the same words and the same label.

    Entities are read as seqeval's default mode and the CoNLL scorer read them, whatever the scheme.

    Args:
        tags: list of lists of str, true tags such as "B-PER" and "O", in any scheme.
        predictions: the same for the predicted ones.

    Returns:
        dict of float in [0, 1]: "f1", "precision" and "recall" over all entities; "macro_f1", the
        mean F1 over the labels that occur in either; "accuracy", the share of right tags. Where
        there is nothing to divide by, 0.

    Raises:
        ValueError: for no words, sentences of unequal lengths, or something else than tags.
    """
    tags, predictions = paired_tags(tags, predictions)
    scores = {"micro": (0.0,) * 3, "macro": (0.0,) * 3}
    if _labels(tags) | _labels(predictions):
        for average in scores:
            scores[average] = _scores(tags, predictions, average)
    precision, recall, f1, *_ = scores["micro"]
    return {
        "f1": float(f1),
        "precision": float(precision),
        "recall": float(recall),
        "macro_f1": float(scores["macro"][2]),
        "accuracy": float(accuracy_score(tags, predictions)),
    }


def entity_table(tags, predictions):
    """Scores of each label of entities.

    Args:
        tags, predictions: as of `entity_report`.

    Returns:
        dict of label (sorted) to dict: "f1", "precision", "recall", float in [0, 1]; "support",
        int, number of true entities.
    """
    tags, predictions = paired_tags(tags, predictions)
    labels = sorted(_labels(tags) | _labels(predictions))
    if not labels:
        return {}
    columns = _scores(tags, predictions, None)
    return {
        label: {"f1": float(f), "precision": float(p), "recall": float(r), "support": int(n)}
        for label, p, r, f, n in zip(labels, *columns, strict=True)
    }


def paired_tags(tags, predictions):
    """Two lists of lists of str of equal lengths, with the prefixes of BIOES, or an error."""
    tags, predictions = _read("tags", tags), _read("predictions", predictions)
    if len(tags) != len(predictions):
        raise ValueError(
            "`tags` and `predictions` must hold the same number of sentences. "
            f"Received: {len(tags)} and {len(predictions)}"
        )
    if not any(tags):
        raise ValueError(f"`tags` must hold at least one word. Received: {len(tags)} sentences")
    for number, (wanted, given) in enumerate(zip(tags, predictions, strict=True)):
        if len(wanted) != len(given):
            raise ValueError(
                f"`predictions` must hold a tag for each word. Received: {len(given)} tags for "
                f"the {len(wanted)} words of sentence {number}, counted from 0"
            )
    return tags, predictions


def _read(name, tags):
    for number, sentence in enumerate(tags):
        if isinstance(sentence, str) or not all(isinstance(x, str) and x for x in sentence):
            raise ValueError(
                f"`{name}[{number}]` must be a list of strings, none of them empty. "
                f"Received: {sentence!r}"
            )
    return [[_known(str(tag)) for tag in sentence] for sentence in tags]


def _known(tag):
    """A tag with a prefix that seqeval knows."""
    known = {"M": "I", "L": "E", "U": "S"}
    return known.get(tag[0], tag[0]) + tag[1:] if tag[1:2] in ("", "-") else tag


def _labels(tags):
    return {label for sentence in tags for label, _, _ in get_entities(sentence)}


def _scores(tags, predictions, average):
    with np.errstate(all="ignore"):
        return precision_recall_fscore_support(tags, predictions, average=average, zero_division=0)
