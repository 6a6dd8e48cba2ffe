"""Raw text to one encoder's named inputs: one file per input convention."""

from pathlib import Path

from kctx.files import read_json
from kctx.preprocessors.bert import BERTPreprocessor
from kctx.preprocessors.model_input import ModelInput
from kctx.preprocessors.subwords import SubwordsPreprocessor
from kctx.preprocessors.words import WordsPreprocessor

_CLASSES = {
    "BERTPreprocessor": BERTPreprocessor,
    "SubwordsPreprocessor": SubwordsPreprocessor,
    "WordsPreprocessor": WordsPreprocessor,
}


def load(folder):
    """Reads the preprocessor that `save(folder)` wrote.

    Raises:
        FileNotFoundError: there is no preprocessor.json.
        ValueError: it names a preprocessor that this version does not know, or is broken.
    """
    path = Path(folder) / "preprocessor.json"
    if not path.is_file():
        raise FileNotFoundError(f"`folder` must hold a preprocessor.json. Received: {folder}")
    stored = read_json(path)
    if stored.get("class_name") not in tuple(_CLASSES):
        raise ValueError(
            f"{path} must name one of {sorted(_CLASSES)}. Received: {stored.get('class_name')!r}"
        )
    try:
        return _CLASSES[stored["class_name"]].from_folder(folder, stored["config"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} or tokenizer.json beside it is broken: {error!r}") from error


__all__ = ["BERTPreprocessor", "ModelInput", "SubwordsPreprocessor", "WordsPreprocessor", "load"]
