"""What a supervised fastText model says of a text, without fastText.

Joulin et al., 2017. The probabilities are those of the reference, its peculiarities included: the
end of a line counts as a token, `</s>`; 1e-5 is added before a logarithm; "ns" and "ova" give each
label a probability of its own, by a table of 512 steps.
"""

import numbers
from collections.abc import Iterable

import numpy as np

from kctx.vectors.huffman import huffman_tree
from kctx.vectors.line_features import LineFeatures, line_tokens
from kctx.vectors.subword_table import sums_of_rows
from kctx.vectors.subwords import END_OF_SENTENCE
from kctx.vectors.tables import DenseTable, as_table

_LOG_FLOOR = np.float32(1e-5)
_SIGMOID_STEPS, _SIGMOID_LIMIT = 512, 8
_LINES_AT_ONCE, _SCORES_AT_ONCE = 4096, 4_000_000


class FastTextPredictor:
    """Labels and their probabilities for texts.

    Args:
        model: `kctx.convert.FastTextFile` of a supervised model, or whatever has its attributes.
        label_prefix: str; tokens of a text that begin so are labels, not words. Default
            "__label__".

    Raises:
        ValueError: the model is not supervised, has no labels, or NaN or infinity in what scores
            them.
    """

    def __init__(self, model, label_prefix="__label__"):
        if model.arguments.model != "supervised":
            raise ValueError(
                f"Only supervised models predict labels. Received: a {model.arguments.model} model"
            )
        if not model.labels:
            raise ValueError("The model must have labels. Received: none")
        self.labels, self.label_prefix = list(model.labels), label_prefix
        self.loss, self._known_labels = model.arguments.loss, set(self.labels)
        # Files may ask for n-grams of words, and have no bucket for them.
        word_ngrams = model.arguments.word_ngrams if model.subwords.buckets else 1
        self._features = LineFeatures(
            model.words, model.subwords, max(word_ngrams, 1), model.prune_map
        )
        self._inputs = as_table(model.inputs)
        self._outputs = as_table(model.outputs).chunk(0, len(self.labels))
        if not np.isfinite(self._outputs).all():
            raise ValueError("The model's `outputs` must be finite. Received: NaN or infinity")
        self._tree = None  # also where there is one label, whose path is empty
        if self.loss == "hs" and len(self.labels) > 1:
            self._tree = huffman_tree(model.label_counts)

    def predict(self, texts, k=1, threshold=0.0):
        """The most probable labels.

        Args:
            texts: str, one line, or list of them.
            k: int, how many labels at most; -1 for all. Default 1.
            threshold: float, labels with a lower probability are left out. Default 0.

        Returns:
            list of (label, probability), most probable first; for a list of texts, a list of such
            lists. A text of which the model knows nothing at all has an empty one.

        Raises:
            ValueError: a text is no str or holds a line break, `k` is 0, `threshold` is no number,
                or a text's rows hold NaN or infinity.
        """
        one = isinstance(texts, str)
        lines = [texts] if one else _texts(texts)
        if isinstance(k, bool) or not isinstance(k, int) or not (k == -1 or k > 0):
            raise ValueError(f"`k` must be a positive integer, or -1 for all. Received: k={k!r}")
        if not isinstance(threshold, numbers.Real) or threshold != threshold:  # NaN
            raise ValueError(f"`threshold` must be a number. Received: threshold={threshold!r}")
        for number, line in enumerate(lines):
            if "\n" in line:
                raise ValueError(
                    "A text must be one line, without a line break. Received: text "
                    f"{number}, {line[:60]!r}"
                )
        k = len(self.labels) if k == -1 else min(k, len(self.labels))
        at_once = max(1, min(_LINES_AT_ONCE, _SCORES_AT_ONCE // max(1, 2 * len(self.labels))))
        answers = []
        for start in range(0, len(lines), at_once):
            answers += self._predict(lines[start : start + at_once], k, threshold, start)
        return answers[0] if one else answers

    def sentence(self, texts):
        """The hidden vectors of texts: the mean of all features of a line, (N, D) float32.

        Args:
            texts: list of str, a line each. As in `predict`, their ends count.
        """
        return self._hidden(_texts(texts))[0]

    def _predict(self, lines, k, threshold, first):
        hidden, known = self._hidden(lines)
        finite = np.isfinite(hidden).all(axis=1)
        if not finite.all():
            place = int(finite.argmin())
            raise ValueError(
                "The rows of a text's features must be finite. Received: NaN or infinity for text "
                f"{first + place}, {lines[place][:60]!r}"
            )
        if self.loss == "hs":
            scores = _path_log_probabilities(hidden, self._outputs, self._tree)
            allowed = scores >= np.log(np.float32(threshold) + _LOG_FLOOR)
            values = np.exp(scores)
        else:
            logits = hidden @ self._outputs.T
            scores = _softmax(logits) if self.loss == "softmax" else _stepped_sigmoid(logits)
            allowed = scores >= threshold
            values = scores + _LOG_FLOOR
        if k == 1:
            best = scores.argmax(axis=1)[:, None]
        else:
            best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        rows = np.arange(len(lines))[:, None]
        return [
            [
                (self.labels[i], probability)
                for i, probability, shown in zip(*line, strict=True)
                if shown and some
            ]
            for some, *line in zip(
                known.tolist(),
                best.tolist(),
                values[rows, best].tolist(),
                allowed[rows, best].tolist(),
                strict=True,
            )
        ]

    def _hidden(self, lines):
        """(N, D) means of the features of lines, and (N,) whether a line has any."""
        tokens, places, offsets = self._features.distinct([self._words(line) for line in lines])
        rows, row_offsets = self._features.of_tokens(tokens)
        token_sums = sums_of_rows(self._inputs, rows, row_offsets)
        sums = sums_of_rows(DenseTable(token_sums), places, offsets)
        before = np.concatenate([[0], np.cumsum(np.diff(row_offsets)[places])])
        counts = np.diff(before[offsets])
        rows, row_offsets = self._features.of_word_ngrams(tokens, places, offsets)
        if len(rows):
            sums += sums_of_rows(self._inputs, rows, row_offsets)
            counts += np.diff(row_offsets)
        scales = (1.0 / np.maximum(counts, 1)).astype(np.float32)
        return sums * scales[:, None], counts > 0

    def _words(self, line):
        """The words of a line, without labels, up to the end of the sentence."""
        tokens = line_tokens(line)
        if END_OF_SENTENCE in tokens:
            tokens = tokens[: tokens.index(END_OF_SENTENCE)]
        known = self._features.ids
        return [token for token in tokens if token in known or not self._is_label(token)]

    def _is_label(self, token):
        return token in self._known_labels or token.startswith(self.label_prefix)


def _texts(texts):
    """A list of texts; raises a `ValueError` for anything else."""
    texts = list(texts) if isinstance(texts, Iterable) and not isinstance(texts, bytes) else [texts]
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"A text must be a str. Received: text {number}, {text!r}")
    return texts


def _path_log_probabilities(hidden, outputs, tree):
    """(N, L) logarithms of the probability of each leaf: the sums along its path."""
    if tree is None:
        return np.zeros((len(hidden), 1), np.float32)
    ones = 1 / (1 + np.exp(-(outputs[:-1] @ hidden.T)))  # (nodes, N)
    logs = np.log(np.stack([1 - ones, ones]) + _LOG_FLOOR)  # of the bits 0 and 1
    scores = np.zeros((len(tree.lengths), len(hidden)), np.float32)
    for depth in range(tree.codes.shape[1]):
        inside = np.flatnonzero(tree.lengths > depth)
        scores[inside] += logs[tree.codes[inside, depth], tree.points[inside, depth]]
    return scores.T


def _softmax(logits):
    values = np.exp(logits - logits.max(axis=1, keepdims=True))
    return values / values.sum(axis=1, keepdims=True)


def _stepped_sigmoid(logits):
    """The sigmoid at the next lower of 512 steps between -8 and 8; 0 and 1 beyond."""
    steps = (logits + _SIGMOID_LIMIT) * np.float32(_SIGMOID_STEPS / _SIGMOID_LIMIT / 2)
    places = steps.clip(0, _SIGMOID_STEPS).astype(np.int64)
    grid = np.arange(_SIGMOID_STEPS + 1) * 2 * _SIGMOID_LIMIT / _SIGMOID_STEPS - _SIGMOID_LIMIT
    table = (1 / (1 + np.exp(-grid))).astype(np.float32)
    values = table[places]
    values[logits < -_SIGMOID_LIMIT] = 0
    values[logits > _SIGMOID_LIMIT] = 1
    return values
