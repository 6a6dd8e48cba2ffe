"""The tokenizer of a published BERT: its vocabulary and its settings."""

import warnings

from kctx.files import read_json
from kctx.tokenizers import WordPieceTokenizer
from kctx.tokenizers.vocabulary import read_vocabulary

# Hugging Face's name -> ours.
SPECIAL_TOKENS = {
    "unk_token": "unknown_token",
    "pad_token": "padding_token",
    "cls_token": "start_token",
    "sep_token": "separator_token",
    "mask_token": "mask_token",
}
# Their limit of characters in a word; that of the original repository is 200.
HUGGING_FACE_MAX_WORD_CHARS = 100


def load_tokenizer(folder, layout, **options):
    """The tokenizer that lies beside a checkpoint.

    Settings come from tokenizer_config.json, then from tokenizer.json, then from the published
    code's defaults. Whether to lower-case is stored by neither the original repository nor bare
    vocabularies: it is then told by `options`, or guessed from the vocabulary with a warning.

    Args:
        folder: `pathlib.Path` with vocab.txt or tokenizer.json.
        layout: "huggingface" or "tensorflow", which have different defaults.
        **options: settings of `WordPieceTokenizer` that take precedence.

    Raises:
        FileNotFoundError: no vocabulary.
        ValueError: tokenizer.json holds another kind of tokenizer.
    """
    fast = _read_fast(folder / "tokenizer.json")
    if (folder / "vocab.txt").is_file():
        vocabulary = read_vocabulary(folder / "vocab.txt")
    elif fast:
        vocabulary = fast.pop("vocabulary")
    else:
        raise FileNotFoundError(
            f"{folder} has no vocab.txt nor tokenizer.json. Without a tokenizer, use "
            "`kctx.convert.load_model`."
        )
    fast.pop("vocabulary", None)
    if layout == "huggingface":
        settings = {"max_word_chars": HUGGING_FACE_MAX_WORD_CHARS}
        settings.update(fast)
        settings.update(_read_slow(folder / "tokenizer_config.json"))
    else:
        settings = fast
    settings.update({key: value for key, value in options.items() if value is not None})
    if "lowercase" not in settings:
        settings["lowercase"] = not has_uppercase(vocabulary)
        warnings.warn(
            f"{folder} does not say whether its text was lower-cased; its vocabulary looks "
            f"{'uncased' if settings['lowercase'] else 'cased'}, so "
            f"lowercase={settings['lowercase']}. Give `lowercase` to decide.",
            stacklevel=3,
        )
    return WordPieceTokenizer(vocabulary, **settings)


def has_uppercase(vocabulary):
    """Whether an entry, other than those in brackets, has a letter that lower-casing changes."""
    return any(
        token != token.lower() and not (token.startswith("[") and token.endswith("]"))
        for token in vocabulary
    )


def _read_slow(path):
    """Settings in a tokenizer_config.json; empty where there is none."""
    if not path.is_file():
        return {}
    stored = read_json(path)
    settings = {}
    # null for the accents means: as lower-casing
    for theirs, ours in (
        ("do_lower_case", "lowercase"),
        ("strip_accents", "strip_accents"),
        ("tokenize_chinese_chars", "split_cjk"),
    ):
        if stored.get(theirs) is not None:
            settings[ours] = bool(stored[theirs])
    for theirs, ours in SPECIAL_TOKENS.items():
        token = stored.get(theirs)
        token = token.get("content") if isinstance(token, dict) else token
        if token is not None:
            settings[ours] = token
    return settings


def _read_fast(path):
    """Vocabulary and settings in a tokenizer.json of Hugging Face; empty where there is none."""
    if not path.is_file():
        return {}
    stored = read_json(path)
    model = stored.get("model") or {}
    # Older files do not name the kind.
    if model.get("type", "WordPiece") != "WordPiece" or "vocab" not in model:
        raise ValueError(f"{path} must hold a WordPiece tokenizer. Received: {model.get('type')!r}")
    if model.get("continuing_subword_prefix", "##") != "##":
        raise ValueError(
            f'`continuing_subword_prefix` of {path} must be "##". '
            f"Received: {model['continuing_subword_prefix']!r}"
        )
    ids = model["vocab"]
    vocabulary = sorted(ids, key=ids.get)
    if [ids[token] for token in vocabulary] != list(range(len(ids))):
        raise ValueError(f"The vocabulary of {path} must have the ids 0 to {len(ids) - 1}.")
    settings = {"vocabulary": vocabulary}
    if "max_input_chars_per_word" in model:
        settings["max_word_chars"] = model["max_input_chars_per_word"]
    normalizer = stored.get("normalizer") or {}
    for theirs, ours in (
        ("lowercase", "lowercase"),
        ("strip_accents", "strip_accents"),
        ("handle_chinese_chars", "split_cjk"),
    ):
        if normalizer.get("type") == "BertNormalizer" and normalizer.get(theirs) is not None:
            settings[ours] = normalizer[theirs]
    return settings
