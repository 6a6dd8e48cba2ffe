"""Sequences of many lengths without the cost of padding.

Padding a batch to its longest sequence wastes, on ordinary text, about half of the work. Here
short sequences share a row: each attends to itself alone, and its positions count from 0, so its
vectors are those it would get by itself.
"""

import keras
import numpy as np
from keras import ops

from kctx.layers import GatherPositions


def pack(lengths, row_length):
    """Which sequences share a row: first fit, the longest first (Johnson, 1973).

    Args:
        lengths: list of int, each in [1, row_length].
        row_length: int.

    Returns:
        list of lists of indices into `lengths`; those of each row fit into `row_length`.
    """
    rows, free = [], []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        for row, space in enumerate(free):
            if lengths[index] <= space:
                rows[row].append(index)
                free[row] -= lengths[index]
                break
        else:
            rows.append([index])
            free.append(row_length - lengths[index])
    return rows


def best_row_length(lengths, width):
    """The row length, a multiple of 8, at which `lengths` cost least when packed.

    Between the longest sequence and twice that. A row costs its tokens' dense products and, as
    attention sees whole rows, something for its length.

    Args:
        lengths: list of int.
        width: int, D of the encoder.
    """
    shortest = 8 * -(-max(lengths) // 8)

    def cost(row_length):
        return len(pack(lengths, row_length)) * row_length * (6 * width + row_length)

    return min(range(shortest, 2 * shortest + 1, 8), key=cost)


def packed_rows(token_ids, segment_ids, rows, row_length):
    """The inputs of `packed_model` as NumPy arrays, int32.

    Args:
        token_ids, segment_ids: lists of 1-D integer arrays.
        rows: from `pack`.
        row_length: int, T.

    Returns:
        dict of `token_ids`, `segment_ids`, `position_ids`, `sequence_ids` (B, T), where
        `sequence_ids` counts the sequences of a row from 1 and is 0 at padding, and `starts`
        (B, S), the places where they begin, S the greatest number in a row, 0 where there is none.
    """
    names = ("token_ids", "segment_ids", "position_ids", "sequence_ids")
    arrays = {name: np.zeros((len(rows), row_length), "int32") for name in names}
    # A few widths only, so that a compiled model meets few shapes.
    most = 8 * -(-max(len(row) for row in rows) // 8)
    starts = np.zeros((len(rows), most), "int32")
    for row, indices in enumerate(rows):
        start = 0
        for place, index in enumerate(indices):
            stop = start + len(token_ids[index])
            arrays["token_ids"][row, start:stop] = token_ids[index]
            arrays["segment_ids"][row, start:stop] = segment_ids[index]
            arrays["position_ids"][row, start:stop] = np.arange(stop - start)
            arrays["sequence_ids"][row, start:stop] = place + 1
            starts[row, place] = start
            start = stop
    return {**arrays, "starts": starts}


def packed_model(encoder):
    """A second graph on an encoder's weights, whose rows hold several sequences each.

    Also for training: it is a functional model like any other, and the layers are the encoder's.

    Args:
        encoder: an encoder with learned absolute positions and the layers of `kctx.models.BERT`.

    Returns:
        keras.Model. Inputs: see `packed_rows`. Outputs: `sequence_output` (B, T, D) and, if the
        encoder has a pooler, `pooled_output` (B, S, D), one for each sequence.

    Raises:
        ValueError: the encoder lacks one of the layers.
    """
    needed = ("token_embedding", "position_embedding", "segment_embedding", "embedding_norm")
    missing = [name for name in (*needed, "blocks") if not hasattr(encoder, name)]
    if missing:
        raise ValueError(
            f"`encoder` cannot be packed, it has no {', '.join(missing)}. "
            f"Received: {type(encoder).__name__}"
        )
    names = ("token_ids", "segment_ids", "position_ids", "sequence_ids", "starts")
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in names}
    x = encoder.token_embedding(inputs["token_ids"])  # (B, T, D)
    x = x + encoder.position_embedding(x, positions=inputs["position_ids"])
    x = x + encoder.segment_embedding(inputs["segment_ids"])
    x = encoder.embedding_dropout(encoder.embedding_norm(x))
    own, other = (ops.expand_dims(inputs["sequence_ids"], axis) for axis in (2, 1))
    mask = ops.logical_and(ops.equal(own, other), ops.greater(other, 0))  # (B, T, T)
    for block in encoder.blocks:
        x = block(x, attention_mask=mask)
    outputs = {"sequence_output": x}
    if encoder.pooler is not None:
        outputs["pooled_output"] = encoder.pooler(GatherPositions()(x, inputs["starts"]))
    return keras.Model(inputs, outputs, name=f"{encoder.name}_packed")


class RaggedEncoder:
    """Encodes sequences of any lengths at the cost of their real tokens.

    Outputs equal those of padded batches up to rounding, and do not depend on which sequences
    come together.

    Args:
        encoder: see `packed_model`.
        row_length: int, T, tokens in a row; sequences longer than that get rows of twice, three
            times, ... the length. Few shapes occur then, which suits models that are compiled for
            each shape. Default None: the length that wastes least is found for each batch.
        batch_rows: int, greatest number of rows of 128 tokens computed at once. Default 32.
        jit_compile: as `keras.Model.compile`; `kctx.training.setup(...).jit_compile` is a good
            choice. Default "auto".

    Example:
        vectors = RaggedEncoder(encoder)([[101, 7592, 102], [101, 2088, 999, 102]])
        vectors["sequence_output"][1].shape  # (4, D)
    """

    POOL = 256  # sequences packed together: enough to fill rows well, quick to pack

    def __init__(self, encoder, row_length=None, batch_rows=32, jit_compile="auto"):
        for name, value in (("row_length", row_length), ("batch_rows", batch_rows)):
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
        self.encoder = encoder
        self.model = packed_model(encoder)
        self.longest = encoder.max_sequence_length
        self.row_length = row_length
        self.batch_rows = batch_rows
        self.model.compile(jit_compile=jit_compile)

    def __call__(self, token_ids, segment_ids=None):
        """Encodes a list of sequences.

        Args:
            token_ids: list of sequences of int, each of at least one token.
            segment_ids: the same lengths. Default: all 0.

        Returns:
            dict of NumPy arrays: `sequence_output`, a list of (T_i, D) in the order given, and
            `pooled_output` (N, D), if the encoder has a pooler.

        Raises:
            ValueError: a sequence is empty or longer than the encoder's positions, or an id lies
                outside the encoder's tables.
        """
        token_ids = [np.asarray(ids) for ids in token_ids]
        if segment_ids is None:
            segment_ids = [np.zeros_like(ids) for ids in token_ids]
        lengths = [len(ids) for ids in token_ids]
        for index, length in enumerate(lengths):
            if not 1 <= length <= self.longest or len(segment_ids[index]) != length:
                raise ValueError(
                    f"Each sequence must have 1 to {self.longest} tokens, and as many segment "
                    f"ids. Received: token_ids[{index}] of {length}, "
                    f"segment_ids[{index}] of {len(segment_ids[index])}"
                )
            # Before the first step: under JAX an error within it loses weights.
            ids = {"token_ids": token_ids[index], "segment_ids": segment_ids[index]}
            self.encoder.check_inputs({key: np.asarray(value)[None] for key, value in ids.items()})
        vectors, pooled = [None] * len(token_ids), [None] * len(token_ids)
        for row_length, rows in self._batches(lengths):
            inputs = packed_rows(token_ids, segment_ids, rows, row_length)
            outputs = {
                key: ops.convert_to_numpy(value)
                for key, value in self.model.predict_on_batch(inputs).items()
            }
            for row, indices in enumerate(rows):
                for place, index in enumerate(indices):
                    start = inputs["starts"][row, place]
                    stop = start + lengths[index]
                    vectors[index] = outputs["sequence_output"][row, start:stop]
                    if "pooled_output" in outputs:
                        pooled[index] = outputs["pooled_output"][row, place]
        result = {"sequence_output": vectors}
        if "pooled_output" in self.model.output:
            width = self.model.output["pooled_output"].shape[-1]
            result["pooled_output"] = np.stack(pooled) if pooled else np.zeros((0, width))
        return result

    def _batches(self, lengths):
        """Yields (row length, list of lists of indices): what is computed at once."""
        step = self.row_length or 128
        width = self.model.output["sequence_output"].shape[-1]
        for start in range(0, len(lengths), self.POOL):
            classes = {}  # sequences of like length, so that short ones do not get long rows
            for index in range(start, min(start + self.POOL, len(lengths))):
                classes.setdefault(-(-lengths[index] // step), []).append(index)
            for multiple, members in sorted(classes.items()):
                own = [lengths[index] for index in members]
                row_length = multiple * step if self.row_length else best_row_length(own, width)
                rows = [[members[index] for index in row] for row in pack(own, row_length)]
                batch = max(1, self.batch_rows * 128 // row_length)
                for first in range(0, len(rows), batch):
                    yield row_length, rows[first : first + batch]
