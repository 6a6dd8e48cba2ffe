"""A model that takes raw text."""

import keras
import numpy as np

from kctx.heads import encoder_of
from kctx.presets.task import find_encoder
from kctx.presets.writing import save
from kctx.training import default_jit

# Lengths are rounded up to a multiple of this, and batches to a power of two, so that few shapes
# are ever compiled.
LENGTH_STEP = 16
# So many batches are tokenized and sorted by length together.
BATCHES_AT_ONCE = 32


class TextModel:
    """A model with its preprocessor, its task and its labels: what a preset folder holds.

    Args:
        model: keras.Model.
        preprocessor: of `kctx.preprocessors`, or None.
        task: "classification", "regression" or None.
        labels: list of str, for classification.
    """

    def __init__(self, model, preprocessor=None, task=None, labels=None):
        self.model = model
        self.preprocessor = preprocessor
        self.task = task
        self.labels = labels
        if not model.compiled:
            # Keras by itself would have XLA compile TensorFlow's predictions, on a CPU too.
            model.jit_compile = default_jit()

    @property
    def encoder(self):
        """The encoder that is a part of the model; ValueError where none, or several are."""
        return encoder_of(self.model)

    def predict(self, texts, pairs=None, batch_size=32):
        """Answers raw texts.

        The answer to a text does not depend, beyond rounding, on what else is asked.

        Args:
            texts: list of str (or bytes in UTF-8). A single str counts as a list of one.
            pairs: list of as many second texts, for models that were taught on pairs.
            batch_size: int, texts that the model sees at a time. Default 32.

        Returns:
            list of dict, one for each text, in the order of `texts`. Classification: `label` str,
            `score` float, its probability, and `scores`, dict of float by label. Regression:
            `score` float. No texts, no answers: [].

        Raises:
            ValueError: the model has no task or no preprocessor; unequal lengths, or pairs for a
                preprocessor of single texts.
            TypeError: something in `texts` is not a text.
            FloatingPointError: a score is NaN or infinite.
        """
        if self.task is None or self.preprocessor is None:
            raise ValueError(
                "`predict` needs a task and a preprocessor. "
                f"Received: task={self.task!r}, preprocessor={self.preprocessor!r}"
            )
        if batch_size < 1:
            raise ValueError(f"`batch_size` must be at least 1. Received: {batch_size}")
        texts = _checked(texts, "texts")
        if pairs is not None:
            pairs = _checked(pairs, "pairs")
            if not self.preprocessor.takes_pairs:
                raise ValueError(
                    f"`pairs` must be None: {type(self.preprocessor).__name__} takes single texts. "
                    f"Received: {len(pairs)} pairs"
                )
            if len(pairs) != len(texts):
                raise ValueError(
                    f"`pairs` must be as many as `texts`: {len(texts)}. Received: {len(pairs)}"
                )
        answers = []
        step = BATCHES_AT_ONCE * batch_size
        for start in range(0, len(texts), step):
            several = [texts[start : start + step]]
            if pairs is not None:
                several.append(pairs[start : start + step])
            answers += [self._answer(row) for row in self._logits(several, batch_size)]
        return answers

    def save(self, folder):
        """Writes the preset folder, see `kctx.presets.save`."""
        save(folder, self.model, self.preprocessor, self.task, self.labels)

    def describe(self):
        """A few lines on what this is: str."""
        lines = [f"model         {self.model.name}, {self.model.count_params():,} parameters"]
        encoder = find_encoder(self.model)
        if encoder is not None:
            lines.append(
                f"encoder       {type(encoder).__name__} {encoder.name}, "
                f"{encoder.count_params():,} parameters, {encoder.dtype_policy.name}"
            )
        lines.append(f"task          {self.task or 'none'}")
        if self.labels:
            lines.append(f"labels        {', '.join(self.labels)}")
        if self.preprocessor is not None:
            tokenizer = self.preprocessor.tokenizer
            lines.append(
                f"preprocessor  {type(self.preprocessor).__name__} with "
                f"{type(tokenizer).__name__}, {tokenizer.vocabulary_size:,} entries, up to "
                f"{self.preprocessor.sequence_length} tokens"
            )
        return "\n".join(lines)

    def _logits(self, several, batch_size):
        """Logits (N, C) of N texts, or pairs of them, batched by length."""
        inputs = {key: np.asarray(value) for key, value in self.preprocessor(*several).items()}
        lengths = inputs["padding_mask"].sum(axis=1)  # (N,)
        order = np.argsort(lengths, kind="stable")
        rows = [None] * len(order)
        for start in range(0, len(order), batch_size):
            chosen = order[start : start + batch_size]
            length = -(-max(int(lengths[chosen].max()), 1) // LENGTH_STEP) * LENGTH_STEP
            length = min(length, self.preprocessor.sequence_length)
            size = min(1 << (len(chosen) - 1).bit_length(), batch_size)
            batch = {
                key: self._fitted(key, value[chosen], size, length) for key, value in inputs.items()
            }
            outputs = keras.tree.flatten(self.model.predict_on_batch(batch))[0]
            outputs = np.asarray(outputs, "float32")
            if not np.isfinite(outputs).all():
                raise FloatingPointError(
                    f"{self.model.name} gives scores that are no finite numbers: its weights are "
                    "broken, or its dtype policy is too narrow for them."
                )
            for index, row in zip(chosen, outputs, strict=False):
                rows[index] = row
        return rows

    def _fitted(self, key, value, size, length):
        """Cuts or pads (n, T, ...) to (size, length, ...); added rows repeat the last one."""
        value = value[:, :length]
        padding = self.preprocessor.inputs[key].padding
        missing = [(0, 0), (0, length - value.shape[1]), *[(0, 0)] * (value.ndim - 2)]
        value = np.pad(value, missing, constant_values=padding)  # (n, length, ...)
        return np.concatenate([value, np.repeat(value[-1:], size - len(value), axis=0)])

    def _answer(self, logits):
        if self.task == "regression":
            return {"score": float(logits[0])}
        exponentials = np.exp(logits.astype("float64") - logits.max())
        scores = exponentials / exponentials.sum()
        best = int(scores.argmax())
        return {
            "label": self.labels[best],
            "score": float(scores[best]),
            "scores": {
                label: float(score) for label, score in zip(self.labels, scores, strict=True)
            },
        }


def _checked(texts, name):
    """A list of texts, or an error that says which is none."""
    texts = [texts] if isinstance(texts, (str, bytes)) else list(texts)
    for index, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"`{name}[{index}]` must be a str. Received: {text!r}")
    return texts
