"""The bytes of fastText's model files, taken apart.

All numbers are little-endian, without padding: magic and version, 12 int32 arguments and a float64,
sizes, the dictionary (words, then labels; each as bytes, a zero byte, an int64 count and an int8
kind), the pruned buckets, the input matrix and the output matrix, each behind a flag that says
whether it is quantised. Files from before version 11 begin with the arguments and have neither
flags nor pruned buckets.
"""

import mmap
import struct
from pathlib import Path

import numpy as np

from kctx.vectors.product_quantizer import CENTROIDS, ProductQuantizer, QuantizedTable
from kctx.words import to_text

MAGIC = 793712314
VERSIONS = (11, 12)
LOSSES = ("hs", "ns", "softmax", "ova")  # numbered from 1
MODELS = ("cbow", "skipgram", "supervised")
HEADER = struct.Struct("<12id")
SIZES = struct.Struct("<3iq")
_ENTRY_BYTES = 10  # of an empty word: the zero byte, count and kind


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


def read_parts(path, memory_map):
    """What a file holds: a dict of the arguments of `FastTextFile`.

    Args:
        path: file name.
        memory_map: bool, whether dense matrices stay in the file.

    Raises:
        ValueError: see `FastTextFile.read`.
    """
    with open(path, "rb") as file:
        if Path(path).stat().st_size == 0:
            raise ValueError(f"{path} is empty: no fastText file.")
        reader = _Reader(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    magic, version = 0, 0
    if len(reader.data) >= 8:
        magic, version = struct.unpack_from("<2i", reader.data)
    if magic == MAGIC:
        reader.offset = 8
        if version not in VERSIONS:
            raise ValueError(f"{reader.path}: fastText version {version} is not known (11, 12 are)")
    else:
        version = 0
    values = list(reader.unpack(HEADER, "the header"))
    loss, model = values[6], values[7]
    if not (1 <= loss <= len(LOSSES) and 1 <= model <= len(MODELS) and values[0] > 0):
        raise ValueError(
            f"{reader.path} is no fastText file: its header says dim {values[0]}, loss {loss}, "
            f"model {model}."
        )
    values[6], values[7] = LOSSES[loss - 1], MODELS[model - 1]
    size, num_words, num_labels, num_tokens = reader.unpack(SIZES, "the sizes")
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
    return {
        "arguments": values,
        "words": names[:num_words],
        "counts": counts[:num_words],
        "labels": names[num_words:],
        "label_counts": counts[num_words:],
        "num_tokens": num_tokens,
        "inputs": inputs,
        "outputs": outputs,
        "prune_map": prune_map,
        "version": version,
    }


def _read_entries(reader, size, num_words):
    """Names of all entries and their counts."""
    data, offset = reader.data, reader.offset
    names, ends = [], np.empty(size, np.int64)
    last = len(data) - _ENTRY_BYTES
    for index in range(size):
        end = data.find(b"\0", offset)
        if end < 0 or end > last:
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
