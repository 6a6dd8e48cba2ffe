"""From the tensors of a checkpoint to the variables of a model."""

import fnmatch
import re
from typing import Any, NamedTuple

import numpy as np

from kctx.convert.report import Tensor

# Tensors that belong to the training or are computed: no model has variables for them.
SKIPPED = re.compile(
    r"/(adam_[mv]|Adam(_1)?|lamb_[mv]|LAMB(_1)?)$"
    r"|^(global_step|beta[12]_power|loss_scale|good_steps|bad_steps)$"
    r"|(^|\.)(position_ids|token_type_ids)$"
    r"|^cls\.predictions\.decoder\.(weight|bias)$"
)


class Part(NamedTuple):
    """Something whose variables are in a table of names: an encoder, an objective, a head."""

    name: str
    root: Any
    rows: list


def assign(parts, checkpoint, standard, report, allow_missing=(), tied=()):
    """Loads a checkpoint into the variables of a model and completes the report.

    All names and shapes are checked before the first variable is changed; then one tensor at a
    time is read, turned round and assigned.

    Args:
        parts: list of `Part`.
        checkpoint: reader with `layout`, `shapes` and `read(name)`.
        standard: dict: spelling of the table -> name in the checkpoint.
        report: `Report`, changed in place.
        allow_missing: list of str, patterns of `fnmatch` for variables (or the names they have in
            checkpoints of this layout) that may be missing.
        tied: spellings of a copy and of its original, which must be equal where both are there.

    Raises:
        ValueError: a shape is wrong, a tensor that is not allowed to be missing is, or a copy
            differs.
    """
    jobs, forbidden = [], []
    for part in parts:
        for row in part.rows:
            spelling = getattr(row, checkpoint.layout)
            target = f"{part.name}.{row.target}"
            variable = resolve(part.root, row.target)
            shape = tuple(variable.shape)
            if spelling not in standard:
                report.missing.append(Tensor(spelling, target, shape))
                if not any(
                    fnmatch.fnmatchcase(name, pattern)
                    for name in (spelling, target)
                    for pattern in allow_missing
                ):
                    forbidden.append(f"{spelling} (for {target})")
                continue
            source = standard[spelling]
            transposed = getattr(row, f"{checkpoint.layout}_transposed")
            found = checkpoint.shapes[source]
            if found != (shape[::-1] if transposed else shape):
                raise ValueError(
                    f"`{source}` of {report.path} has shape {found}, but `{target}` needs "
                    f"{shape[::-1] if transposed else shape}. Do its weights and its "
                    "configuration belong together?"
                )
            report.matched.append(Tensor(source, target, shape))
            jobs.append((variable, source, transposed))
    used = {tensor.source for tensor in report.matched}
    for name in sorted(set(checkpoint.shapes) - used):
        (report.skipped if SKIPPED.search(name) else report.unexpected).append(name)
    if forbidden:
        more = f", and {len(forbidden) - 5} more" if len(forbidden) > 5 else ""
        raise ValueError(
            f"{report.path} lacks {len(forbidden)} tensors: {', '.join(forbidden[:5])}{more}. "
            "Variables that may keep their random start must be named in `allow_missing`."
        )
    check_tied(checkpoint, [standard.get(name) for name in tied])
    for variable, source, transposed in jobs:
        array = np.asarray(checkpoint.read(source), "float32")
        variable.assign(array.T if transposed else array)


def resolve(root, path):
    """The attribute at a path such as "blocks.0.attention.query.kernel"."""
    for name in path.split("."):
        root = root[int(name)] if name.isdecimal() else getattr(root, name)
    return root


def check_tied(checkpoint, names):
    """Raises unless the tensors of two names, where both are there, are equal."""
    if not names or None in names:
        return
    copy, table = names
    if not np.array_equal(checkpoint.read(copy), checkpoint.read(table)):
        raise ValueError(
            f"`{copy}` differs from `{table}`: the output table is not tied to the token "
            "embedding, as it is in our models."
        )
