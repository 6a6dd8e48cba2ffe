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


def packed_rows(token_ids, segment_ids, rows, row_length, num_rows):
    """The inputs of `packed_model` as NumPy arrays, int32.

    Args:
        token_ids, segment_ids: lists of 1-D integer arrays.
        rows: from `pack`.
        row_length: int, T.
        num_rows: int, B >= len(rows); further rows are padding.

    Returns:
        dict of `token_ids`, `segment_ids`, `position_ids`, `sequence_ids` (B, T), where
        `sequence_ids` counts the sequences of a row from 1 and is 0 at padding, and `starts`
        (B, S), the places where they begin, S the greatest number in a row, 0 where there is none.
    """
    names = ("token_ids", "segment_ids", "position_ids", "sequence_ids")
    arrays = {name: np.zeros((num_rows, row_length), "int32") for name in names}
    # A few widths only, so that a compiled model meets few shapes.
    most = 8 * -(-max(len(row) for row in rows) // 8)
    starts = np.zeros((num_rows, most), "int32")
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
        row_length: int, T, tokens in a row; longer sequences get rows of their own length.
            Default 128, or the encoder's greatest length if that is less.
        batch_rows: int, greatest number of rows computed at once. Default 32.
        jit_compile: as `keras.Model.compile`; `kctx.training.setup(...).jit_compile` is a good
            choice. Default "auto".

    Example:
        vectors = RaggedEncoder(encoder)([[101, 7592, 102], [101, 2088, 999, 102]])
        vectors["sequence_output"][1].shape  # (4, D)
    """

    def __init__(self, encoder, row_length=None, batch_rows=32, jit_compile="auto"):
        for name, value in (("row_length", row_length), ("batch_rows", batch_rows)):
            if value is not None and value < 1:
                raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
        self.encoder = encoder
        self.model = packed_model(encoder)
        self.longest = encoder.max_sequence_length
        self.row_length = min(row_length or 128, self.longest)
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
        vectors, pooled = [None] * len(token_ids), [None] * len(token_ids)
        # Rows of a few lengths only: those that fit the common one, and multiples of it.
        rows = {}
        for index, length in enumerate(lengths):
            row_length = min(self.row_length * -(-length // self.row_length), self.longest)
            rows.setdefault(row_length, []).append(index)
        for row_length, members in rows.items():
            packed = pack([lengths[index] for index in members], row_length)
            packed = [[members[index] for index in row] for row in packed]
            batch_rows = max(1, self.batch_rows * self.row_length // row_length)
            for first in range(0, len(packed), batch_rows):
                self._encode(
                    token_ids,
                    segment_ids,
                    packed[first : first + batch_rows],
                    row_length,
                    vectors,
                    pooled,
                )
        result = {"sequence_output": vectors}
        if "pooled_output" in self.model.output:
            width = self.model.output["pooled_output"].shape[-1]
            result["pooled_output"] = np.stack(pooled) if pooled else np.zeros((0, width))
        return result

    def _encode(self, token_ids, segment_ids, rows, row_length, vectors, pooled):
        """Computes some rows and puts the results where they belong."""
        num_rows = 2 * -(-len(rows) // 2)  # even, so that a compiled model meets fewer shapes
        inputs = packed_rows(token_ids, segment_ids, rows, row_length, num_rows)
        self.encoder.check_inputs(inputs)  # before the step: under JAX an error in it loses weights
        outputs = {
            key: ops.convert_to_numpy(value)
            for key, value in self.model.predict_on_batch(inputs).items()
        }
        for row, indices in enumerate(rows):
            for place, index in enumerate(indices):
                start = inputs["starts"][row, place]
                stop = start + len(token_ids[index])
                vectors[index] = outputs["sequence_output"][row, start:stop]
                if "pooled_output" in outputs:
                    pooled[index] = outputs["pooled_output"][row, place]
