"""A bar for those who wait."""

import contextlib
import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

SHOWN_FROM = 2000  # requests


@contextlib.contextmanager
def tracked(shown, total, what):
    """Shows a bar on stderr.

    Args:
        shown: bool. None: where there are many, and stderr is a terminal.
        total: int, how many there are, or None where nobody knows.
        what: str, what they are called.

    Yields:
        function of how many more are done.
    """
    if shown is None:
        shown = (total is None or total >= SHOWN_FROM) and sys.stderr.isatty()
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda count: progress.advance(bar, count)
