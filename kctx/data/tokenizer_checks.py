"""Which tokenizer made the data, and whether it fits the model."""

import hashlib
import json


def tokenizer_digest(tokenizer):
    """SHA-256 over the vocabulary and the settings of a tokenizer, as hexadecimal str."""
    settings = json.dumps(tokenizer.get_config(), sort_keys=True, default=str)
    text = "\n".join([settings, *tokenizer.vocabulary])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_vocabulary_size(tokenizer, vocabulary_size):
    """Raises ValueError if the tokenizer makes ids beyond an embedding table of that many rows."""
    if vocabulary_size is not None and tokenizer.vocabulary_size > vocabulary_size:
        raise ValueError(
            f"The tokenizer has {tokenizer.vocabulary_size} entries but the model's embedding "
            f"table only {vocabulary_size}: build the model with "
            f"vocabulary_size={tokenizer.vocabulary_size}."
        )
