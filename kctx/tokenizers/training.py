"""Learning a WordPiece vocabulary from text."""

import collections
import itertools
import os
import tempfile
from pathlib import Path

import tensorflow as tf
import tokenizers
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from kctx.files import encoding_error
from kctx.tokenizers.text_input import as_text_tensor
from kctx.tokenizers.unicode_tables import unicode_tables
from kctx.tokenizers.vocabulary import write_vocabulary
from kctx.tokenizers.vocabulary_checks import MAX_TOKEN_BYTES, SUFFIX_INDICATOR
from kctx.tokenizers.wordpiece import WordPieceTokenizer
from kctx.tokenizers.words import split_words

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_BATCH_LINES = 4096


def train_wordpiece(
    files=(),
    vocabulary_size=30522,
    lowercase=True,
    strip_accents=None,
    split_cjk=True,
    min_frequency=2,
    max_alphabet=None,
    max_word_chars=200,
    encoding="utf-8",
    path=None,
    progress=True,
    lines=None,
):
    """Trains a vocabulary and returns the tokenizer that uses it.

    Text is cut into words by the very rules the tokenizer follows, then pieces are learnt by the
    `tokenizers` package, which merges the most frequent neighbours. Text is streamed; memory holds
    the distinct words only, a temporary file all of them. The same text gives the same vocabulary.

    Args:
        files: file name or list of file names; or give `lines`.
        vocabulary_size: int, at most so many tokens, the special ones included. Default 30522.
        lowercase, strip_accents, split_cjk, max_word_chars: as `WordPieceTokenizer`.
        min_frequency: int, a pair is merged only if it occurs so often. Default 2.
        max_alphabet: int, most frequent characters to keep; others become unknown. Default: half of
            `vocabulary_size`, so that a large script cannot use up the vocabulary.
        encoding: of the files. Default "utf-8".
        path: where to write the vocab.txt. Default: nowhere.
        progress: bool, whether to show progress bars. Default True.
        lines: iterable of str, the text itself instead of `files`.

    Raises:
        ValueError: both or neither of `files` and `lines`, no words in the text, a file is not in
            `encoding` (file and byte offset are named), or `vocabulary_size` has no room for an
            alphabet.
        FileNotFoundError: no such file.
    """
    if vocabulary_size < len(SPECIAL_TOKENS) + 2:
        raise ValueError(
            f"`vocabulary_size` must be at least {len(SPECIAL_TOKENS) + 2}, for the special tokens "
            f"and an alphabet. Received: {vocabulary_size}"
        )
    if isinstance(files, (str, os.PathLike)):
        files = [files]
    files = [Path(name) for name in files]
    if isinstance(lines, str):
        raise ValueError(f"`lines` must be several texts. Received: {_shown(lines)}")
    if bool(files) == (lines is not None):
        raise ValueError(
            "Give either `files` or `lines`. "
            f"Received: files={[str(name) for name in files]}, lines={_shown(lines)}"
        )
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"No such file in `files`. Received: {file}")
    strip_accents = lowercase if strip_accents is None else strip_accents
    tables = unicode_tables(lowercase, strip_accents, split_cjk)
    max_alphabet = max_alphabet or (vocabulary_size - len(SPECIAL_TOKENS)) // 2
    characters, inner_characters = collections.Counter(), set()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as spool:
        text = iter(lines) if files == [] else _lines_of(files, encoding, progress)
        while batch := list(itertools.islice(text, _BATCH_LINES)):
            found = split_words(as_text_tensor(batch), tables)
            lengths = found.code_splits[1:] - found.code_splits[:-1]
            usable = tf.boolean_mask(found.words, lengths <= max_word_chars)
            words = tf.strings.reduce_join(usable, separator=" ").numpy().decode("utf-8")
            characters.update(words)
            inner_characters.update(_inner_characters(words))
            spool.write(words + "\n")
        del characters[" "]
        if not characters:
            shown = _shown(lines or [str(name) for name in files])
            raise ValueError(f"The text must hold at least one word. Received: {shown}")
        # Most frequent first, ties by code point.
        alphabet = sorted(characters, key=lambda x: (-characters[x], x))[:max_alphabet]
        alphabet = sorted(alphabet)
        # Named here, since the trainer would number them in the random order of its hash table,
        # and break ties between merges by these numbers.
        inner = [SUFFIX_INDICATOR + x for x in alphabet if x in inner_characters]
        spool.seek(0)
        merged = _merge(spool, vocabulary_size, min_frequency, alphabet, inner, progress)
    known = {*SPECIAL_TOKENS, *alphabet, *inner}
    vocabulary = [*SPECIAL_TOKENS, *alphabet, *inner, *(x for x in merged if x not in known)]
    tokenizer = WordPieceTokenizer(
        vocabulary[:vocabulary_size],
        lowercase=lowercase,
        strip_accents=strip_accents,
        split_cjk=split_cjk,
        max_word_chars=max_word_chars,
    )
    if path is not None:
        write_vocabulary(tokenizer.vocabulary, path)
    return tokenizer


def _inner_characters(words):
    """Characters that stand behind another one in a word."""
    return {after for before, after in set(itertools.pairwise(words)) if before != " "}


def _merge(lines, vocabulary_size, min_frequency, alphabet, inner, progress):
    """All tokens in the order learnt, from lines of words set apart by spaces."""
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        limit_alphabet=len(alphabet),
        initial_alphabet=alphabet,
        special_tokens=[*SPECIAL_TOKENS, *inner],
        continuing_subword_prefix=SUFFIX_INDICATOR,
        show_progress=progress,
    )
    model.train_from_iterator(lines, trainer)
    ids = model.get_vocab()
    fitting = (x for x in ids if len(x.encode("utf-8")) <= MAX_TOKEN_BYTES)
    return sorted(fitting, key=ids.get)


def _lines_of(files, encoding, progress):
    """Lines of files, with a progress bar over their bytes."""
    columns = [
        TextColumn("Reading words"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, disable=not progress) as bar:
        task = bar.add_task("words", total=sum(file.stat().st_size for file in files))
        for file in files:
            offset = 0
            with open(file, "rb") as lines:
                for line in lines:
                    try:
                        yield line.decode(encoding)
                    except UnicodeDecodeError as error:
                        place = offset + error.start
                        raise encoding_error(file, encoding, place, line) from error
                    offset += len(line)
                    bar.update(task, advance=len(line))


def _shown(source):
    return repr(source)[:200]
