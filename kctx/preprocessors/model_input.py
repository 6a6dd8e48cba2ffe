"""What a preprocessor says of the tensors that it makes."""

from typing import NamedTuple


class ModelInput(NamedTuple):
    """One of the named tensors (B, T) that a preprocessor makes.

    Every preprocessor has `inputs`, a dict of name to `ModelInput`, among them `token_ids` and
    `padding_mask`, and `takes_pairs`, bool, whether it may be called with second texts. Padding
    lies at the end of a row.

    Attributes:
        dtype: str.
        padding: what fills a row behind its last token.
        meaning: str, a few words for those who make such tensors themselves.
    """

    dtype: str
    padding: int | bool
    meaning: str
