"""What a folder holds, as a model that takes raw text."""

from pathlib import Path


def load_text_model(folder, dtype=None):
    """A preset folder, or a published checkpoint, as `kctx.presets.TextModel`.

    Raises:
        FileNotFoundError, ValueError: it is none, or broken.
    """
    from kctx import convert, presets
    from kctx.training.memory import keep_freed_memory

    keep_freed_memory()  # batch after batch of one size: what is freed is needed again

    folder = Path(folder)
    if (folder / "assets.extra" / "preset").is_dir():  # an exported version
        folder = folder / "assets.extra" / "preset"
    elif (folder / "preset").is_dir() and not (folder / "config.json").exists():
        folder = folder / "preset"  # the output of a recipe
    if (folder / "model.weights.h5").exists() or not folder.exists():
        return presets.load(folder, dtype)
    options = {} if dtype is None else {"dtype": dtype}
    return convert.load_preset(folder, **options)[0]
