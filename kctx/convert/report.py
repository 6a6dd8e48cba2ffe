"""What became of each tensor of a checkpoint."""

import dataclasses
import io
from typing import NamedTuple

import rich.console
import rich.table


class Tensor(NamedTuple):
    """A tensor of a checkpoint and the variable that it belongs to."""

    source: str
    target: str
    shape: tuple


@dataclasses.dataclass
class Report:
    """The result of a conversion, as data; `print(report)` shows it as a short table.

    Attributes:
        path: str, what was read.
        file_format: str, "Hugging Face safetensors", "TensorFlow 1 checkpoint", and so on.
        family: str, "BERT".
        matched: list of `Tensor`, those that were loaded: name in the checkpoint, our variable as
            an attribute path below the model, our shape.
        missing: list of `Tensor`, variables that the checkpoint lacks, and which therefore keep
            their random initialisation.
        unexpected: list of str, tensors that were not used: heads that were not asked for.
        skipped: list of str, tensors that no model needs: optimizer slots, step counters,
            position numbers, second copies of tied tables.
    """

    path: str
    file_format: str
    family: str
    matched: list = dataclasses.field(default_factory=list)
    missing: list = dataclasses.field(default_factory=list)
    unexpected: list = dataclasses.field(default_factory=list)
    skipped: list = dataclasses.field(default_factory=list)

    def __rich__(self):
        table = rich.table.Table(title=f"{self.family} from {self.file_format}: {self.path}")
        for column in ("", "tensors", "names"):
            table.add_column(column, overflow="fold")
        table.add_row("matched", str(len(self.matched)), _some(f"{t.source}" for t in self.matched))
        table.add_row("missing", str(len(self.missing)), _some(t.target for t in self.missing))
        table.add_row("unexpected", str(len(self.unexpected)), _some(self.unexpected))
        table.add_row("skipped", str(len(self.skipped)), _some(self.skipped))
        return table

    def __str__(self):
        console = rich.console.Console(file=io.StringIO(), width=100)
        console.print(self)
        return console.file.getvalue()


def _some(names, limit=4):
    """The first few names, and how many there are beyond."""
    names = list(names)
    more = [f"and {len(names) - limit} more"] if len(names) > limit else []
    return "\n".join([*names[:limit], *more])
