"""What a preprocessor says of the tensors that it makes."""

from typing import NamedTuple


class ModelInput(NamedTuple):
    """One of the named tensors that a preprocessor makes.

    Every preprocessor has `inputs`, a dict of name to `ModelInput`, among them `padding_mask`
    (B, T), and `takes_pairs`, bool, whether it may be called with second texts. The first two axes
    of all are texts and tokens; padding lies at the end of a row. For `words` and `spans` it has
    `encode_words`, `encode_texts`, `pack`, `special_tokens`, `front_tokens` and `unknown_id`.

    Attributes:
        dtype: str.
        padding: what fills a row behind its last token.
        meaning: str, a few words for those who make such tensors themselves.
        axes: tuple of str, names of the axes. Default ("B", "T").
        count: int, ids that are made lie in [0, count), or None where they are no ids of a table.
        places_of: str, the axis that the values are places of, from 0, or None.
    """

    dtype: str
    padding: int | bool
    meaning: str
    axes: tuple = ("B", "T")
    count: int | None = None
    places_of: str | None = None
