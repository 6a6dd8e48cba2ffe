"""What fastText's model files hold: `.bin` of all versions and the quantised `.ftz`.

Bojanowski et al., 2017; Joulin et al., 2016. The bytes are the business of `fasttext_reading` and
`fasttext_writing`.
"""

import dataclasses

import numpy as np

from kctx.convert.fasttext_reading import LOSSES, MODELS, read_parts
from kctx.convert.fasttext_writing import write_parts
from kctx.vectors.product_quantizer import QuantizedTable
from kctx.vectors.subword_table import SubwordRows, SubwordTable
from kctx.vectors.subwords import END_OF_SENTENCE, Subwords
from kctx.vectors.tables import as_table

VERSION = 12
_LONGEST_NGRAM = 1000  # characters; more is a header that lies
_MOST_PRUNED_BUCKETS = 2**27  # as above: nothing else in a pruned file tells, and each takes memory


@dataclasses.dataclass(frozen=True)
class FastTextArguments:
    """The arguments that a file keeps of its training; defaults are fastText's for skip-gram."""

    dim: int = 100
    """width of the vectors"""
    window: int = 5
    """largest distance of a context word (`ws`)"""
    epochs: int = 5
    min_count: int = 5
    """rarer words were left out"""
    negatives: int = 5
    """negative samples (`neg`)"""
    word_ngrams: int = 1
    """longest n-gram of words, for supervised models"""
    loss: str = "ns"
    """"hs", "ns", "softmax" or "ova" """
    model: str = "skipgram"
    """"cbow", "skipgram" or "supervised" """
    buckets: int = 2_000_000
    min_n: int = 3
    max_n: int = 6
    """lengths of the n-grams of characters"""
    rate_update: int = 100
    """tokens between two settings of the learning rate (`lrUpdateRate`)"""
    threshold: float = 1e-4
    """of subsampling (`t`)"""

    def __post_init__(self):
        if self.loss not in LOSSES:
            raise ValueError(f"`loss` must be one of {LOSSES}. Received: {self.loss!r}")
        if self.model not in MODELS:
            raise ValueError(f"`model` must be one of {MODELS}. Received: {self.model!r}")


