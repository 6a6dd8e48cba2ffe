"""A tokenizer of ours in the files that Hugging Face's libraries read."""

from kctx.convert.wordpiece_settings import SPECIAL_TOKENS


def published_tokenizer(tokenizer, max_length):
    """Contents of tokenizer.json and tokenizer_config.json for a `WordPieceTokenizer`.

    Special tokens in the text are taken for the tokens there, as is usual there; here that is a
    setting.

    Args:
        tokenizer: `WordPieceTokenizer`.
        max_length: int, positions of the model.

    Returns:
        (dict, dict)
    """

    def special(token):
        return {"id": token, "ids": [tokenizer.token_to_id(token)], "tokens": [token]}

    def template(*entries):
        return [
            {"Sequence": {"id": name, "type_id": segment}}
            if name in ("A", "B")
            else {"SpecialToken": {"id": name, "type_id": segment}}
            for name, segment in entries
        ]

    start, separator = tokenizer.start_token, tokenizer.separator_token
    single = ((start, 0), ("A", 0), (separator, 0))
    fast = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": tokenizer.token_to_id(token),
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for token in sorted(tokenizer.special_tokens.values(), key=tokenizer.token_to_id)
        ],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": tokenizer.split_cjk,
            "strip_accents": tokenizer.strip_accents,
            "lowercase": tokenizer.lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": template(*single),
            "pair": template(*single, ("B", 1), (separator, 1)),
            "special_tokens": {token: special(token) for token in (start, separator)},
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": tokenizer.unknown_token,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": tokenizer.max_word_chars,
            "vocab": {token: index for index, token in enumerate(tokenizer.vocabulary)},
        },
    }
    slow = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": tokenizer.lowercase,
        "strip_accents": tokenizer.strip_accents,
        "tokenize_chinese_chars": tokenizer.split_cjk,
        "model_max_length": max_length,
        **{theirs: tokenizer.special_tokens[ours] for theirs, ours in SPECIAL_TOKENS.items()},
    }
    return fast, slow
