"""Text as one stream of word ids, as the neural language model of Bengio et al. (2003) sees it."""

from typing import NamedTuple

import numpy as np

from kctx.data.id_corpus import LINE_END
from kctx.data.text_blocks import PLAIN_WHITE_SPACE, line_blocks, text_blocks, text_files
from kctx.data.word_vocabulary import WordVocabulary

RARE_WORD = "<unk>"


class WordStream(NamedTuple):
    """A text as ids.

    Attributes:
        ids: int32 (N,), 0 for a rare word, i for `words[i]`.
        words: list of str, that of each id, most frequent first but for `<unk>`, which is id 0.
    """

    ids: np.ndarray
    words: list


def word_stream(files=(), lines=None, min_count=4, white_space=PLAIN_WHITE_SPACE, progress=True):
    """Reads text as one stream of words; line ends are white space like any other.

    All words that occur less than `min_count` times share one symbol, `<unk>` (section 4.1 of the
    paper, where it is 3 times or less); so does `<unk>` itself where a text holds it. The ids take
    4 bytes a word of memory.

    Args:
        files: file name or list of them. Any bytes: invalid UTF-8 is kept.
        lines: list of str or bytes instead.
        min_count: int. Default 4.
        white_space: where to split, see `kctx.data.text_blocks`.
        progress: whether to show bars.

    Returns:
        `WordStream`

    Raises:
        ValueError: no word occurs `min_count` times.
        FileNotFoundError: no such file.
    """
    options = {"white_space": white_space, "progress": progress}
    vocabulary = WordVocabulary.train(files, lines, min_count, **options)
    if lines is None:
        blocks = text_blocks(text_files(files), "looking words up", progress)
    else:
        blocks = line_blocks(lines)
    place = np.arange(1, len(vocabulary) + 2, dtype=np.int32)  # of each word; the last for unknown
    words = [word for word in vocabulary.words if word != RARE_WORD]
    if len(words) < len(vocabulary):
        marker = vocabulary.words.index(RARE_WORD)
        place[marker + 1 :] -= 1
        place[marker] = 0
    place[-1] = 0
    parts = [np.zeros(0, np.int32)]
    for block in blocks:
        ids = vocabulary.encode(block, white_space)
        parts.append(place[ids[ids != LINE_END]])
    return WordStream(np.concatenate(parts), [RARE_WORD, *words])
