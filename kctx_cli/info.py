"""kctx info"""

import dataclasses
from pathlib import Path

import tyro


@dataclasses.dataclass(frozen=True)
class Info:
    """Says what a folder holds: its model, task, labels, and how it is asked.

        kctx info runs/reviews/preset
        kctx info saved_models/reviews/1
        kctx info bert-base-uncased/

    Of the version of an export it tells what each signature takes and gives.
    """

    folder: tyro.conf.Positional[Path]
    """preset folder, version of an export, or a folder in Hugging Face's format"""

    def run(self):
        described = self.folder / "assets.extra" / "signature.json"
        if described.is_file():
            from kctx.files import read_json

            facts = read_json(described)
            try:
                print_signatures(facts)
            except (KeyError, TypeError, AttributeError) as error:
                raise ValueError(f"{described} describes no export: {error!r}") from error
            return
        from kctx.tasks import TASKS, task_of
        from kctx_cli.loading import load_text_model

        text_model = load_text_model(self.folder)
        print(text_model.describe())
        name = text_model.task or task_of(text_model.model)
        if text_model.task is None:
            meant = f", as kctx export makes it by default: {name}" if name else ""
            if text_model.preprocessor is None:
                print(f"{'':14}without a preprocessor it takes no text, only ids, in Python")
                return
            print(f"{'':14}kctx embed works with its encoder{meant}")
            return
        task = TASKS[name]
        if text_model.preprocessor is not None:
            task = text_model.asked()
        print("\nkctx predict asks for:")
        for part, field in task.fields.items():
            print(f"  {part:<12}{field.meaning}{'' if field.required else ' (may be left out)'}")
        print("\nand an exported model answers with:")
        for key, (shape, meaning) in task.meanings.items():
            print(f"  {key:<22}{shape:<11}{meaning}")


def print_signatures(facts):
    """What an export takes and gives."""
    keys = ("name", "version", "task", "labels", "options", "weights_dtype", "kctx", "tensorflow")
    for key in keys:
        if facts.get(key):
            value = facts[key]
            print(f"{key:<14}{', '.join(value) if isinstance(value, list) else value}")
    for signature, sides in facts["signatures"].items():
        print(f"\n{signature}")
        for side, entries in sides.items():
            for key, entry in entries.items():
                kind = f"{entry['dtype']} {entry['shape']}"
                print(f"  {side[:-1]:<7}{key:<22}{kind:<18}{entry['meaning']}")
