"""Text to words as BERT's basic tokenizer does it, in TensorFlow graph operations.

All rows are worked on at once as one flat array of code points, in a few passes and without a loop,
so the same code runs eagerly, in tf.data and in an exported graph. What few texts need stands in
branches that the others skip. Letters: N texts, C code points, K those of them that are part of
words, X code points after normalisation, W words.
"""

from typing import NamedTuple

import tensorflow as tf

from kctx.tokenizers import unicode_tables as tables


class Words(NamedTuple):
    """Words of N texts, flat."""

    words: tf.Tensor  # string (W,), normalised, UTF-8
    row_splits: tf.Tensor  # int64 (N + 1,): words of text n are row_splits[n]..row_splits[n + 1]
    codes: tf.Tensor  # int32 (X,): their code points
    places: tf.Tensor  # int64 (X,): where each came from among the code points of all texts
    code_splits: tf.Tensor  # int64 (W + 1,): code points of word w
    text_starts: tf.Tensor  # int64 (N,): where each text begins among the code points of all texts


def split_words(text, unicode_tables, special_tokens=()):
    """Cleans, normalises and splits.

    Args:
        text: string (N,), UTF-8; invalid bytes are ignored.
        unicode_tables: `UnicodeTables`, which carry the settings.
        special_tokens: strings that are taken as they are and stay whole.

    Returns:
        `Words`
    """
    # With a space behind each text, no word can go on in the next text.
    decoded = tf.strings.unicode_decode(tf.strings.join([text, " "]), "UTF-8", errors="ignore")
    codes, text_splits = decoded.flat_values, decoded.row_splits  # (C,), (N + 1,)
    entries = look_up(unicode_tables.entries, unicode_tables, codes)  # (C,)
    inside = None
    if special_tokens:
        entries, inside = with_special_tokens(
            entries, codes, decoded.value_rowids(), special_tokens
        )
    greatest = tf.reduce_max(entries)
    # The one rule of `str.lower` that looks at its neighbours.
    entries = tf.cond(
        greatest >= tables.SIGMA,
        lambda: with_final_sigmas(entries, codes, inside, unicode_tables),
        lambda: entries,
    )
    entries += codes
    one_to_one = (tf.reduce_min(entries) >= tables.CUT_BEFORE) & (greatest < tables.SEVERAL)
    normalized, word_starts, places = tf.cond(
        one_to_one,
        lambda: kept_words(entries),
        lambda: changed_words(entries, codes, unicode_tables),
    )
    code_splits = tf.concat([word_starts, [tf.size(normalized, tf.int64)]], 0)
    words = tf.strings.unicode_encode(
        tf.RaggedTensor.from_row_splits(normalized, code_splits, validate=False), "UTF-8"
    )
    word_places = tf.gather(places, word_starts)
    row_splits = tf.searchsorted(word_places, text_splits, out_type=tf.int64)
    return Words(words, row_splits, normalized, places, code_splits, text_splits[:-1])


def look_up(table, unicode_tables, codes):
    """Entries or contexts of code points."""
    pages = tf.gather(unicode_tables.pages, tf.bitwise.right_shift(codes, tables.PAGE_BITS))
    return tf.gather(table, pages + (codes & ((1 << tables.PAGE_BITS) - 1)))


def shift(values, before):
    """Each place gets the value of the place before it, the first one `before`."""
    return tf.concat([tf.fill([tf.minimum(tf.size(values), 1)], before), values[:-1]], 0)


def kept_words(entries):
    """Takes white space out.

    Returns:
        normalised code points (X,), where words begin among them (W,), where they came from (X,)
    """
    entries, places = without_spaces(entries)
    return entries & tables.VALUE, tf.where(entries & tables.CUT_BEFORE)[:, 0], places


def changed_words(entries, codes, unicode_tables):
    """The same where code points are dropped or become several."""
    # What is dropped comes out first, so that neighbours in the array are neighbours in the text.
    present = tf.where(entries >= tables.CUT_BEFORE)[:, 0]
    entries, kept = without_spaces(tf.gather(entries, present))  # (K,)
    lengths = tf.bitwise.right_shift(entries, tables.LENGTH_BIT) & tables.LENGTH_MASK
    origin = tf.repeat(tf.range(tf.size(lengths)), lengths)  # (X,), into (K,)
    starts = tf.cumsum(lengths, exclusive=True)
    within = tf.range(tf.size(origin)) - tf.gather(starts, origin)  # (X,): 0 for the first of each
    entries = tf.gather(entries, origin)
    several = tf.gather(lengths, origin) > 1
    values = entries & tables.VALUE
    expansions = tf.gather(unicode_tables.expansions, tf.where(several, values + within, 0))
    values = tf.where(several, expansions, values)
    places = tf.gather(tf.gather(present, kept), origin)
    values = tf.cond(
        tf.reduce_any((entries & tables.REORDERED) > 0),
        lambda: in_canonical_order(values, codes, places, unicode_tables),
        lambda: values,
    )
    begins = ((entries & tables.CUT_BEFORE) > 0) & (within == 0)
    return values, tf.where(begins)[:, 0], places


