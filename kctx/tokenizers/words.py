"""Text to words as BERT's basic tokenizer does it, in TensorFlow graph operations.

All rows are worked on at once as one flat array of code points, in a few passes and without a loop,
so the same code runs eagerly, in tf.data and in an exported graph. Letters: N texts, C code points,
X code points after normalisation, W words.
"""

from typing import NamedTuple

import tensorflow as tf

from kctx.tokenizers import unicode_tables as tables

CAPITAL_SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2


class Words(NamedTuple):
    """Words of N texts, flat."""

    words: tf.Tensor  # string (W,), normalised, UTF-8
    row_splits: tf.Tensor  # int64 (N + 1,): words of text n are row_splits[n]..row_splits[n + 1]
    codes: tf.Tensor  # int32 (X,): their code points
    sources: tf.Tensor  # int32 (X,): place of each in its own text, in code points
    code_splits: tf.Tensor  # int64 (W + 1,): code points of word w


def split_words(text, unicode_tables, lowercase=True, special_tokens=()):
    """Cleans, normalises and splits.

    Args:
        text: string (N,), UTF-8; invalid bytes are ignored.
        unicode_tables: `UnicodeTables`, which carry the settings.
        lowercase: bool, as the tables were made for: whether a capital sigma at a word's end
            becomes a final one, the one rule of `str.lower` that looks at its neighbours.
        special_tokens: strings that are taken as they are and stay whole.

    Returns:
        `Words`
    """
    decoded = tf.strings.unicode_decode(text, "UTF-8", errors="ignore")  # (N, None)
    codes = decoded.flat_values  # (C,)
    row_splits = tf.cast(decoded.row_splits, tf.int32)
    rows = tf.cast(decoded.value_rowids(), tf.int32)  # (C,)
    entries = look_up(codes, unicode_tables)  # (C,)
    # +1 where a new token begins: white space and CJK cut, and so does the end of a text.
    cuts = rows - shift(rows)
    if special_tokens:
        inside, edges = find_special(codes, rows, special_tokens)
        entries = tf.where(inside, tables.VERBATIM, entries)
        cuts += edges
    kinds = field(entries, "kind")
    separate = tf.cast(kinds == tables.SEPARATE, tf.int32)
    cuts += tf.cast(kinds >= tables.SPACE, tf.int32) + shift(separate)
    tokens = tf.cumsum(cuts)  # (C,): same number, same token
    if lowercase:
        has_sigma = tf.reduce_any(codes == CAPITAL_SIGMA)
        codes = tf.cond(has_sigma, lambda: with_final_sigmas(codes, entries, tokens), lambda: codes)
        entries = tf.where(
            codes == FINAL_SIGMA, look_up(tf.constant(FINAL_SIGMA), unicode_tables), entries
        )

    kept, codes = expand(codes, entries, unicode_tables.expansions)  # (X,)
    tokens = tf.gather(tokens, kept)
    cuts = tf.cast(tf.not_equal(tokens, shift(tokens, before=-1)), tf.int32)
    punctuation = field(tf.gather(entries, kept), "punctuation")
    begins = (cuts + punctuation + shift(punctuation)) > 0  # (X,)
    word_starts = tf.where(begins)[:, 0]  # int64 (W,)
    total = tf.size(codes, out_type=tf.int64)
    code_splits = tf.concat([word_starts, total[None]], 0)
    words = tf.strings.unicode_encode(
        tf.RaggedTensor.from_row_splits(codes, code_splits, validate=False), "UTF-8"
    )
    kept_rows = tf.gather(rows, kept)
    word_rows = tf.gather(kept_rows, word_starts)
    splits = tf.searchsorted(word_rows, tf.range(tf.size(text) + 1), out_type=tf.int64)
    sources = kept - tf.gather(row_splits, kept_rows)
    return Words(words, splits, codes, sources, code_splits)


