"""Do vectors find those words similar that people find similar?

Finkelstein et al., 2002 (WordSim-353): pairs of words with a score by people, compared with the
cosines by their ranks (Spearman).
"""

import math
import os

import numpy as np
import scipy.stats

from kctx.arguments import check_count
from kctx.evaluation.word_lookup import WordLookup
from kctx.files import read_text
from kctx.vectors.neighbours import unit


def read_word_pairs(path):
    """Pairs of a test set: two words and a score in each line, by tabs; `#` begins a comment.

    Returns:
        list of (word, word, score).

    Raises:
        ValueError: a line of another form (it is named), no pairs, or not UTF-8.
    """
    pairs = []
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        fields = line.strip("\r").split("\t")
        if not line.strip() or line.startswith("#"):
            continue
        try:
            first, second, score = fields[0].strip(), fields[1].strip(), float(fields[2])
            if not math.isfinite(score):
                raise ValueError
        except (IndexError, ValueError):
            if not pairs and number == 1:
                continue  # names of columns
            raise ValueError(
                f"{path}: line {number} is not two words and a score: {line[:80]!r}"
            ) from None
        pairs.append((first, second, score))
    if not pairs:
        raise ValueError(f"{path} holds no pairs of words.")
    return pairs


def rare_word_pairs(vectors, pairs, rank, fold_case=True):
    """The pairs in which a word is rare: behind the first `rank` of the table, or not in it.

    Tables stand in the order of frequency, so that a rank is a measure of rarity. What vectors of
    such words are worth is asked by Luong et al., 2013, "Better Word Representations with Recursive
    Neural Networks for Morphology".

    Args:
        vectors: `kctx.vectors.Vectors`, the most frequent words first.
        pairs: as of `word_similarity`.
        rank: int, at least 1.
        fold_case: bool, whether case is of no account. Default True.

    Returns:
        list of (word, word, score)
    """
    check_count("rank", rank)
    if isinstance(pairs, (str, os.PathLike)):
        pairs = read_word_pairs(pairs)
    words = [word for pair in pairs for word in pair[:2]]
    frequent = WordLookup(vectors, words, restrict=rank, fold_case=fold_case)
    return [pair for pair in pairs if None in map(frequent.row, pair[:2])]


def word_similarity(vectors, pairs, fold_case=True, subwords=True):
    """Spearman's rank correlation of the cosines with people's scores.

    Args:
        vectors: `kctx.vectors.Vectors`.
        pairs: path of a file for `read_word_pairs`, or list of (word, word, score).
        fold_case: bool, whether case is of no account. Default True.
        subwords: bool, whether words outside the table have vectors by their n-grams, if `vectors`
            have subwords. Without, their pairs do not count. Default True.

    Returns:
        dict: "spearman" and "pearson" (float in [-1, 1], None with fewer than two pairs), "pairs",
        "used" (int), "missing" (list of str, words without a vector).
    """
    if isinstance(pairs, (str, os.PathLike)):
        pairs = read_word_pairs(pairs)
    words = list(dict.fromkeys(word for pair in pairs for word in pair[:2]))
    lookup = WordLookup(vectors, words, fold_case=fold_case)
    rows = {word: lookup.row(word) for word in words}
    outside = [word for word in words if rows[word] is None]
    places, found = {}, []
    for word in words:
        if rows[word] is not None:
            places[word] = len(places)
            found.append(rows[word])
    units = unit(vectors.table.rows(np.array(found, np.int64)))
    missing = outside
    if subwords and vectors.subwords is not None and outside:
        made = unit(vectors.get(outside))
        usable = made.any(axis=1)
        for word, good in zip(outside, usable, strict=True):
            if good:
                places[word] = len(places)
        units = np.concatenate([units, made[usable]])
        missing = [word for word, good in zip(outside, usable, strict=True) if not good]
    used = [pair for pair in pairs if pair[0] in places and pair[1] in places]
    result = {"spearman": None, "pearson": None, "pairs": len(pairs), "used": len(used)}
    if len(used) > 1:
        first = units[[places[pair[0]] for pair in used]]
        second = units[[places[pair[1]] for pair in used]]
        cosines, scores = (first * second).sum(axis=1), np.array([pair[2] for pair in used])
        if np.ptp(cosines) > 0 and np.ptp(scores) > 0:
            result["spearman"] = float(scipy.stats.spearmanr(cosines, scores).statistic)
            result["pearson"] = float(scipy.stats.pearsonr(cosines, scores).statistic)
    return {**result, "missing": missing}