def without_spaces(entries):
    """Entries (K,) of what words are made of, CUT_BEFORE where one begins, and where they stood."""
    ended = tf.bitwise.right_shift(shift(entries, tables.CUT_AFTER) & tables.CUT_AFTER, 1)
    entries = tf.bitwise.bitwise_or(entries, ended)  # CUT_BEFORE of one is CUT_AFTER of the last
    kept = tf.where(entries >= tables.SINGLE)[:, 0]
    return tf.gather(entries, kept), kept


def in_canonical_order(values, codes, places, unicode_tables):
    """Normalised code points (X,) with the marks behind a base sorted, as Unicode demands (NFD).

    Nearly all marks that are sorted are taken away as accents. Some stay: viramas, the tone marks
    of Hangul, musical stems.
    """

    def order(codes):
        contexts = look_up(unicode_tables.contexts, unicode_tables, codes)
        return tf.cast(tf.bitwise.right_shift(contexts, tables.ORDER_BIT), tf.int64)

    bases = tf.cumsum(tf.cast(order(codes) == 0, tf.int64))  # (C,): same base, same number
    keys = tf.gather(bases, places) * (tables.PASSED + 1) + order(values)
    return tf.gather(values, tf.argsort(keys, stable=True))


def with_final_sigmas(entries, codes, inside, unicode_tables):
    """Entries (C,) in which a Σ after a cased letter at the end of its token becomes ς.

    Case-ignorable code points (dots, apostrophes, accents) are looked through, both ways. White
    space and ideographs, which end tokens, are no cased letters: that is all they need to be.
    """
    casing = look_up(unicode_tables.contexts, unicode_tables, codes) & tables.CASING_MASK
    if inside is not None:
        casing = tf.where(inside, tables.UNCASED, casing)
    seen = tf.where(casing != tables.CASE_IGNORABLE)[:, 0]  # places that are not looked through
    cased = tf.concat([[False], tf.gather(casing, seen) == tables.CASED, [False]], 0)
    sigmas = codes == tables.CAPITAL_SIGMA
    sigmas = tf.where(sigmas if inside is None else sigmas & ~inside)[:, 0]
    here = tf.searchsorted(seen, sigmas) + 1  # in `cased`, which has one more in front
    final = tf.gather(cased, here - 1) & ~tf.gather(cased, here + 1)
    final = tf.boolean_mask(sigmas, final)[:, None]
    final_sigma = tables.SINGLE + tables.FINAL_SIGMA - tables.CAPITAL_SIGMA
    return tf.tensor_scatter_nd_update(entries, final, tf.fill([tf.size(final)], final_sigma))


def with_special_tokens(entries, codes, rows, special_tokens):
    """Entries (C,) that keep special tokens as they are, and bool (C,) where they stand."""
    size = tf.size(codes)
    steps = tf.zeros([size + 1], tf.int32)  # +1 where one begins, -1 behind its end
    cuts = tf.zeros([size], tf.int32)
    for token in special_tokens:
        length = len(token)
        count = tf.maximum(size - length + 1, 0)
        found = rows[:count] == rows[length - 1 :]
        for place, character in enumerate(token):
            found &= codes[place : place + count] == ord(character)
        starts = tf.cast(tf.where(found), tf.int32)  # (M, 1)

        def times(value, starts=starts):
            return tf.fill([tf.shape(starts)[0]], value)

        steps = tf.tensor_scatter_nd_add(steps, starts, times(1))
        steps = tf.tensor_scatter_nd_sub(steps, starts + length, times(1))
        cuts = tf.tensor_scatter_nd_add(cuts, starts, times(tables.CUT_BEFORE))
        cuts = tf.tensor_scatter_nd_add(cuts, starts + length - 1, times(tables.CUT_AFTER))
    inside = tf.cumsum(steps)[:-1] > 0
    return tf.where(inside, tables.SINGLE + cuts, entries), inside