def look_up(codes, unicode_tables):
    """Entries of code points."""
    pages = tf.gather(unicode_tables.pages, tf.bitwise.right_shift(codes, tables.PAGE_BITS))
    return tf.gather(unicode_tables.entries, pages * (1 << tables.PAGE_BITS) + (codes & 255))


def field(entries, name):
    """One field of entries, see `unicode_tables.FIELDS`."""
    first_bit, mask = tables.FIELDS[name]
    return tf.bitwise.right_shift(entries, first_bit) & mask


def shift(values, before=0):
    """Each place gets the value of the place before it, the first one `before`."""
    return tf.concat([tf.fill([tf.minimum(tf.size(values), 1)], before), values[:-1]], 0)


def expand(codes, entries, expansions):
    """Normalised code points (X,) and the place (X,) that each came from."""
    lengths = field(entries, "length")

    def one_to_one():
        kept = tf.cast(tf.where(lengths > 0)[:, 0], tf.int32)
        return kept, tf.zeros_like(kept)

    def one_to_many():
        kept = tf.repeat(tf.range(tf.size(lengths)), lengths)
        starts = tf.cumsum(lengths, exclusive=True)
        return kept, tf.range(tf.size(kept)) - tf.gather(starts, kept)

    longest = tf.reduce_max(tf.concat([lengths, [0]], 0))
    kept, within = tf.cond(longest > 1, one_to_many, one_to_one)
    starts = field(tf.gather(entries, kept), "start")
    changed = tf.gather(expansions, starts + within)
    return kept, tf.where(starts == 0, tf.gather(codes, kept), changed)


def with_final_sigmas(codes, entries, tokens):
    """Code points in which a Σ after a cased letter at the end of its token is ς.

    Case-ignorable code points (dots, apostrophes, accents) are looked through, both ways.
    """
    casing = field(entries, "casing")
    present = field(entries, "kind")
    present = (present == tables.KEEP) | (present == tables.SEPARATE)
    seen = tf.where(present & (casing != 2))[:, 0]  # (S,) places that are not looked through
    seen_tokens = tf.concat([[-1], tf.gather(tokens, seen), [-1]], 0)  # (S + 2,)
    seen_casing = tf.concat([[0], tf.gather(casing, seen), [0]], 0)
    sigmas = tf.where(codes == CAPITAL_SIGMA)[:, 0]
    places = tf.searchsorted(seen, sigmas) + 1  # of the sigmas among the seen, with one in front
    here = tf.gather(seen_tokens, places)

    def cased(at):
        return (tf.gather(seen_tokens, at) == here) & (tf.gather(seen_casing, at) == 1)

    final = cased(places - 1) & ~cased(places + 1)
    final = tf.boolean_mask(sigmas, final)
    return tf.tensor_scatter_nd_update(codes, final[:, None], tf.fill(tf.shape(final), FINAL_SIGMA))


def find_special(codes, rows, special_tokens):
    """Where special tokens stand: bool (C,) inside one, int32 (C,) their edges as token cuts."""
    size = tf.size(codes)
    marks = tf.zeros([size + 1], tf.int32)  # +1 where one begins, -1 behind its end
    edges = tf.zeros([size + 1], tf.int32)
    for token in special_tokens:
        length = len(token)
        count = tf.maximum(size - length + 1, 0)
        found = rows[:count] == rows[length - 1 :]
        for place, character in enumerate(token):
            found &= codes[place : place + count] == ord(character)
        starts = tf.cast(tf.where(found), tf.int32)  # (M, 1)
        ones = tf.ones([tf.shape(starts)[0]], tf.int32)
        marks = tf.tensor_scatter_nd_add(marks, starts, ones)
        marks = tf.tensor_scatter_nd_sub(marks, starts + length, ones)
        edges = tf.tensor_scatter_nd_add(edges, starts, ones)
        edges = tf.tensor_scatter_nd_add(edges, starts + length, ones)
    return tf.cumsum(marks)[:-1] > 0, edges[:-1]