@dataclasses.dataclass
class FastTextFile:
    """What a fastText file holds.

    Attributes:
        arguments: `FastTextArguments`.
        words: list of str, most frequent first; bytes that are not UTF-8 are kept as surrogates.
        counts: (V,) int64.
        labels: list of str, with their prefix; empty for unsupervised models.
        label_counts: (L,) int64.
        num_tokens: int, tokens of the training text.
        inputs: (V + buckets, D) float32, or a `QuantizedTable`; with `prune_map`, V + K rows.
        outputs: (V, D) float32, or (L, D) for supervised models, or a `QuantizedTable`.
        prune_map: (K, 2) int32, bucket and its new number, for the buckets that are kept; K = 0
            means that none is. None: all are kept.
        version: int, 12 or 11, or 0 for the old format without a magic number.
    """

    arguments: FastTextArguments
    words: list
    counts: np.ndarray
    inputs: object
    outputs: object
    labels: list = dataclasses.field(default_factory=list)
    label_counts: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, np.int64))
    num_tokens: int = 0
    prune_map: np.ndarray | None = None
    version: int = VERSION

    @property
    def is_quantized(self):
        """Whether the input matrix is quantised."""
        return isinstance(self.inputs, QuantizedTable)

    @property
    def subwords(self):
        """`Subwords` as the model uses them; supervised models up to version 11 have none."""
        arguments = self.arguments
        unused = arguments.model == "supervised" and self.version < 12
        unused |= arguments.max_n <= 0 or arguments.min_n > arguments.max_n
        if unused or arguments.buckets <= 0:
            return Subwords(0, 0, max(arguments.buckets, 0))
        return Subwords(max(arguments.min_n, 0), arguments.max_n, arguments.buckets)

    @property
    def subword_rows(self):
        """`SubwordRows` of the input matrix."""
        return SubwordRows(self.words, self.subwords, self.prune_map)

    def word_table(self):
        """The vectors of the words, each the mean of its own row and those of its n-grams."""
        return SubwordTable(as_table(self.inputs), self.words, self.subword_rows)

    def check(self):
        """Raises a `ValueError` unless the parts belong together; says which do not."""
        dim, words, buckets = self.arguments.dim, len(self.words), max(self.arguments.buckets, 0)
        rows = words + (buckets if self.prune_map is None else len(self.prune_map))
        expected = {
            "counts": ((words,), self.counts),
            "label_counts": ((len(self.labels),), self.label_counts),
            "inputs": ((rows, dim), self.inputs),
        }
        for name, (shape, value) in expected.items():
            if tuple(value.shape) != shape:
                raise ValueError(f"`{name}` must have shape {shape}. Received: {value.shape}")
        outputs = len(self.labels) if self.arguments.model == "supervised" else words
        if tuple(self.outputs.shape) != (outputs, dim):
            raise ValueError(
                f"`outputs` must have shape {(outputs, dim)}. Received: {self.outputs.shape}"
            )
        if self.arguments.max_n > _LONGEST_NGRAM:
            raise ValueError(
                f"`max_n` must be at most {_LONGEST_NGRAM}. Received: {self.arguments.max_n}"
            )
        if isinstance(self.outputs, QuantizedTable) and not self.is_quantized:
            raise ValueError("`outputs` can be quantised only if `inputs` is, too.")
        if self.version not in (0, 11, 12):
            raise ValueError(f"`version` must be 0, 11 or 12. Received: {self.version!r}")
        if self.version == 0 and (self.is_quantized or self.prune_map is not None):
            raise ValueError("The old format (`version` 0) holds no quantised or pruned model.")
        if self.prune_map is not None and buckets > _MOST_PRUNED_BUCKETS:
            raise ValueError(
                f"`buckets` of a pruned model must be at most {_MOST_PRUNED_BUCKETS:,}. "
                f"Received: {buckets:,}"
            )
        if self.prune_map is not None and len(self.prune_map):
            pairs = np.asarray(self.prune_map)
            if pairs.min() < 0 or pairs[:, 0].max() >= buckets or pairs[:, 1].max() >= len(pairs):
                raise ValueError(
                    f"`prune_map` must hold buckets in [0, {buckets}) and numbers in "
                    f"[0, {len(pairs)})."
                )

    @classmethod
    def read(cls, path, memory_map=True):
        """Reads a `.bin` or `.ftz`.

        Args:
            path: file name.
            memory_map: bool, whether the matrices stay in the file and are read on demand. Default
                True.

        Raises:
            ValueError: no fastText file, a file that ends too early or too late, sizes that do not
                fit together; the file and the byte offset are named. No memory is taken for sizes
                that the file cannot have.
        """
        parts = read_parts(path, memory_map)
        parts["arguments"] = FastTextArguments(*parts["arguments"])
        result = cls(**parts)
        try:
            result.check()
        except ValueError as error:
            raise ValueError(f"{path} contradicts itself: {error}") from error
        return result

    def write(self, path):
        """Writes the file, whole or not at all: `.bin`, or `.ftz` for a quantised model.

        Raises:
            ValueError: parts that do not fit together, or a word that the format cannot hold
                because it contains a zero byte; it is named.
        """
        self.check()
        write_parts(self, path)

    def quantize(self, cutoff=0, part_dim=2, norms=False, outputs=False, seed=1234):
        """A quantised copy, to be written as `.ftz`.

        Args:
            cutoff: int, rows of the input matrix to keep: `</s>`, then those with the greatest
                norm. 0 keeps all. Default 0.
            part_dim: int, numbers of a part with one byte (`dsub`). Default 2.
            norms: bool, whether norms are quantised apart (`qnorm`). Default False.
            outputs: bool, whether the output matrix is quantised, too (`qout`). Default False.
            seed: int, of k-means. Default 1234.

        Raises:
            ValueError: an unsupervised model, for which fastText has no quantised form; one that is
                quantised already; fewer than 256 rows.
        """
        if self.arguments.model != "supervised":
            raise ValueError(
                "Only supervised models have a quantised fastText file. Received: a "
                f"{self.arguments.model} model. `Vectors.stored_as('int8')` makes any vectors small"
            )
        if self.is_quantized:
            raise ValueError("The model is quantised already.")
        kept = self._pruned(cutoff) if 0 < cutoff < len(self.inputs) else self
        table = QuantizedTable.from_rows(kept.inputs, part_dim, norms, seed)
        scores = kept.outputs
        if outputs:
            scores = QuantizedTable.from_rows(scores, 2, norms, seed)
        return dataclasses.replace(kept, inputs=table, outputs=scores, version=VERSION)

    def _pruned(self, cutoff):
        """A copy with the `cutoff` most important rows of the input matrix."""
        norms = np.sqrt(np.einsum("ij,ij->i", self.inputs, self.inputs))
        if END_OF_SENTENCE in self.words:
            norms[self.words.index(END_OF_SENTENCE)] = np.inf
        best = np.argsort(-norms, kind="stable")[:cutoff]
        words = np.sort(best[best < len(self.words)])
        buckets = best[best >= len(self.words)]
        kept = buckets - len(self.words)
        if self.prune_map is not None:  # rows of a pruned matrix are not in the buckets' order
            bucket_of_row = np.zeros(len(self.prune_map), np.int64)
            bucket_of_row[self.prune_map[:, 1]] = self.prune_map[:, 0]
            kept = bucket_of_row[kept]
        pairs = np.stack([kept, np.arange(len(kept))], axis=1)
        return dataclasses.replace(
            self,
            words=[self.words[i] for i in words],
            counts=self.counts[words],
            inputs=self.inputs[np.concatenate([words, buckets])],
            prune_map=pairs.astype(np.int32),
        )
