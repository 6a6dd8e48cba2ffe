"""What was found in a file of word vectors."""

import dataclasses
import io

import rich.console
import rich.table
import rich.text


@dataclasses.dataclass
class VectorsReport:
    """The result of reading word vectors, as data; `print(report)` shows it as a short table.

    Attributes:
        path: str, what was read.
        file_format: str, as in `kctx.convert.load_vectors`.
        words: int, how many words were kept.
        dim: int, width of the vectors.
        duplicates: list of str, words that came again; the first one was kept.
        nan_rows: list of str, words whose vectors hold NaN or infinity; they are kept, and similar
            to nothing.
        invalid_utf8: list of str, words that are not UTF-8; their bytes are kept.
        with_spaces: list of str, words with spaces in them, in a text file.
        notes: list of str, whatever else is worth knowing.
    """

    path: str
    file_format: str
    words: int = 0
    dim: int = 0
    duplicates: list = dataclasses.field(default_factory=list)
    nan_rows: list = dataclasses.field(default_factory=list)
    invalid_utf8: list = dataclasses.field(default_factory=list)
    with_spaces: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)

    def __rich__(self):
        title = f"{self.words} words of dim {self.dim} from {self.file_format}: {self.path}"
        table = rich.table.Table()
        for column in ("", "words", "which"):
            table.add_column(column, overflow="fold")
        for name in ("duplicates", "nan_rows", "invalid_utf8", "with_spaces"):
            found = getattr(self, name)
            if found:
                more = f" and {len(found) - 6} more" if len(found) > 6 else ""
                shown = ", ".join(repr(word[:40]) for word in found[:6])
                table.add_row(name.replace("_", " "), str(len(found)), shown + more)
        for note in self.notes:
            table.add_row("note", "", note)
        return rich.console.Group(rich.text.Text(title), *([table] if table.rows else []))

    def __str__(self):
        console = rich.console.Console(file=io.StringIO(), width=100)
        console.print(self)
        return console.file.getvalue()
