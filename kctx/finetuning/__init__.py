"""What the recipes of fine-tuning share: options, the run, the report. A task is a `FineTuning`."""

from kctx.finetuning.fine_tuning import FineTuning
from kctx.finetuning.options import Options
from kctx.finetuning.run import run
from kctx.finetuning.tables import TableOptions, read_tables, split

__all__ = ["FineTuning", "Options", "TableOptions", "read_tables", "run", "split"]
