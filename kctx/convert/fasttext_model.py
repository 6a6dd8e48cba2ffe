"""Our fastText models to and from what a fastText file holds."""

import numpy as np
from keras import ops

from kctx.convert.fasttext_file import FastTextArguments, FastTextFile
from kctx.models.fasttext import FastText
from kctx.models.fasttext_classifier import FastTextClassifier
from kctx.vectors.tables import ROWS_AT_ONCE, as_table

_LOSSES = {
    "hierarchical_softmax": "hs",
    "negative_sampling": "ns",
    "softmax": "softmax",
    "one_vs_all": "ova",
}
_ARCHITECTURES = {"skip_gram": "skipgram", "cbow": "cbow"}


def to_fasttext_file(
    model, vocabulary, subwords, word_ngrams=1, prune_map=None, num_negatives=5, **training
):
    """A trained model as fastText's file, to be written as `.bin`.

    Args:
        model: `FastText` or `FastTextClassifier`.
        vocabulary: `kctx.data.WordVocabulary` made with `line_end="</s>"`, or for the classifier
            the `LabelledVocabulary` of `kctx.data.count_labelled_lines`; counts in falling order.
        subwords: `kctx.vectors.Subwords` that the model was trained with.
        word_ngrams: int, longest n-gram of words, for the classifier. Default 1.
        prune_map: (K, 2) int32, bucket and its new number, if the model began as a pruned file.
            Default: all buckets are there.
        num_negatives: int, negatives of the classifier's training. `FastText` knows its own.
        **training: what the file records of the training beside, see `FastTextArguments`:
            `window`, `epochs`, `min_count`, `rate_update`, `threshold`.

    Returns:
        `FastTextFile`

    Raises:
        ValueError: parts that do not fit together; under hierarchical softmax counts that do not
            fall, from which fastText would build another tree; rows that are not finite.
    """
    supervised = isinstance(model, FastTextClassifier)
    if not supervised and not isinstance(model, FastText):
        raise ValueError(
            f"`model` must be a FastText or a FastTextClassifier. Received: {type(model).__name__}"
        )
    labels, label_counts = [], np.zeros(0, np.int64)
    if supervised:
        labels, label_counts = vocabulary.labels, vocabulary.label_counts
    elif word_ngrams != 1:
        raise ValueError(f"Only a classifier has n-grams of words. Received: {word_ngrams=}")
    file = FastTextFile(
        FastTextArguments(
            dim=model.dim,
            loss=_LOSSES[model.objective],
            model="supervised" if supervised else _ARCHITECTURES[model.architecture],
            negatives=num_negatives if supervised else model.num_negatives,
            word_ngrams=word_ngrams,
            buckets=subwords.buckets,
            min_n=subwords.min_n,
            max_n=subwords.max_n,
            **training,
        ),
        words=list(vocabulary.words),
        counts=np.asarray(vocabulary.counts, np.int64),
        labels=list(labels),
        label_counts=np.asarray(label_counts, np.int64),
        num_tokens=int(vocabulary.num_tokens),
        inputs=ops.convert_to_numpy(model.input_table),
        outputs=ops.convert_to_numpy(model.output_table),
        prune_map=prune_map,
    )
    file.check()
    leaves = file.label_counts if supervised else file.counts
    if file.arguments.loss == "hs" and (np.diff(leaves) > 0).any():
        raise ValueError(
            "Under hierarchical softmax the counts must not rise: fastText builds its tree from "
            f"their order. Received: {leaves[:10].tolist()}.."
        )
    for name in ("inputs", "outputs"):
        _check_finite(name, getattr(file, name))
    return file


def from_fasttext_file(file, dtype=None):
    """A model with the weights of a fastText file, to go on training with.

    Streams for it are made from what the file knows: `file.words`, `file.counts`,
    `file.subword_rows`; `kctx.vectors.LineFeatures` takes `prune_map`. Quantised rows are decoded.

    Args:
        file: `FastTextFile`, unsupervised or supervised.
        dtype: of the model's computation.

    Returns:
        `FastText` or `FastTextClassifier`. A pruned file gives one with as many buckets as the
        file kept.

    Raises:
        ValueError: an unsupervised model of a loss that `FastText` does not have, or rows that are
            not finite.
    """
    arguments = file.arguments
    objective = {short: name for name, short in _LOSSES.items()}[arguments.loss]
    inputs, outputs = (_dense(table) for table in (file.inputs, file.outputs))
    for name, table in (("inputs", inputs), ("outputs", outputs)):
        _check_finite(name, table)
    sizes = {"buckets": len(inputs) - len(file.words), "dim": arguments.dim, "dtype": dtype}
    if arguments.model == "supervised":
        model = FastTextClassifier(len(file.words), len(file.labels), objective=objective, **sizes)
    else:
        architecture = {short: name for name, short in _ARCHITECTURES.items()}[arguments.model]
        model = FastText(
            len(file.words),
            architecture=architecture,
            objective=objective,
            num_negatives=max(arguments.negatives, 1),
            **sizes,
        )
    model.input_table.assign(inputs)
    model.output_table.assign(outputs)
    return model


def _dense(table):
    return table if isinstance(table, np.ndarray) else as_table(table).chunk(0, table.shape[0])


def _check_finite(name, table):
    for start in range(0, len(table), ROWS_AT_ONCE):
        bad = np.flatnonzero(~np.isfinite(table[start : start + ROWS_AT_ONCE]).all(axis=1))
        if len(bad):
            raise ValueError(
                f"`{name}` must be finite. Received: NaN or infinity in row {start + bad[0]}. A "
                "lower learning rate keeps training from diverging"
            )
