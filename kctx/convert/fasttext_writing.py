"""The bytes of fastText's model files, put together; see `fasttext_reading` for their order."""

import struct

import numpy as np

from kctx.convert.fasttext_reading import HEADER, LOSSES, MAGIC, MODELS, SIZES
from kctx.files import whole_file
from kctx.vectors.product_quantizer import QuantizedTable
from kctx.words import to_bytes


def write_parts(model, path):
    """Writes a `FastTextFile` whose parts fit together.

    Raises:
        ValueError: a word contains a zero byte; it is named.
    """
    entries = _entries(0, model.words, model.counts)
    entries += _entries(1, model.labels, model.label_counts)
    arguments = model.arguments
    # The values in the order of the file, which is that of the class.
    values = [getattr(arguments, name) for name in arguments.__dataclass_fields__]
    values[6], values[7] = LOSSES.index(values[6]) + 1, MODELS.index(values[7]) + 1
    num_words, num_labels = len(model.words), len(model.labels)
    with whole_file(path) as file:
        if model.version:
            file.write(struct.pack("<2i", MAGIC, model.version))
        file.write(HEADER.pack(*values))
        file.write(SIZES.pack(num_words + num_labels, num_words, num_labels, model.num_tokens))
        if model.version:
            file.write(struct.pack("<q", -1 if model.prune_map is None else len(model.prune_map)))
        file.write(entries)
        if model.prune_map is not None:
            file.write(np.ascontiguousarray(model.prune_map, "<i4"))
        for matrix in (model.inputs, model.outputs):
            if model.version:
                file.write(bytes([isinstance(matrix, QuantizedTable)]))
            _write_matrix(file, matrix)


def _entries(kind, names, counts):
    """The bytes of one kind of entries of the dictionary."""
    parts = []
    for name, count in zip(names, np.asarray(counts).tolist(), strict=True):
        data = to_bytes(name)
        if b"\0" in data:
            raise ValueError(
                f"fastText's format cannot hold a word with a zero byte. Received: {name[:80]!r}"
            )
        parts.append(data + struct.pack("<xqb", count, kind))
    return b"".join(parts)


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
