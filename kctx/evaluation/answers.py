"""Exact match and F1 of answers in text, as SQuAD's own scripts define them."""

import collections
import re
import string
import unicodedata

import numpy as np

from kctx.arguments import check_number

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = set(string.punctuation)
_CJK = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])")


def normalised(text, split_cjk=False):
    """Lower case without ASCII punctuation, then without a, an and the, single spaces.

    Args:
        text: str.
        split_cjk: bool. Chinese has no spaces: True makes each of its characters a word, and
            removes punctuation of every script. Default False, as the scripts do.
    """
    text = "".join(character for character in text.lower() if character not in _PUNCTUATION)
    if split_cjk:
        text = "".join(c for c in text if not unicodedata.category(c).startswith("P"))
        text = _CJK.sub(r" \1 ", text)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_match(gold, prediction, split_cjk=False):
    """1 if both texts are the same when normalised, else 0."""
    return int(normalised(gold, split_cjk) == normalised(prediction, split_cjk))


def word_f1(gold, prediction, version=2, split_cjk=False):
    """F1 of the words that two texts share, counted with repetition.

    Where either has no word, version 2 gives 1 if both have none, and version 1.1 gives 0.
    """
    gold, prediction = (normalised(text, split_cjk).split() for text in (gold, prediction))
    if version == 2 and not (gold and prediction):
        return float(gold == prediction)
    shared = sum((collections.Counter(gold) & collections.Counter(prediction)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(prediction), shared / len(gold)
    return 2 * precision * recall / (precision + recall)


def answer_scores(gold_texts, predictions, version=2, split_cjk=False):
    """Exact match and F1 of each question, each against the gold answer that fits best.

    Args, errors: as of `answer_report`.

    Returns:
        (exact, f1, answerable): float (N,), float (N,), bool (N,).
    """
    if version not in (1, 2):
        raise ValueError(f"`version` must be 1 (of SQuAD 1.1) or 2. Received: {version!r}")
    if len(gold_texts) != len(predictions):
        raise ValueError(
            "`gold_texts` and `predictions` must hold an entry for each question. "
            f"Received: {len(gold_texts)} and {len(predictions)}"
        )
    if not len(predictions):
        raise ValueError("`predictions` must hold at least one row. Received: 0 rows")
    for row, (texts, prediction) in enumerate(zip(gold_texts, predictions, strict=True)):
        if not isinstance(prediction, str):
            raise ValueError(f"`predictions[{row}]` must be a str. Received: {prediction!r}")
        listed = isinstance(texts, (list, tuple))
        if not listed or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"`gold_texts[{row}]` must be a list of str. Received: {texts!r}")
    exact, f1, answerable = [], [], []
    for row, (texts, prediction) in enumerate(zip(gold_texts, predictions, strict=True)):
        if version == 1 and not texts:
            raise ValueError(
                f"`version=1` knows no question without an answer. Received: row {row} without one"
            )
        answerable.append(bool(texts))
        if version == 2:
            texts = [text for text in texts if normalised(text, split_cjk)] or [""]
        exact.append(max(exact_match(text, prediction, split_cjk) for text in texts))
        f1.append(max(word_f1(text, prediction, version, split_cjk) for text in texts))
    return np.array(exact, float), np.array(f1), np.array(answerable)


def best_threshold(scores, answerable, predictions, no_answer_probabilities):
    """Where to answer nothing so that the mean score is greatest (SQuAD 2.0's own search).

    Every question whose probability is above the threshold is answered with nothing. As in the
    script, questions of equal probability are gone through one by one.

    Args:
        scores: float (N,), exact match or F1 of the predictions.
        answerable: bool (N,).
        predictions: list of N str.
        no_answer_probabilities: float (N,).

    Returns:
        (score, threshold), float; the threshold is 0 if answering nothing at all is best.
    """
    current = best = float((~answerable).sum())
    threshold = 0.0
    for row in np.argsort(no_answer_probabilities, kind="stable"):
        current += scores[row] if answerable[row] else -float(bool(predictions[row]))
        if current > best:
            best, threshold = current, float(no_answer_probabilities[row])
    return float(best / len(scores)), threshold


def answer_report(
    gold_texts,
    predictions,
    no_answer_probabilities=None,
    version=2,
    threshold=1.0,
    split_cjk=False,
):
    """Scores of predicted answers.

    Args:
        gold_texts: list of N lists of str, the answers that are right; empty: there is none.
        predictions: list of N str, "" for no answer.
        no_answer_probabilities: (N,), a number that grows with how sure it is that there is no
            answer; only in version 2. Default: not known.
        version: 1 for the script of SQuAD 1.1 (every question has an answer) or 2 for that of 2.0.
            Default 2.
        threshold: float, questions of a higher probability are answered with nothing, as by the
            script's `--na-prob-thresh`. Default 1.
        split_cjk: bool, see `normalised`. Default False.

    Returns:
        dict of float in [0, 1] (the scripts give per cent): "f1" and "exact_match". In version 2
        also both with the suffixes "_answerable" and "_unanswerable", over those questions, where
        there are any; and with probabilities "best_f1" and "best_exact_match" with
        "best_f1_threshold" and "best_exact_match_threshold", see `best_threshold`.

    Raises:
        ValueError: for no rows, unequal numbers, something else than texts, numbers that are not
            finite, or questions without an answer in version 1.
    """
    check_number("threshold", threshold)
    exact, f1, answerable = answer_scores(gold_texts, predictions, version, split_cjk)
    scores = {"f1": f1, "exact_match": exact}
    found = {}
    if no_answer_probabilities is not None and version == 2:
        sure = np.asarray(no_answer_probabilities, float)
        if sure.shape != exact.shape or not np.isfinite(sure).all():
            raise ValueError(
                f"`no_answer_probabilities` must have shape {exact.shape} and be finite. "
                f"Received: shape {sure.shape}, finite {bool(np.isfinite(sure).all())}"
            )
        for name, values in scores.items():
            best, at = best_threshold(values, answerable, predictions, sure)
            found |= {f"best_{name}": best, f"best_{name}_threshold": at}
        scores = {k: np.where(sure > threshold, ~answerable, v) for k, v in scores.items()}
    report = {name: float(values.mean()) for name, values in scores.items()}
    if version == 2:
        for suffix, chosen in (("answerable", answerable), ("unanswerable", ~answerable)):
            if chosen.any():
                parts = {f"{name}_{suffix}": float(v[chosen].mean()) for name, v in scores.items()}
                report |= parts
    return {**report, **found}
