"""fastText's model files: `.bin` of all versions and the quantised `.ftz`.

Bojanowski et al., 2017; Joulin et al., 2016. All numbers are little-endian, without padding:
magic and version, 12 int32 arguments and a float64, sizes, the dictionary (words, then labels; each
as bytes, a zero byte, an int64 count and an int8 kind), the pruned buckets, the input matrix and
the output matrix, each behind a flag that says whether it is quantised. Files from before
version 11 begin with the arguments and have neither flags nor pruned buckets.
"""

import dataclasses
import mmap
import struct
from pathlib import Path

import numpy as np

from kctx.files import whole_file
from kctx.vectors.product_quantizer import CENTROIDS, ProductQuantizer, QuantizedTable
from kctx.vectors.subword_table import SubwordRows, SubwordTable
from kctx.vectors.subwords import END_OF_SENTENCE, Subwords, to_bytes, to_text
from kctx.vectors.tables import as_table

MAGIC, VERSION = 793712314, 12
LOSSES = ("hs", "ns", "softmax", "ova")  # numbered from 1
MODELS = ("cbow", "skipgram", "supervised")
_HEADER = struct.Struct("<12id")
_SIZES = struct.Struct("<3iq")
_ENTRY_BYTES = 10  # of an empty word: the zero byte, count and kind


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
        if unused or arguments.max_n <= 0 or arguments.buckets <= 0:
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
        if isinstance(self.outputs, QuantizedTable) and not self.is_quantized:
            raise ValueError("`outputs` can be quantised only if `inputs` is, too.")
        if self.version not in (0, 11, 12):
            raise ValueError(f"`version` must be 0, 11 or 12. Received: {self.version!r}")
        if self.version == 0 and (self.is_quantized or self.prune_map is not None):
            raise ValueError("The old format (`version` 0) holds no quantised or pruned model.")
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
        with open(path, "rb") as file:
            if Path(path).stat().st_size == 0:
                raise ValueError(f"{path} is empty: no fastText file.")
            reader = _Reader(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        result = _read(cls, reader, memory_map)
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
        entries = self._entries()
        arguments = self.arguments
        with whole_file(path) as file:
            if self.version:
                file.write(struct.pack("<2i", MAGIC, self.version))
            values = list(dataclasses.astuple(arguments))
            values[6], values[7] = LOSSES.index(arguments.loss) + 1, MODELS.index(values[7]) + 1
            file.write(_HEADER.pack(*values))
            sizes = (len(self.words) + len(self.labels), len(self.words), len(self.labels))
            file.write(_SIZES.pack(*sizes, self.num_tokens))
            if self.version:
                file.write(struct.pack("<q", -1 if self.prune_map is None else len(self.prune_map)))
            file.write(entries)
            if self.prune_map is not None:
                file.write(np.ascontiguousarray(self.prune_map, "<i4"))
            for matrix in (self.inputs, self.outputs):
                if self.version:
                    file.write(bytes([isinstance(matrix, QuantizedTable)]))
                _write_matrix(file, matrix)

    def _entries(self):
        """The bytes of the dictionary."""
        parts = []
        for kind, names, counts in (
            (0, self.words, self.counts),
            (1, self.labels, self.label_counts),
        ):
            for name, count in zip(names, np.asarray(counts).tolist(), strict=True):
                data = to_bytes(name)
                if b"\0" in data:
                    raise ValueError(
                        "fastText's format cannot hold a word with a zero byte. Received: "
                        f"{name[:80]!r}"
                    )
                parts.append(data + struct.pack("<xqb", count, kind))
        return b"".join(parts)

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
        pairs = np.stack([buckets - len(self.words), np.arange(len(buckets))], axis=1)
        return dataclasses.replace(
            self,
            words=[self.words[i] for i in words],
            counts=self.counts[words],
            inputs=self.inputs[np.concatenate([words, buckets])],
            prune_map=pairs.astype(np.int32),
        )


class _Reader:
    """Takes values out of a mapped file, one after the other, and knows when it ends."""

    def __init__(self, path, data):
        self.path, self.data, self.offset = path, data, 0

    def need(self, count, what):
        left = len(self.data) - self.offset
        if count < 0 or count > left:
            raise ValueError(
                f"{self.path} is truncated or its header is wrong: {what} at byte {self.offset} "
                f"needs {count} bytes, and {left} are left."
            )

    def unpack(self, layout, what):
        layout = struct.Struct(layout) if isinstance(layout, str) else layout
        self.need(layout.size, what)
        values = layout.unpack_from(self.data, self.offset)
        self.offset += layout.size
        return values

    def array(self, dtype, shape, what, memory_map=False):
        count = 1
        for size in shape:
            count *= size  # Python's integers: no overflow
        dtype = np.dtype(dtype)
        if min(shape) < 0:
            self.need(-1, what)
        self.need(count * dtype.itemsize, what)
        array = np.frombuffer(self.data, dtype, count, self.offset).reshape(shape)
        self.offset += count * dtype.itemsize
        return array if memory_map else array.copy()


def _read(cls, reader, memory_map):
    magic, version = 0, 0
    if len(reader.data) >= 8:
        magic, version = struct.unpack_from("<2i", reader.data)
    if magic == MAGIC:
        reader.offset = 8
        if version not in (11, 12):
            raise ValueError(f"{reader.path}: fastText version {version} is not known (11, 12 are)")
    else:
        version = 0
    values = list(reader.unpack(_HEADER, "the header"))
    loss, model = values[6], values[7]
    if not (1 <= loss <= len(LOSSES) and 1 <= model <= len(MODELS) and values[0] > 0):
        raise ValueError(
            f"{reader.path} is no fastText file: its header says dim {values[0]}, loss {loss}, "
            f"model {model}."
        )
    values[6], values[7] = LOSSES[loss - 1], MODELS[model - 1]
    size, num_words, num_labels, num_tokens = reader.unpack(_SIZES, "the sizes")
    if size != num_words + num_labels or num_words < 0 or num_labels < 0:
        raise ValueError(
            f"{reader.path}: the header is wrong: {size} entries, but {num_words} words and "
            f"{num_labels} labels."
        )
    (pruned,) = reader.unpack("<q", "the header") if version else (-1,)
    reader.need(size * _ENTRY_BYTES, f"a dictionary of {size} entries")
    names, counts = _read_entries(reader, size, num_words)
    prune_map = None
    if pruned >= 0:
        prune_map = reader.array("<i4", (pruned, 2), "the table of pruned buckets")
    quantized = bool(reader.unpack("<B", "a flag")[0]) if version else False
    inputs = _read_matrix(reader, quantized, "the input matrix", memory_map)
    quantized_too = bool(reader.unpack("<B", "a flag")[0]) if version else False
    outputs = _read_matrix(reader, quantized and quantized_too, "the output matrix", memory_map)
    if reader.offset != len(reader.data):
        raise ValueError(
            f"{reader.path} goes on for {len(reader.data) - reader.offset} bytes after its end at "
            f"byte {reader.offset}."
        )
    return cls(
        arguments=FastTextArguments(*values),
        words=names[:num_words],
        counts=counts[:num_words],
        labels=names[num_words:],
        label_counts=counts[num_words:],
        num_tokens=num_tokens,
        inputs=inputs,
        outputs=outputs,
        prune_map=prune_map,
        version=version,
    )


def _read_entries(reader, size, num_words):
    """Names of all entries and their counts."""
    data, offset = reader.data, reader.offset
    names, ends = [], np.empty(size, np.int64)
    last = len(data) - _ENTRY_BYTES
    for index in range(size):
        end = data.find(b"\0", offset)
        if end < 0 or end > last + 1:
            raise ValueError(
                f"{reader.path} is truncated or its header is wrong: entry {index} of {size} at "
                f"byte {offset} does not end."
            )
        names.append(to_text(data[offset:end]))
        ends[index] = end
        offset = end + _ENTRY_BYTES
    raw = np.frombuffer(data, np.uint8)
    counts = raw[ends[:, None] + np.arange(1, 9)].view("<i8")[:, 0]
    kinds = raw[ends + 9]
    wrong = np.flatnonzero(kinds != (np.arange(size) >= num_words))
    if len(wrong):
        raise ValueError(
            f"{reader.path}: entry {wrong[0]} ({names[wrong[0]][:40]!r}) at byte "
            f"{ends[wrong[0]] + 9} has kind {kinds[wrong[0]]}, but the header says {num_words} "
            "words (0) and then labels (1)."
        )
    reader.offset = offset
    return names, counts.astype(np.int64)


def _read_matrix(reader, quantized, what, memory_map):
    if not quantized:
        shape = reader.unpack("<2q", f"the size of {what}")
        return reader.array("<f4", shape, what, memory_map)
    (norms,) = reader.unpack("<?", what)
    rows, dim, size = reader.unpack("<2qi", f"the size of {what}")
    codes = reader.array("u1", (size,), f"the codes of {what}")
    quantizer = _read_quantizer(reader, dim, what)
    if rows < 0 or size != rows * len(quantizer.centroids):
        raise ValueError(
            f"{reader.path}: {what} has {rows} rows of {len(quantizer.centroids)} codes, but "
            f"{size} codes."
        )
    codes = codes.reshape(rows, -1)
    if not norms:
        return QuantizedTable(quantizer, codes)
    norm_codes = reader.array("u1", (rows,), f"the norms of {what}")
    return QuantizedTable(quantizer, codes, _read_quantizer(reader, 1, what), norm_codes)


def _read_quantizer(reader, expected_dim, what):
    dim, parts, part_dim, last_dim = reader.unpack("<4i", f"the quantiser of {what}")
    fits = dim == (parts - 1) * part_dim + last_dim and 0 < last_dim <= part_dim
    if dim != expected_dim or not fits:
        raise ValueError(
            f"{reader.path}: the quantiser of {what} has dim {dim} in {parts} parts of {part_dim}, "
            f"the last of {last_dim}; the matrix has dim {expected_dim}."
        )
    values = reader.array("<f4", (dim * CENTROIDS,), f"the centroids of {what}")
    widths = [part_dim] * (parts - 1) + [last_dim]
    borders = np.cumsum(widths)[:-1] * CENTROIDS
    pieces = np.split(values, borders)
    return ProductQuantizer([p.reshape(-1, w) for p, w in zip(pieces, widths, strict=True)])


def _write_matrix(file, matrix):
    if not isinstance(matrix, QuantizedTable):
        file.write(struct.pack("<2q", *matrix.shape))
        file.write(np.ascontiguousarray(matrix, "<f4"))
        return
    norms = matrix.norm_codes is not None
    file.write(struct.pack("<?2qi", norms, *matrix.shape, matrix.codes.size))
    file.write(np.ascontiguousarray(matrix.codes))
    _write_quantizer(file, matrix.quantizer)
    if norms:
        file.write(np.ascontiguousarray(matrix.norm_codes))
        _write_quantizer(file, matrix.norm_quantizer)


def _write_quantizer(file, quantizer):
    parts = quantizer.centroids
    file.write(
        struct.pack("<4i", quantizer.dim, len(parts), quantizer.part_dim, parts[-1].shape[1])
    )
    for part in parts:
        file.write(np.ascontiguousarray(part, "<f4"))
